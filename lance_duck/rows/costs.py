"""The thresholds by which sets and sequences of rows choose their form: each with its unit and its reason.

A threshold changes speed and memory, never the rows.
"""

from __future__ import annotations

from typing import Final

BITMAP_FILE_ROWS: Final = 5000
"""Deleted rows of a fragment from which on a deletion file is a bitmap, below an Arrow file. As pylance writes."""

COMPRESSED_ROWS: Final = 1024
"""Deleted rows from which on an Arrow file of them is compressed: 4 KiB are a page of the disk in any case.
`benchmarks/costs.py`: compressed, 400 to 1,500 rows take four to seven times as long, 3,000 about as long to half as
long again; a file is written once."""

DENSE_NAMES: Final = 4096
"""Names for each 65,536 numbers from which on a set is made of bits and not of sorted names: a roaring bitmap keeps
bits from there on. `benchmarks/costs.py`: of 262,144 names in no order, bits take a sixth to a tenth of the time of
sorted names with 6,144 and more of them, twice as long with 3,072, and 3.6 times with 1,536."""

BITSET_PIECE: Final = 4096
"""Numbers whose blocks of 64 bytes are looked at together, so that the blocks stay in the processor's cache.
`benchmarks/costs.py`: within noise from 1,024 to 16,384."""

TABLE_IDS: Final = 1 << 20
"""Fragment ids below which a table of all ids finds fragments: 4 MiB, made once for all searches of a segment.
`benchmarks/costs.py`, of 1,000 fragments and making the table each time: to find 100,000 rows takes a tenth of the time
of a search of the ids where the largest one is below the threshold, and a fifth beyond it; to find 1,000 rows takes
twice as long where it is 0.8 million, and five times where it is 1.6 million."""

LISTED_SHARE: Final = 4
"""One row asked for, for so many rows that moved, from which on all moved rows are listed first. `benchmarks/costs.py`:
of addresses in no order and 2,000 runs of moved rows, the list is faster from an eighth of the rows on."""

WIDE_GAP: Final = 1024
"""Distance of neighbouring ids at which a segment is cut: a segment takes about 10 bytes, bits for the ids between 128.
Other values were not measured."""

SEGMENT_CUTS: Final = 256
"""Cuts of one sequence at most; beyond that ids are stored one by one, as none of the forms fits them: a
bound of the list that readers search."""
