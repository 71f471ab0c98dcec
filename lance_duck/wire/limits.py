"""Limits of the numbers that name fragments and rows on disk."""

from __future__ import annotations

from typing import Final

FRAGMENT_IDS: Final = 1 << 32
"""Exclusive upper bound of fragment ids, which are the upper half of a row address."""

ROW_OFFSETS: Final = 1 << 32
"""Exclusive upper bound of row offsets in a fragment, which are the lower half of a row address."""

OFFSET_MASK: Final = ROW_OFFSETS - 1
"""The bits of a row address that are the offset."""

ROW_IDS: Final = 1 << 64
"""Exclusive upper bound of row addresses and stable row ids."""
