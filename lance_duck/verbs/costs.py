"""Thresholds that decide how a change runs, with units and reasons.

They affect speed and memory, never the rows of the table. `benchmarks/changes.py` and `benchmarks/indexes.py` measure
their effect. Memory limits are defined next to the code that they limit.
"""

from __future__ import annotations

from typing import Final

# Rows

ROWS_AT_ONCE: Final = 1 << 16
"""Rows per batch when reading by address, joining and writing. At this size, the cost per batch is negligible."""

BYTES_AT_ONCE: Final = 8 << 20
"""Maximum batch size for wide rows, in bytes."""

SET_KEYS: Final = 1 << 18
"""Up to this many keys that are neither numbers nor strings are compared with table rows to preselect them.

With more keys, rows are not preselected, and all rows are matched.
"""

# Merges

MATCHED_ROWS: Final = 1 << 18
"""Minimum number of table rows matched against a source at a time. A larger source raises it to twice its row count."""

ROWS_PER_KEY: Final = 8192
"""Minimum number of table rows per source key for an index lookup. Each key may have to read a separate page."""

PART_KEYS: Final = 1 << 18
"""Maximum number of inserted keys that one part of a merge reports. With more keys, any newer row may be a conflict."""

JOINED_SOURCE_BYTES: Final = 64 << 20
"""The batches of a source of up to this many bytes are concatenated. Taking rows is faster from one array."""

KNOWN_KEYS_OF_FRAGMENT: Final = 1024
"""Maximum row count of a fragment whose primary keys are remembered, and of changes that use them.

Reading the keys of a small fragment takes 0.2 ms. Hashing 1024 keys takes 0.1 ms.
"""

KNOWN_KEYS: Final = 1 << 17
"""Maximum number of primary keys of a table that are remembered: 9 MB."""

# Indexes

TEXT_BATCH_BYTES: Final = 4 << 20
"""Size of a batch of documents for a full-text index, in bytes.

With 16 MiB, a build takes 1.6 times the anonymous memory (`benchmarks/full_text.py --only JSON`).
"""

SMALL_SEGMENT: Final = 1 << 18
"""`optimize_indices` always merges segments of up to this many rows with newer segments."""

SMALL_VECTOR_SEGMENT: Final = 1 << 14
"""Vector segments of up to this many rows are always merged. Merging graphs and partitions is slower."""

MERGED_RATIO: Final = 4
"""Maximum ratio of a segment's row count to the number of newer rows, for merging the segment with these rows.

Each row is then rewritten only a few times while an index grows.
"""

WHOLE_SAMPLE_BYTES: Final = 64 << 20
"""A vector column of up to this many bytes is read whole for training. A sample would read most of its pages anyway."""

SAMPLE_GROWTH: Final = 16
"""Growth factor of the next sample if too many sampled vectors were null or unusable."""
