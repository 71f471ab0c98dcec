"""The thresholds by which sets and sequences of rows choose their form: each with its unit and its reason.

A threshold changes speed and memory, never the rows. Figures are of `benchmarks/costs.py`.
"""

from __future__ import annotations

from typing import Final

BITMAP_FILE_ROWS: Final = 5000
"""Deleted rows of a fragment from which on a deletion file is a bitmap, below an Arrow file. As pylance writes."""

COMPRESSED_ROWS: Final = 1024
"""Deleted rows from which on an Arrow file of them is compressed: 400 to 1,500 rows take four to seven times as long
so, 3,000 about as long."""

DENSE_NAMES: Final = 4096
"""Names for each 65,536 numbers from which on a set is made of bits and not of sorted names: with 6,144, bits take a
sixth of the time, with 3,072 twice as long."""

BITSET_PIECE: Final = 4096
"""Numbers whose blocks of 64 bytes are looked at together: a bound of memory, 2 MiB of bits."""

TABLE_IDS: Final = 1 << 20
"""Fragment ids below which a table of all ids finds fragments: 100,000 rows take a tenth of the time so, 1,000 rows
twice as long at 0.8 million ids."""

LISTED_SHARE: Final = 4
"""One row asked for, for so many rows that moved, from which on all moved rows are listed first: the list is faster
from an eighth on."""

WIDE_GAP: Final = 1024
"""Distance of neighbouring ids at which a segment is cut: 200 runs of 1,000 ids, 5,000 apart, take 2 KB so and 149 KB
uncut."""

SEGMENT_CUTS: Final = 256
"""Maximum number of cuts of one sequence: a bound of the list that readers search."""

ROW_SET_BYTES: Final = 256
"""Bytes that a set of rows has besides its values, about: caches count them."""
