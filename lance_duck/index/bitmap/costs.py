"""The thresholds by which bitmap indexes are written, read and kept: each with its unit and its reason.

A threshold changes speed and memory, never an answer; `benchmarks/bitmaps.py` measures what they give together.
"""

from __future__ import annotations

from typing import Final

BITMAP_BYTES: Final = 64 << 20
"""Bytes of bitmaps that an open bitmap index keeps: a bound of memory."""

FIRST_BITMAPS: Final = 64
"""Bitmaps that are read first: their sizes tell how many fill a block."""

SMALL_BITMAP: Final = 512
"""Bytes of a bitmap, on average, below which many are parsed at once and none is kept: a set of rows takes as many."""

COUNTED_BITMAPS: Final = 4096
"""Keys up to which their number of rows is summed from bitmaps that are kept: looking for one takes a microsecond."""

BINARY_SEARCH_KEYS: Final = 256
"""Keys asked for from which on those of an index are looked up at once, and not one by one."""

RUN_BYTES: Final = 256 << 20
"""Bytes of values that become a run of a bitmap index: its bitmaps fit into one array, whatever the values are."""

ENTRIES_AT_ONCE: Final = 1 << 14
"""Entries of a bitmap index that are merged or written at once: a bound of memory."""

ENTRIES_BLOCK_BYTES: Final = 1 << 19
"""Bytes of the bitmaps of entries that each run of a merge holds: a bound of memory, as runs may be many."""

VALUES_SAMPLE: Final = 1 << 16
"""Values that tell whether a run of a bitmap index is sorted or hashed: sorting pays where most are distinct."""
