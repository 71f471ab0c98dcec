"""The thresholds by which bitmap indexes are written, read and kept: each with its unit and its reason.

A threshold changes speed and memory, never an answer. `benchmarks/bitmaps.py` measures what they give together; none
was measured by itself.
"""

from __future__ import annotations

from typing import Final

BITMAP_BYTES: Final = 64 << 20
"""Bytes of bitmaps that an open bitmap index keeps."""

ROW_SET_BYTES: Final = 256
"""Bytes that a set of rows has besides its values, about."""

FIRST_BITMAPS: Final = 64
BITMAPS_AT_ONCE: Final = 1 << 18
BITMAP_BLOCK_BYTES: Final = 16 << 20
"""Bitmaps that are read first, and at most at once: the sizes of the first tell how many fill a block of so many
bytes."""

SMALL_BITMAP: Final = 512
"""Bytes of a bitmap, on average, below which many are parsed at once and none is kept."""

COUNTED_BITMAPS: Final = 4096
"""Keys up to which their number of rows is summed from bitmaps that are kept: looking for one takes a microsecond."""

BINARY_SEARCH_KEYS: Final = 256
"""Keys asked for from which on those of an index are looked up at once."""

RUN_BYTES: Final = 256 << 20
"""Bytes of values that become a run of a bitmap index: its bitmaps fit into one array, whatever the values are."""

ENTRIES_AT_ONCE: Final = 1 << 14
ENTRIES_BLOCK_BYTES: Final = 1 << 19
"""Entries of a bitmap index that are merged at once, and bytes of their bitmaps."""

VALUES_SAMPLE: Final = 1 << 16
"""Values that tell whether a run of a bitmap index is sorted or hashed."""

MAPS_AT_ONCE: Final = 1 << 14
MAP_ROWS_AT_ONCE: Final = 1 << 18
"""Bitmaps that are written at once, and their rows."""
