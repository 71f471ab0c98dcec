"""The thresholds of compaction and cleanup: each with its unit and its reason.

A threshold changes speed, never what a table holds. `benchmarks/compaction.py` measures compaction as a whole; none was
measured by itself.
"""

from __future__ import annotations

from typing import Final

DELETED_AT_ONCE: Final = 1000
"""Files that are deleted by one call: what services delete by one request."""

BATCHES_AHEAD: Final = 2
"""Batches of groups that are written at once: one is being written while another one is committed."""

COMPACTION_RETRIES: Final = 10
"""Times that a compaction begins again after it lost a race: each time, only groups that others changed are left."""
