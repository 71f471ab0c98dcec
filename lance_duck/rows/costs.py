"""The thresholds by which sets and sequences of rows choose their form: each with its unit and its reason.

A threshold changes speed and memory, never the rows. Figures are of `benchmarks/costs.py`.
"""

from __future__ import annotations

from typing import Final

BITMAP_FILE_ROWS: Final = 5000
"""Minimum deleted row count for a bitmap deletion file; smaller ones are Arrow files, as in pylance."""

COMPRESSED_ROWS: Final = 1024
"""Minimum deleted row count for compressing an Arrow deletion file. Compression takes four to seven times as long for
400 to 1,500 rows, and about as long for 3,000."""

DENSE_NAMES: Final = 4096
"""Minimum density of a bit array, in row names per 65,536 numbers; sparser names are sorted. Bits take a sixth of the
time with 6,144 names, and twice the time with 3,072."""

BITSET_PIECE: Final = 4096
"""Numbers whose blocks of 64 bytes are looked at together: a bound of memory, 2 MiB of bits."""

TABLE_IDS: Final = 1 << 20
"""Fragment ids below which a table of all ids finds fragments: 100,000 rows take a tenth of the time so, 1,000 rows
twice as long at 0.8 million ids."""

LISTED_SHARE: Final = 4
"""Maximum number of moved rows per requested row for listing all moved rows first. The list is already faster at
eight."""

WIDE_GAP: Final = 1024
"""Distance of neighbouring ids at which a segment is cut: 200 runs of 1,000 ids, 5,000 apart, take 2 KB so and 149 KB
uncut."""

SEGMENT_CUTS: Final = 256
"""Maximum number of cuts of one sequence: a bound of the list that readers search."""

ROW_SET_BYTES: Final = 256
"""Approximate overhead of a row set without its values, in bytes, for cache accounting."""
