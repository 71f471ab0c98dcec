"""Limits of the numbers that name fragments and rows on disk."""

from __future__ import annotations

from typing import Final

FRAGMENT_IDS: Final = 1 << 32
"""Bound of fragment ids, which are below it: they are the upper half of a row address."""

ROW_OFFSETS: Final = 1 << 32
"""Bound of the offsets of rows in a fragment, which are below it: they are the lower half of a row address."""

OFFSET_MASK: Final = ROW_OFFSETS - 1
"""The bits of a row address that are the offset."""

ROW_IDS: Final = 1 << 64
"""Bound of row addresses and stable row ids, which are below it."""
