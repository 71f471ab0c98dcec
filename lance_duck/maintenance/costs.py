"""The thresholds of compaction and cleanup: each with its unit and its reason.

A threshold changes speed, never what a table holds. `benchmarks/compaction.py` measures compaction as a whole; none was
measured by itself.
"""

from __future__ import annotations

from typing import Final

GROUP_BYTES: Final = 64 << 20
"""Bytes of a `memory_limit` that each group written at a time must have: with fewer, batches become small and threads
of one group wait for each other. Not measured."""

LEAST_GROUP_BYTES: Final = 1 << 20
"""Bytes of rows in flight that a group has at least, whatever the limit: with 256 bytes a batch was one row, and 60,000
rows of 1 kB took 13 s of the processor, with 1 MiB 0.4 s: seen once, no benchmark varies it."""

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
