"""Thresholds of compaction and cleanup, with units and reasons.

They affect speed, never the contents of a table. `benchmarks/compaction.py` measures compaction as a whole.
"""

from __future__ import annotations

from typing import Final

GROUP_BYTES: Final = 64 << 20
"""Share of `memory_limit` for each concurrent group, in bytes. With less, the group's threads wait for each other."""

LEAST_GROUP_BYTES: Final = 1 << 20
"""Minimum size of a group's rows in flight, in bytes, regardless of the limit. 60,000 rows of 1 kB took 13 s of CPU
time with 256 bytes, and 0.4 s with 1 MiB."""

SORT_BYTES: Final = 512 << 20
"""Memory for the rows of a sorted group without `memory_limit`, in bytes. Larger groups use temporary files."""

RUN_BATCH_BYTES: Final = 1 << 16
"""Size of the batches of a sorted run in a temporary file, in bytes. The merge reads one batch of each run at least."""

LIMITED_PARTS: Final = 8
"""Number of parts of a group's memory. One part is a batch, because several are in flight, and two hold the values of
incomplete pages. See `tests/unit/maintenance/test_memory_limit.py`."""

DELETED_AT_ONCE: Final = 1000
"""Maximum number of files per delete call, the limit of a delete request to object stores."""

BATCHES_AHEAD: Final = 2
"""Number of group batches in progress: one is being written while another one is committed."""

COMPACTION_RETRIES: Final = 10
"""Maximum number of restarts of a compaction after lost races. Each restart only repeats groups that other writers
changed."""
