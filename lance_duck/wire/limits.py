"""How many there can be of what is counted on disk."""

from __future__ import annotations

from typing import Final

FRAGMENT_IDS: Final = 1 << 32
"""Fragment ids are below it: they are the upper half of a row address."""

ROW_OFFSETS: Final = 1 << 32
"""Offsets of rows in a fragment are below it: they are the lower half of a row address."""

OFFSET_MASK: Final = ROW_OFFSETS - 1
"""The bits of a row address that are the offset."""

ROW_IDS: Final = 1 << 64
"""Row addresses and stable row ids are below it."""
