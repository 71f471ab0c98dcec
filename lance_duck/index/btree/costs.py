"""The thresholds by which B-trees are written, read and kept: each with its unit and its reason.

A threshold changes speed and memory, never an answer; `benchmarks/indexes.py` measures what they give together.
"""

from __future__ import annotations

from typing import Final

TREE_BYTES: Final = 256 << 20
"""Bytes of pages that an open B-tree keeps: a bound of memory, 16 million keys of 8 bytes with their rows."""

SOURCE_TREE_BYTES: Final = 1 << 20
"""Bytes of pages that a B-tree keeps while it is merged: each page is read once, in order."""

PAGES_AT_ONCE: Final = 256
"""Pages of a B-tree that are read and looked into together: a bound of memory, about 16 MiB."""

WIDE_PAGES: Final = 3
"""Pages' worth of adjacent entries from which on their rows are read without their values: 20,000 entries that are not
cached take 0.15 to 0.3 of the time so."""

VAGUE_SHARE: Final = 8
"""One of so many rows, beyond which an estimate by whole pages is none: values that lie anywhere touch many pages."""

END_SHARE: Final = 8
END_GROWTH: Final = 16
"""One of so many entries, from an end on, that are looked at for a row that lives, and the factor by which each look is
longer than the one before: a scan of a column of numbers reads as many bytes as the rows of all entries take."""

TREE_PAGE_BYTES: Final = 4 << 20
"""Bytes of values after which a page of the entries is cut: a look-up reads few of them."""

TREE_SLICE_PAGES: Final = 64
"""Pages of a B-tree that are put in order and written at once: a bound of memory."""

ARRAY_BYTES: Final = 1 << 30
"""Bytes of values that are sorted at once: they fit into one array with offsets of 32 bits."""

SORT_PASSES: Final = 6
"""Words of 8 bytes up to which texts are sorted word by word and not by Arrow: random ones take a quarter of the time
so, ones that differ only beyond 100 bytes take 4 times."""

SORT_SAMPLE: Final = 4096
"""Texts that tell whether there are few distinct ones, which are sorted instead: 1,000 distinct ones of 500,000 take a
twelfth of the time so."""

MERGE_SAMPLE_PAGES: Final = 8
"""Pages of a B-tree that tell how many bytes its entries take: sizes differ little."""

SORT_COPIES: Final = 2
SORT_WORD_BYTES: Final = 56
"""Copies of the values that there are at once while they are sorted, and bytes of words and places for each."""
