"""Evaluates predicates with indexes: assigns conditions to indexes, and returns the remaining rows and conditions.

You hold: a predicate and the catalog of indexes. You get: for each fragment, the rows to read, and the remaining
filter. `plan` does not read data. `lookup` searches the indexes, and starts with the most selective condition. A leaf
does not restrict fragments that its segments do not cover. AND intersects bounds, OR unites them, and NOT is pushed
down to the leaves.
Never here: reading columns, and the layouts of indexes.
"""
