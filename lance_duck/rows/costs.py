"""The thresholds by which sets and sequences of rows choose their form: each with its unit and its reason.

A threshold changes speed and memory, never the rows. Figures are of single runs of the two ways on two cores.
"""

from __future__ import annotations

from typing import Final

BITMAP_FILE_ROWS: Final = 5000
"""Deleted rows of a fragment from which on a deletion file is a bitmap, below an Arrow file. As pylance writes."""

COMPRESSED_ROWS: Final = 1024
"""Deleted rows from which on an Arrow file of them is compressed: to begin takes 0.2 ms, and 4 KiB are a page of the
disk in any case."""

BIT_NAMES: Final = 1 << 14
"""Names from which on a set is made of bits. Dense names in any order take 245 µs as numbers and 35 µs as bits where
they are 8,192, but 43 µs and 128 µs where they are 1,024."""

BITSET_PIECE: Final = 4096
"""Numbers whose blocks of 64 bytes are looked at together: from 1,024 to 8,192 equally fast, with 16,384 a third
slower, when the blocks leave the processor's cache."""

TABLE_IDS: Final = 1 << 20
"""Fragment ids below which a table of all ids finds fragments: 4 MiB, made in 1 ms. It finds 100,000 rows in 0.8 ms
where a search takes 10 to 46 ms; from about 1,000 rows on it is the faster one together with its making."""

LISTED_SHARE: Final = 4
"""One row asked for, for so many rows that moved, from which on all moved rows are listed first. `benchmarks/costs.py`:
of addresses in no order and 2,000 runs of moved rows, the list is faster from an eighth of the rows on."""

WIDE_GAP: Final = 1024
"""Distance of neighbouring ids at which a segment is cut: a segment takes about 10 bytes, bits for the ids between 128.
Other values were not measured."""

SEGMENT_CUTS: Final = 256
"""Cuts of one sequence at most; beyond that ids are stored one by one, as none of the forms fits them: a
bound of the list that readers search."""
