"""Thresholds that decide how a change runs, with units and reasons.

They affect speed and memory, never the rows of the table. `benchmarks/changes.py` and `benchmarks/indexes.py` measure
their effect. Memory limits are defined next to the code that they limit.
"""

from __future__ import annotations

from typing import Final

# Rows

ROWS_AT_ONCE: Final = 1 << 16
"""Batch size for reading rows by address, joining and writing, in rows. Makes the cost per batch negligible."""

BYTES_AT_ONCE: Final = 8 << 20
"""Maximum batch size for wide rows, in bytes."""

SPREAD_KEYS: Final = 64
"""Maximum ratio of the key range to the key count for lookups of integer keys by array instead of hashing.

With hashing, a merge of 200,000 keys into 2 million wide rows takes 1.25 times longer.
"""

SET_KEYS: Final = 1 << 18
"""Maximum number of keys, other than numbers and strings, for which a set preselects table rows.

With more keys, all rows are matched.
"""

# Merges

MATCHED_ROWS: Final = 1 << 18
"""Minimum number of table rows matched against a source at a time. A larger source raises it to twice its row count."""

ROWS_PER_KEY: Final = 8192
"""Minimum number of table rows per source key for an index lookup: each key may need its own page."""

PART_KEYS: Final = 1 << 18
"""Maximum number of inserted keys that a partial merge reports. Above it, any new row may be a conflict."""

JOINED_SOURCE_BYTES: Final = 64 << 20
"""Maximum source size for concatenating its batches, in bytes: taking rows from one array is faster than from many."""

# Indexes

TEXT_BATCH_BYTES: Final = 4 << 20
"""Size of a batch of documents for a full-text index, in bytes.

With 16 MiB, a build takes 1.6 times the anonymous memory (`benchmarks/full_text.py --only JSON`).
"""

SMALL_SEGMENT: Final = 1 << 18
"""Segments of up to this many rows are always merged with newer ones by `optimize_indices`."""

SMALL_VECTOR_SEGMENT: Final = 1 << 14
"""Vector segments of up to this many rows are always merged. Merging graphs and partitions is slower."""

MERGED_RATIO: Final = 4
"""Maximum size ratio between a segment and all newer segments together for merging them.

Each row is then rewritten only a few times while an index grows.
"""

WHOLE_SAMPLE_BYTES: Final = 64 << 20
"""Maximum size of a vector column that is read whole for training, in bytes: a sample would touch most pages."""

SAMPLE_GROWTH: Final = 16
"""Growth factor of the next sample if too many sampled vectors were null or unusable."""
