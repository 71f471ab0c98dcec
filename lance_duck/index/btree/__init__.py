"""The B-tree: all values in order, with the rows that they belong to."""

from lance_duck.index.btree.kind import BTREE

__all__ = ["BTREE"]
