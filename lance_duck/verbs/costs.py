"""The thresholds by which changes choose their way: each with its unit and its reason.

A threshold changes speed and memory, never the rows of the table. `benchmarks/changes.py` and `benchmarks/indexes.py`
measure what they give together. Bounds of memory stand beside what they bound.
"""

from __future__ import annotations

from typing import Final

# Rows

ROWS_AT_ONCE: Final = 1 << 16
"""Rows that are read by address, joined or written at a time: enough that the work for each batch does not count."""

BYTES_AT_ONCE: Final = 8 << 20
"""Bytes of such a batch at most, where rows are wide."""

SPREAD_KEYS: Final = 64
"""Ratio of the range of integer keys to their number, up to which they are looked up in a table and not hashed: hashed,
a merge of 200,000 keys with 2 million wide rows takes 1.25 times as long."""

SET_KEYS: Final = 1 << 18
"""Keys that are neither numbers nor texts, up to which rows of the table are sifted by a set of them; with more, all
rows are matched."""

# Merges

MATCHED_ROWS: Final = 1 << 18
"""Rows of the table that are matched with a source at a time; twice the rows of the source where these are more."""

ROWS_PER_KEY: Final = 8192
"""Minimum number of table rows per source key at which keys are looked up in an index: each may need its own page."""

PART_KEYS: Final = 1 << 18
"""Inserted keys that a part of a merge sends to its commit: with more, the commit takes any new row for one of them."""

JOINED_SOURCE_BYTES: Final = 64 << 20
"""Bytes of a source up to which its batches are concatenated: rows are taken from one array faster than from many."""

# Indexes

TEXT_BATCH_BYTES: Final = 4 << 20
"""Bytes of a batch of texts for a full-text index: with 16 MiB, a build takes 1.6 times the anonymous memory
(`benchmarks/full_text.py --only JSON`)."""

SMALL_SEGMENT: Final = 1 << 18
"""Rows of a segment up to which `optimize_indices` always merges it with newer ones."""

SMALL_VECTOR_SEGMENT: Final = 1 << 14
"""Rows of a segment of a vector index up to which it is always merged: graphs and partitions take longer to merge."""

MERGED_RATIO: Final = 4
"""Ratio of the rows of a larger segment to those of all newer segments, up to which it is merged with them: a row is
then rewritten only a few times while an index grows."""

WHOLE_SAMPLE_BYTES: Final = 64 << 20
"""Maximum size of a vector column that is read whole for training, in bytes: a sample would touch most pages."""

SAMPLE_GROWTH: Final = 16
"""Factor by which the next sample is larger where too many vectors of a sample were null or unusable."""
