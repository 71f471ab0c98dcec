"""Predicates through indexes: assigns conditions to indexes, and returns the remaining rows and conditions.

You hold: a predicate and the catalog of indexes. You get: for each fragment, the rows to read, and the remaining
filter. `plan` is pure. `lookup` searches segments, the most selective first. A leaf does not restrict fragments that
its segments do not cover. AND intersects bounds, OR unites them, and NOT is pushed down to the leaves.
Never here: reads of columns, and the layouts of indexes.
"""
