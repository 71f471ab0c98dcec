"""Late interaction: columns with several vectors in a row, searched by several vectors that make one query.

You hold: a prepared search, and the vectors of the query. You get: the k nearest rows; the distance of a row is the
sum, over the vectors of the query, of the distance to the nearest vector of the row. Never here: how a segment stores
vectors. Through an index the nearest vectors give each row a score (`scores`), and the rows with the best ones are
compared (`compare`), so that distances are always those of the vectors.
"""
