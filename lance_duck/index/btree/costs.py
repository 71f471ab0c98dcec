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
"""Number of pages that are read and searched together. Limits memory to about 16 MiB."""

WIDE_PAGES: Final = 3
"""Maximum number of pages in a span of adjacent entries that is read with its values. Longer spans are read without
values: 20,000 uncached entries then take 0.15 to 0.3 of the time."""

VAGUE_SHARE: Final = 8
"""Estimates by whole pages are used up to 1 / `VAGUE_SHARE` of all rows. Larger estimates are probably too high,
because the values are scattered over many pages."""

END_SHARE: Final = 8
END_GROWTH: Final = 16
"""Up to 1 / `END_SHARE` of the entries are searched for the minimum or maximum live value. A search of all entries
would read as many bytes as a scan of a numeric column. Each step searches `END_GROWTH` times as many entries as the
previous step."""

TREE_PAGE_BYTES: Final = 4 << 20
"""Size of the values in a page of the data file, in bytes. A look-up reads few pages."""

TREE_SLICE_PAGES: Final = 64
"""Number of pages that are sorted and written together. Limits memory."""

ARRAY_BYTES: Final = 1 << 30
"""Maximum size of the values that are sorted together, in bytes. They fit into one array with 32-bit offsets."""

SORT_PASSES: Final = 6
"""Maximum length of strings that are sorted word by word, in 8-byte words. Arrow sorts longer strings. Random strings
take a quarter of Arrow's time. Strings that differ only after 100 bytes take 4 times Arrow's time."""

SORT_SAMPLE: Final = 4096
"""Sample size for detecting strings with few distinct values. Their dictionary is sorted instead: 500,000 strings with
1,000 distinct values then take a twelfth of the time."""

MERGE_SAMPLE_PAGES: Final = 8
"""Number of pages that are sampled to estimate the entry size of a B-tree. The sizes of pages differ little."""

SORT_COPIES: Final = 2
SORT_WORD_BYTES: Final = 56
"""Number of simultaneous copies of the values during a sort, and size of a value's words and positions, in bytes."""
