"""Full-text search: query trees, scores, and search with inverted indexes.

You hold: a query, and a plan of the rows that may match. You get: the matching rows with their scores, best first.
The steps of a search: `request` converts any form of a query to a query tree. `route` chooses the index and the
analyser of each column. `search` finds the rows that pass the filter, and the matches of each leaf in each document
set. `matches` combines the leaves, and `ranking` orders the result. Rows that no index covers are analysed like the
indexed rows, and form a separate document set. Statistics cover all rows, so that scores do not depend on an index.
Never here: the storage of postings in segments, and the definition of a term.
"""
