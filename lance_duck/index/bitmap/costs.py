"""The thresholds for writing, reading and caching bitmap indexes, with units and reasons.

Thresholds change speed and memory use, never results. `benchmarks/bitmaps.py` measures their combined effect.
"""

from __future__ import annotations

from typing import Final

BITMAP_BYTES: Final = 64 << 20
"""Bitmap cache size of an open index, in bytes."""

FIRST_BITMAPS: Final = 64
"""Number of bitmaps that are read first. Their sizes determine how many bitmaps the next read takes."""

SMALL_BITMAP: Final = 512
"""Minimum mean size of bitmaps that are parsed one by one and cached, in bytes. Smaller bitmaps are parsed together.
5,000 bitmaps of ten rows then take a third of the time."""

COUNTED_BITMAPS: Final = 4096
"""Maximum number of keys for which an estimate sums the sizes of cached bitmaps. Each look-up takes a microsecond."""

SEARCHED_KEYS: Final = 1024
"""Number of string keys that can be compared with a set of values in the time that a search for one value takes. For
256 values and 10,000 keys, the comparison takes a fifteenth of the time of 256 searches."""

RUN_BYTES: Final = 256 << 20
"""Maximum size of the values in a run, in bytes. The bitmaps of a run then always fit into one array."""

ENTRIES_AT_ONCE: Final = 1 << 14
"""Number of entries that are merged or written together. Limits memory."""

ENTRIES_BLOCK_BYTES: Final = 1 << 19
"""Size of the bitmaps in memory for each run of a merge, in bytes. Limits memory, because there may be many runs."""

VALUES_SAMPLE: Final = 1 << 16
"""Sample size for choosing between sorting and hashing a run's values. If a million numbers are distinct, sorting takes
0.3 to 0.65 of the time of hashing. If only a thousand are distinct, sorting takes 4 times as long as hashing."""
