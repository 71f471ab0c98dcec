"""Thresholds that select the form of row sets and row sequences, each with its unit and reason.

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
"""Minimum density of a bit array, in row ids per 65,536 numbers. Sparser ids are sorted. Bits take a sixth of the time
with 6,144 names, and twice the time with 3,072."""

BITSET_PIECE: Final = 4096
"""Number of lookups per batch, which limits the memory for their 64-byte blocks to 2 MiB."""

TABLE_IDS: Final = 1 << 20
"""Maximum fragment id for lookups by a table of all ids. 100,000 rows then take a tenth of the time, but 1,000 rows
take twice as long with 0.8 million ids."""

LISTED_SHARE: Final = 4
"""Maximum number of moved rows per requested row for listing all moved rows first. The list is already faster at
eight."""

WIDE_GAP: Final = 1024
"""Minimum gap between consecutive ids at which a segment is split. 200 runs of 1,000 ids with gaps of 5,000 take 2 KB
split and 149 KB whole."""

SEGMENT_CUTS: Final = 256
"""Maximum number of splits of one sequence, which limits the list that readers search."""

ROW_SET_BYTES: Final = 256
"""Approximate overhead of a row set without its values, in bytes, for cache accounting."""
