"""Nearest-neighbour search: arguments, exact search at the speed of memory, and search with vector segments.

You hold: a column, query vectors, and a plan of the rows that may be found. You get: the k nearest rows of each query,
with their distances. Never here: the storage of vectors in a segment.
The steps of a search: `options` validates the arguments. `route` chooses the segments to search, and their fragments.
`settings` determines the search settings that reach the recall. `search` finds the rows that pass the filter, searches
segments and uncovered fragments, merges the rows by distance and reranks them. `result` reads the result columns.
Without an index, the distance of a row does not depend on the method that found it. If a segment is corrupt or finds
too few rows, it is skipped, and the vectors of its fragments are compared one by one.
"""
