"""Merges the items of other segments, with their current rows."""

from __future__ import annotations

from lance_duck.index.kind import Follow
from lance_duck.index.rtree.build import Items
from lance_duck.index.rtree.open import RTreeFile
from lance_duck.rows.row_set import RowSet


def add_items(items: Items, file: RTreeFile, follow: Follow) -> None:
    """Add the items and null rows of a segment that still exist.

    Raises:
        CorruptError: The segment is corrupt.
    """
    for boxes, rows in file.blocks():
        names, lives = follow(rows)
        items.add(boxes[lives], names[lives])
    names, lives = follow(file.nulls.rows())
    items.nulls = RowSet.union([items.nulls, RowSet.of(names[lives])])
