"""The thresholds for reading and building R-trees, with units and reasons. Results never change."""

from __future__ import annotations

from typing import Final

PAGE_BYTES: Final = 64 << 20
"""Cache size for pages of items of an open index, in bytes."""

ITEM_BYTES: Final = 64
"""Memory of an item during a build, in bytes: its box, its row, its place on the curve, and its position."""

BLOCK_ITEMS: Final = 1 << 18
"""Number of items that are read or written at once. Limits memory to about 10 MiB."""
