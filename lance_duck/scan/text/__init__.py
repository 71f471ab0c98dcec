"""Full-text queries: query trees, scores of any rows, and search through inverted indexes.

You hold: a query, a plan of the rows that may match. You get: the rows that match, with their scores, best first.
A search runs through `request` (any form of a query → one query tree) → `columns` (text columns, their index, their
analyser) → `search`: rows of the filter → matches of each leaf, by document set → `combine` → `result`. Rows that no
index covers are analysed as the index does, and form another document set. Statistics cover all rows, so an index
never changes a score.
Never here: the storage of postings in segments, the definition of a term.
"""
