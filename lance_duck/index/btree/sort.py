"""Entries that are sorted in memory."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from lance_duck.index.btree.keys import BTreeKeys, FixedKeys
from lance_duck.index.btree.order import order_of
from lance_duck.index.btree.write import TreeWriter
from lance_duck.index.kind import Rows

# Copies of the values that there are at once, and bytes of words and places for each.
_COPIES = 2
_WORDS = 56


def row_bytes(size: int, count: int) -> int:
    """Return the bytes that it takes to sort an entry, where `count` values have `size` bytes."""
    return _WORDS + _COPIES * -(-size // max(1, count))


def write_sorted(tree: TreeWriter, values: pa.Array, rows: Rows, make: Callable[[pa.Array], BTreeKeys]) -> None:
    """Write entries in order: nulls first, equal values by their rows.

    Args:
        tree: Takes them.
        values: May be null.
        rows: As many.
        make: Makes keys of values.
    """
    if not (rows[1:] >= rows[:-1]).all():
        order = order_of(FixedKeys(rows))
        values, rows = values.take(order), rows[order]
    if values.null_count:
        null = values.is_null().to_numpy(zero_copy_only=False)
        tree.write_nulls(rows[null])
        values, rows = values.drop_null(), rows[~null]
    tree.write_sorted(values, rows, order_of(make(values)))
