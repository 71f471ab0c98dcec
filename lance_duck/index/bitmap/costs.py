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
"""Bytes of a bitmap, on average, below which many are parsed at once and none is kept: 5,000 of ten rows take a third
of the time so."""

COUNTED_BITMAPS: Final = 4096
"""Keys up to which their number of rows is summed from bitmaps that are kept: looking for one takes a microsecond."""

SEARCHED_KEYS: Final = 1024
"""Texts among the keys of an index that are compared at once in the time of a search for one: 256 of 10,000 keys take a
fifteenth of the time so."""

RUN_BYTES: Final = 256 << 20
"""Bytes of values that become a run of a bitmap index: its bitmaps fit into one array, whatever the values are."""

ENTRIES_AT_ONCE: Final = 1 << 14
"""Entries of a bitmap index that are merged or written at once: a bound of memory."""

ENTRIES_BLOCK_BYTES: Final = 1 << 19
"""Bytes of the bitmaps of entries that each run of a merge holds: a bound of memory, as runs may be many."""

VALUES_SAMPLE: Final = 1 << 16
"""Values that tell whether a run of a bitmap index is sorted or hashed: a million distinct numbers are sorted in 0.3 to
0.65 of the time, a thousand in 4 times."""
