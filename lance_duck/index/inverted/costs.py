"""The thresholds by which inverted indexes are built, read and kept: each with its unit and its reason.

A threshold changes speed and memory, never an answer.
"""

from __future__ import annotations

from typing import Final

POSTINGS_BYTES: Final = 128 << 20
"""Bytes of postings and positions that an open segment keeps: a bound of memory, all of an index of a few million
texts."""

COLUMN_SHARE: Final = 4
"""Inverse share of `POSTINGS_BYTES`, which the partitions divide, up to which a column of postings is kept whole: it
leaves room for other columns and for single terms."""

READ_MEANWHILE: Final = 256 << 10
"""Bytes of a column that are read in the time in which a few rows of it are: 50 to 170 µs, at 1.3 to 4 GB/s
(`benchmarks/postings.py`)."""

SEARCH_WINDOW: Final = 4096
"""Documents that are bounded together in a search for the best ones: 2048 take a tenth longer
(`benchmarks/postings.py`)."""

WINDOW_POSTINGS: Final = 512
"""Postings of all terms below which windows are made larger, up to `LARGEST_WINDOW`: a window costs as much as two
hundred postings."""

LARGEST_WINDOW: Final = 1 << 14
"""Maximum number of documents of a window: with 4096, searches for several required words take a tenth to a third
longer (`benchmarks/postings.py`)."""

FIRST_WINDOWS: Final = 8
"""Windows that are searched before the others, the most promising ones, so that others can be skipped."""

MOST_PRUNED_TERMS: Final = 64
"""Terms up to which such a search skips postings; with more, bounds say little, and each posting is scored."""

DOCUMENT_POSITIONS: Final = 1024
"""Positions of a word in a document that a search of phrases has room for at first: all but a few texts need fewer."""

WAITING_DOCUMENTS: Final = 1 << 13
"""Documents with all words of a phrase that are gathered before positions are read: a bound of memory, 300 KB."""

TEXT_BYTES: Final = 4 << 20
"""Bytes of texts that a thread analyses at once, or a sixteenth of the memory limit: several times as many are held
meanwhile."""

SORTER_BYTES: Final = 1 << 30
"""Bytes of a thread's vocabulary, and of its memory for sorting, above which it takes new ones: a bound of memory."""

LEAST_PIECE: Final = 64 << 10
"""Bytes of tokens that become a partition, and of postings of a piece of one, whatever the memory limit: with fewer,
each text would be one."""

ENCODED_POSTINGS: Final = 1 << 19
"""Postings that are encoded at once, unless one term has more: all of a partition take twice its memory and are no
quicker (`benchmarks/full_text.py`)."""

HELD_SHARE: Final = 4
"""Share of the memory limit, one in so many, that tokens may take before they become a partition: sorted and encoded,
they take as much again twice."""

FEW_MATCHES: Final = 1000
"""Documents with all of several terms, if these were independent, up to which impacts are not read: scoring so many
takes less time than decoding the impacts of the terms (`benchmarks/full_text_search.py`)."""
