"""Nearest neighbours: arguments, exact search at the speed of memory, and search through vector segments.

You hold: a column, query vectors, a plan of the rows that may be found. You get: the k nearest rows of each query, with
their distances. Never here: how a segment stores vectors.
A search runs through `options` (checked arguments) → `route` (the segments to search, with their fragments) →
`settings` (which reach the recall) → `search`: rows of the filter → positions → segments and uncovered fragments →
merged by distance, reranked → `result`. Without an index a distance never depends on how its row was found. A segment
that is corrupt or finds too few rows is skipped, and its fragments are compared vector by vector.
"""
