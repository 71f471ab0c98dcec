"""Full-text queries: query trees, scores of any rows, and search through inverted indexes.

You hold: a query, a plan of the rows that may match. You get: the rows that match, with their scores, best first.
The path of a search: `request` (any form of a query → one query tree) → `columns` (text columns, their index, their
analyser) → `search`: rows of the filter → matches of each leaf, by partitions of documents → `combine` → `result`.
Rows that no index covers are analysed as the index does, and make a partition like any other. Statistics are those of
all rows, so that an index never changes a score.
Never here: how a segment stores postings, what a term is.
"""
