"""Limits of fragment ids, row offsets and row ids on disk."""

from __future__ import annotations

from typing import Final

FRAGMENT_IDS: Final = 1 << 32
"""Exclusive upper bound of fragment ids. A fragment id is the upper half of a row address."""

ROW_OFFSETS: Final = 1 << 32
"""Exclusive upper bound of row offsets in a fragment. A row offset is the lower half of a row address."""

OFFSET_MASK: Final = ROW_OFFSETS - 1
"""Mask of the offset bits in a row address."""

ROW_IDS: Final = 1 << 64
"""Exclusive upper bound of row addresses and stable row ids."""
