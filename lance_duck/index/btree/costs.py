"""The thresholds for writing, reading and caching B-trees, with units and reasons.

Thresholds change speed and memory use, never results. `benchmarks/indexes.py` measures their combined effect.
"""

from __future__ import annotations

from typing import Final

TREE_BYTES: Final = 256 << 20
"""Page cache size of an open B-tree, in bytes: 16 million 8-byte keys with their rows."""

SOURCE_TREE_BYTES: Final = 1 << 20
"""Page cache size of a B-tree that is merged, in bytes. Each page is read once, in order."""

PAGES_AT_ONCE: Final = 256
"""Number of pages that are read and searched together. Bounds memory to about 16 MiB."""

WIDE_PAGES: Final = 3
"""Longer spans of adjacent entries, in pages, are read without values. 20,000 uncached entries take 0.15 to 0.3 of the
time."""

VAGUE_SHARE: Final = 8
"""Inverse share of all rows above which an estimate by whole pages is discarded: scattered values touch many pages."""

END_SHARE: Final = 8
END_GROWTH: Final = 16
"""Inverse share of the entries to search for the minimum or maximum live value, and growth factor of each step.
Scanning a numeric column reads as many bytes as the rows of all entries."""

TREE_PAGE_BYTES: Final = 4 << 20
"""Size of a page of the data file, in bytes of values. A look-up reads few of them."""

TREE_SLICE_PAGES: Final = 64
"""Number of pages that are sorted and written together. Bounds memory."""

ARRAY_BYTES: Final = 1 << 30
"""Maximum size of values that are sorted together, in bytes. They fit into one array with 32-bit offsets."""

SORT_PASSES: Final = 6
"""Strings of up to this many 8-byte words are sorted word by word, longer ones by Arrow. Random strings take a quarter
of Arrow's time, strings that differ only after 100 bytes take 4 times as long."""

SORT_SAMPLE: Final = 4096
"""Sample size for detecting strings with few distinct values, which are sorted by dictionary. 1,000 distinct values in
500,000 strings take a twelfth of the time."""

MERGE_SAMPLE_PAGES: Final = 8
"""Number of pages sampled to estimate the entry size of a B-tree. Sizes differ little."""

SORT_COPIES: Final = 2
SORT_WORD_BYTES: Final = 56
"""Number of simultaneous copies of the values during a sort, and size of a value's words and positions, in bytes."""
