"""The thresholds by which changes choose their way: each with its unit and its reason.

A threshold changes speed and memory, never the rows of the table. `benchmarks/changes.py` and `benchmarks/indexes.py`
measure what they give together; none was measured by itself. Bounds of memory stand beside what they bound.
"""

from __future__ import annotations

from typing import Final

# Rows

ROWS_AT_ONCE: Final = 1 << 16
"""Rows that are read by address, joined or written at once: enough that the work for each batch does not count."""

BYTES_AT_ONCE: Final = 8 << 20
"""Bytes of these rows, at most, where rows are wide."""

DELETION_WRITERS: Final = 8
"""Threads that write deletion files to an object store: they wait for the network. A local disk is waited for once, by
the commit."""

SPREAD_KEYS: Final = 64
"""Numbers from the least key to the greatest, for each key, up to which a table has a byte for each number; beyond,
keys are hashed."""

SPREAD_BYTES: Final = 1 << 23
"""Bytes of such a table that it may have however few the keys are."""

SET_KEYS: Final = 1 << 18
"""Keys that are neither numbers nor texts up to which rows are looked for in a set of them; beyond, all rows are
matched without a sieve."""

# Merges

MATCHED_ROWS: Final = 1 << 18
"""Rows of the table that are matched at once with a source, or twice those of the source where these are more."""

ROWS_PER_KEY: Final = 8192
"""Rows of a table for each key of the source from which on keys are looked up: each may be on a page of its own."""

PART_KEYS: Final = 1 << 18
"""Inserted keys that a part of a merge sends to its commit: with more, the commit takes any new row for one of them."""

JOINED_SOURCE_BYTES: Final = 64 << 20
"""Bytes of a source up to which its batches are joined: rows are picked from one array faster than from many."""

# Indexes

INDEX_BATCH_BYTES: Final = 16 << 20
"""Bytes of the batches of values and rows that indexes are built from."""

SMALL_SEGMENT: Final = 1 << 18
"""Rows of a segment that `optimize_indices` always merges with newer ones."""

SMALL_VECTOR_SEGMENT: Final = 1 << 14
"""The same of vectors, whose graphs and partitions take longer to merge."""

MERGED_RATIO: Final = 4
"""Times the rows of all newer segments that a larger segment may have to be merged with them: a row is then rewritten
only a few times while an index grows."""

WHOLE_SAMPLE_BYTES: Final = 64 << 20
"""Bytes of vectors up to which all of them are read for training: a sample would touch most pages, too."""

SAMPLE_BLOCK_BYTES: Final = 16 << 20
"""Bytes of sampled vectors that are read at once."""

SAMPLE_GROWTH: Final = 16
"""Times more vectors that are sampled where too many of a sample were null, or could not be used."""
