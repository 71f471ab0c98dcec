"""The B-tree: all values in order, with the rows that they belong to.

`layout` has the files. A query becomes `key_ranges`, these become `entry_ranges`, and these rows.
"""

from lance_duck.index.btree.kind import BTREE

__all__ = ["BTREE"]
