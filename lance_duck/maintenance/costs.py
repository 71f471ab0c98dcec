"""The thresholds of compaction and cleanup: each with its unit and its reason.

A threshold changes speed, never what a table holds; `benchmarks/compaction.py` measures compaction as a whole.
"""

from __future__ import annotations

from typing import Final

GROUP_BYTES: Final = 64 << 20
"""Bytes of a `memory_limit` for each group that is written at a time: with fewer, its threads wait for each other."""

LEAST_GROUP_BYTES: Final = 1 << 20
"""Bytes of rows in flight that a group has at least, whatever the limit: with 256, 60,000 rows of 1 kB took 13 s of the
processor, with 1 MiB 0.4 s."""

LIMITED_PARTS: Final = 8
"""Parts into which the memory of a group is divided: one is a batch, as several are in flight, and two are the values
that wait for their pages. `tests/unit/maintenance/test_memory_limit.py`."""

DELETED_AT_ONCE: Final = 1000
"""Files that are deleted by one call: as many as object stores delete by one request."""

BATCHES_AHEAD: Final = 2
"""Batches of groups that are written at a time: one is being written while another one is committed."""

COMPACTION_RETRIES: Final = 10
"""Times that a compaction begins again after it lost a race: each time, only groups that others changed are left to
do."""
