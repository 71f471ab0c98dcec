"""Thresholds for building, reading and caching inverted indexes, each with its unit and reason.

A threshold changes speed and memory use, never a result.
"""

from __future__ import annotations

from typing import Final

POSTINGS_BYTES: Final = 128 << 20
"""Size of an open segment's cache of postings and positions, in bytes: the whole index of a few million texts."""

COLUMN_SHARE: Final = 4
"""Inverse share of a partition's part of `POSTINGS_BYTES` up to which a column is cached whole. The remainder is for
other columns and single terms."""

READ_MEANWHILE: Final = 256 << 10
"""Column size that is read in the time of a few rows, in bytes: 50 to 170 µs, at 1.3 to 4 GB/s
(`benchmarks/postings.py`)."""

SEARCH_WINDOW: Final = 4096
"""Minimum window size for score bounds, in documents. With 2048, searches take a tenth longer
(`benchmarks/postings.py`)."""

WINDOW_POSTINGS: Final = 512
"""Target number of postings per window. Windows with fewer are enlarged, up to `LARGEST_WINDOW`, because a window costs
as much as two hundred postings."""

LARGEST_WINDOW: Final = 1 << 14
"""Maximum number of documents in a window. With 4096, searches for several required words take a tenth to a third
longer (`benchmarks/postings.py`)."""

FIRST_WINDOWS: Final = 8
"""Number of windows with the highest bounds that are searched first, so that others can be skipped."""

MOST_PRUNED_TERMS: Final = 64
"""Maximum number of terms for skipping postings. With more, bounds are too loose, and each posting is scored."""

DOCUMENT_POSITIONS: Final = 1024
"""Initial buffer size for a word's positions in a document, in phrase searches. Few texts need more."""

WAITING_DOCUMENTS: Final = 1 << 13
"""Number of phrase candidates gathered before positions are read. Bounds memory to 300 KB."""

TEXT_BYTES: Final = 4 << 20
"""Size of the texts that a thread analyses together, in bytes. At most a sixteenth of the memory limit, because the
analysis takes several times as much."""

SORTER_BYTES: Final = 1 << 30
"""Maximum size of a thread's vocabulary and sort buffers, in bytes. Larger ones are replaced."""

LEAST_PIECE: Final = 64 << 10
"""Minimum size of a partition's tokens, and of a chunk's postings, in bytes. It overrides the memory limit, because a
tiny limit would create one partition per text."""

ENCODED_POSTINGS: Final = 1 << 19
"""Maximum number of postings that are encoded together, unless one term has more. Encoding whole partitions takes
twice their memory and is no faster (`benchmarks/full_text.py`)."""

HELD_SHARE: Final = 4
"""Inverse share of the memory limit at which tokens become a partition. Sorting and encoding take twice that share."""

FEW_MATCHES: Final = 1000
"""Impacts are not read below this estimated number of documents with all terms. Scoring these takes less time than
decoding the impacts (`benchmarks/full_text_search.py`)."""
