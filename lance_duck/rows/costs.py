"""Thresholds that select the form of row sets and row sequences, each with its unit and reason.

A threshold changes speed and memory, never the rows. `benchmarks/costs.py` measures the figures.
"""

from __future__ import annotations

from typing import Final

BITMAP_FILE_ROWS: Final = 5000
"""Minimum deleted row count for a bitmap deletion file. For fewer rows, Arrow files are written, as in pylance."""

COMPRESSED_ROWS: Final = 1024
"""Minimum deleted row count for compressing an Arrow deletion file. For 400 to 1,500 rows, a compressed file takes four
to seven times as long as an uncompressed file. For 3,000 rows, it takes about as long."""

DENSE_NAMES: Final = 4096
"""Minimum density of a bit array, in row ids per 65,536 numbers. Sparser ids are sorted instead. With 6,144 ids, the
bit array takes a sixth of the time of a sort. With 3,072 ids, it takes twice the time."""

BITSET_PIECE: Final = 4096
"""Number of lookups per batch. It limits the memory for their 64-byte blocks to 2 MiB."""

TABLE_IDS: Final = 1 << 20
"""Exclusive limit of fragment ids for lookups in an array with an entry for each id. Compared with a binary search, a
lookup of 100,000 rows takes a tenth of the time. With 0.8 million ids, a lookup of 1,000 rows takes twice the time of a
binary search."""

LISTED_SHARE: Final = 4
"""Maximum ratio of moved rows to requested rows at which all moved rows are listed first. At a ratio of eight, the list
is already faster than a search among the runs."""

WIDE_GAP: Final = 1024
"""Maximum gap between consecutive ids at which a segment is not split. If 200 runs of 1,000 ids have gaps of 5,000, the
split segments take 2 KB, and a single segment takes 149 KB."""

SEGMENT_CUTS: Final = 256
"""Maximum number of splits of one sequence. It limits the number of segments that readers search."""

ROW_SET_BYTES: Final = 256
"""Approximate overhead of a row set without its values, in bytes, for cache accounting."""
