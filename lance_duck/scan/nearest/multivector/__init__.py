"""Late interaction: columns of several vectors a row, searched by several vectors that are one query.

You hold: what is asked, and the vectors of the query. You get: the k nearest rows; the distance of a row is, for each
vector of the query, that of the nearest vector of the row, added up. Never here: how a segment stores vectors.
Through an index the nearest vectors give each row a score (`scores`), and the rows with the best ones are compared
(`compare`), so that distances are always those of the vectors.
"""
