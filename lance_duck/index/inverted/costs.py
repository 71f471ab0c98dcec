"""The thresholds by which inverted indexes are built, read and kept: each with its unit and its reason.

A threshold changes speed and memory, never an answer. None of them is measured where no benchmark is named.
"""

from __future__ import annotations

from typing import Final

POSTINGS_BYTES: Final = 128 << 20
"""Bytes of postings and positions that an open segment keeps: all of an index of a few million texts."""

COLUMN_SHARE: Final = 4
"""Inverse share of `POSTINGS_BYTES`, which the partitions divide, up to which a column of postings is kept whole: a
quarter holds the blocks of some hundred thousand texts, and leaves room for other columns and for single terms."""

READ_MEANWHILE: Final = 256 << 10
"""Bytes of a column that are read in the time in which a few rows of it are: 50 to 170 µs, at 1.3 to 4 GB/s
(`benchmarks/postings.py`)."""

JOINED_POSTINGS: Final = 4 << 20
"""Bytes up to which postings of all terms of a query are kept as one, beside those of each term: joining them is a
tenth of a query of three terms (`benchmarks/full_text_search.py`), and less of one that reads more."""

SEARCH_WINDOW: Final = 4096
"""Documents that are bounded together in a search for the best ones; 2048 takes a tenth longer, 8192 is as quick
(`benchmarks/postings.py`)."""

WINDOW_POSTINGS: Final = 512
"""Postings of all terms below which windows are made larger, up to `LARGEST_WINDOW`: a window costs half a microsecond,
as two hundred postings do. Whole queries take 2 to 8 % longer with another one from 128 to 2048
(`benchmarks/costs.py`)."""

LARGEST_WINDOW: Final = 1 << 14
"""Most documents of a window: sums of their scores take 64 KB. Whole queries take a tenth longer with a quarter of
them, and are as quick with up to four times as many (`benchmarks/costs.py`)."""

INTERSECTED_WINDOW: Final = 1 << 14
"""Documents of a window of a search for several required terms that does without bounds: 4096 takes a tenth to a third
longer, 32,768 is as quick (`benchmarks/postings.py`)."""

FIRST_WINDOWS: Final = 8
"""Windows that are searched before the others, the most promising ones, so that others can be skipped."""

MOST_PRUNED_TERMS: Final = 64
"""Terms up to which such a search skips postings; with more, bounds say little, and each posting is scored."""

DOCUMENT_POSITIONS: Final = 1024
"""Positions of a word in a document that a search of phrases has room for: 16 KB, more than all but a few texts need.
For one with more the search begins again, with room for twice as many as that one has."""

WAITING_DOCUMENTS: Final = 1 << 13
"""Documents with all words of a phrase that are gathered before positions are read, of the greatest scores first: so
many take 300 KB. Queries are as quick with 2048 to 16,384, and take a twentieth longer with 32,768
(`benchmarks/costs.py`)."""

TEXT_BYTES: Final = 4 << 20
"""Bytes of texts that a thread analyses at once: filters run once for each distinct word of them, and several times as
many bytes are held meanwhile. A sixteenth of the memory limit, if that is less: with limits under 64 MB the tokens of a
piece are what a build holds. See `TEXT_BATCH_BYTES` of `verbs.costs`."""

SORTER_BYTES: Final = 1 << 30
"""Bytes of a thread's vocabulary, and of its memory for sorting, above which it takes new ones, whatever the memory
limit: a vocabulary that is used again has room for as many n-grams as `text.words` allows."""

LEAST_PIECE: Final = 64 << 10
"""Bytes of postings and positions of a piece of a partition that is rewritten, whatever the memory limit: for each
piece all documents are gone through, so that a piece for each term would take time without end."""

LEAST_HELD: Final = 64 << 10
"""Bytes of tokens that become a partition, whatever the memory limit: a search looks into each partition, of which
there would be one for each text."""

ENCODED_POSTINGS: Final = 1 << 19
"""Postings that are encoded at once, unless one term has more: some 20 MB while that lasts. Encoding all of a partition
at once is no quicker, and takes twice its memory (`benchmarks/full_text.py`)."""

INVERTED_POSTINGS: Final = 1 << 20
"""Postings that are sorted at once, unless one term has more: 8 MB, and 4 for each million of their positions."""

HELD_SHARE: Final = 4
"""Share of the memory limit, one in so many, that tokens may take before they become a partition: sorted for a merge,
they take as much again, and encoded. The contents of partitions that are merged likewise."""

FEW_MATCHES: Final = 1000
"""Documents with all of several terms, if these were independent, up to which impacts are not read: scoring so many
takes less time than decoding the impacts of the terms (`benchmarks/full_text_search.py`)."""
