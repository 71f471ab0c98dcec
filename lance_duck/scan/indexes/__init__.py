"""Predicates through indexes: assigns conditions to indexes, and returns the remaining rows and conditions.

You hold: a predicate and the catalog of indexes. You get: for each fragment the rows to look at, and the filter that is
left to apply to them. `plan` is pure; `lookup` asks segments, the most selective first. A leaf says nothing about
fragments that its segments do not cover; AND intersects bounds, OR unites them, NOT has gone down to the leaves.
Never here: reads of columns, and the layouts of indexes.
"""
