"""The thresholds for writing, reading and caching bitmap indexes, with units and reasons.

Thresholds change speed and memory use, never results. `benchmarks/bitmaps.py` measures their combined effect.
"""

from __future__ import annotations

from typing import Final

BITMAP_BYTES: Final = 64 << 20
"""Bitmap cache size of an open index, in bytes."""

FIRST_BITMAPS: Final = 64
"""Number of bitmaps that are read first. Their sizes determine how many fill a block."""

SMALL_BITMAP: Final = 512
"""Bitmaps of a smaller mean size, in bytes, are parsed together and not cached. 5,000 bitmaps of ten rows take a third
of the time."""

COUNTED_BITMAPS: Final = 4096
"""Maximum number of keys whose row count is summed from cached bitmaps. A cache look-up takes a microsecond."""

SEARCHED_KEYS: Final = 1024
"""Number of string keys that are compared in the time of one key search. 256 of 10,000 keys take a fifteenth of the
time."""

RUN_BYTES: Final = 256 << 20
"""Size of the values in a run of a bitmap index, in bytes. Its bitmaps always fit into one array."""

ENTRIES_AT_ONCE: Final = 1 << 14
"""Number of entries that are merged or written together. Bounds memory."""

ENTRIES_BLOCK_BYTES: Final = 1 << 19
"""Size of the bitmaps that each run of a merge holds, in bytes. Bounds memory, as there may be many runs."""

VALUES_SAMPLE: Final = 1 << 16
"""Sample size for choosing between sorting and hashing a run's values. Sorting a million distinct numbers takes 0.3 to
0.65 of the time, sorting a thousand takes 4 times as long."""
