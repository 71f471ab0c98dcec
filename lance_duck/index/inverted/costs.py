"""Thresholds for building, reading and caching inverted indexes, each with its unit and reason.

A threshold changes speed and memory use, never a result.
"""

from __future__ import annotations

from typing import Final

POSTINGS_BYTES: Final = 128 << 20
"""Size of an open segment's cache of postings and positions, in bytes. The index of a few million texts fits."""

COLUMN_SHARE: Final = 4
"""A whole column may take up to 1 / `COLUMN_SHARE` of a partition's cache, which is a part of `POSTINGS_BYTES`. The
remainder is for other columns and single terms."""

READ_MEANWHILE: Final = 256 << 10
"""Number of column bytes that can be read in the time that a read of a few rows takes: 50 to 170 µs, at 1.3 to 4 GB/s
(`benchmarks/postings.py`)."""

POSITIONS_MEANWHILE: Final = 16 << 10
"""The same for positions, which are read more slowly. pylance compresses them term by term: a whole column takes 18 ns
per byte, and 2.5 ns per byte without compression."""

SEARCH_WINDOW: Final = 4096
"""Minimum window size for score bounds, in documents. With 2048, searches take a tenth longer
(`benchmarks/postings.py`)."""

WINDOW_POSTINGS: Final = 512
"""Target number of postings per window. Windows with fewer postings are enlarged up to `LARGEST_WINDOW`, because a
window costs as much as two hundred postings."""

LARGEST_WINDOW: Final = 1 << 14
"""Maximum number of documents in a window. With 4096, searches for several required words take a tenth to a third
longer (`benchmarks/postings.py`)."""

FIRST_WINDOWS: Final = 8
"""Number of windows that are searched first. They have the highest bounds, so many other windows can be skipped."""

MOST_PRUNED_TERMS: Final = 64
"""Maximum number of terms for which searches skip postings. With more terms, bounds are too loose to skip any."""

DOCUMENT_POSITIONS: Final = 1024
"""Initial buffer size for a word's positions in a document, in phrase searches. Few texts need more."""

WAITING_DOCUMENTS: Final = 1 << 13
"""Number of documents with all words of a phrase that are collected before their positions are read. Limits memory to
300 KB."""

TEXT_BYTES: Final = 4 << 20
"""Size of the texts that a thread analyses together, in bytes. It is reduced to a sixteenth of the memory limit if that
is less, because analysing texts takes several times their memory."""

SORTER_BYTES: Final = 1 << 30
"""Maximum size of a thread's vocabulary and sort buffers, in bytes. Larger ones are discarded and replaced."""

LEAST_PIECE: Final = 64 << 10
"""Minimum size of a partition's tokens, and of a chunk's postings, in bytes. This minimum overrides the memory limit,
because a tiny limit would create one partition per text."""

ENCODED_POSTINGS: Final = 1 << 19
"""Maximum number of postings that are encoded together, unless one term has more. Encoding a whole partition takes
twice its memory and is not faster (`benchmarks/full_text.py`)."""

HELD_SHARE: Final = 4
"""Tokens are written as a partition when they reach 1 / `HELD_SHARE` of the memory limit. Sorting and encoding
them takes twice their memory."""

ORDERED_SHARE: Final = 16
"""If more than 1 / `ORDERED_SHARE` of the documents match, they are found in the order of their rows. Sorting them
afterwards takes up to four times as long (`benchmarks/search_game.py`)."""

FEW_MATCHES: Final = 1000
"""Minimum estimated number of documents with all terms for reading impacts. Scoring fewer documents takes less time
than decoding the impacts (`benchmarks/full_text_search.py`)."""
