"""Limits on what an open version keeps in memory, with units and reasons.

They affect speed and memory, never the data that is read. `benchmarks/open_table.py` and `benchmarks/many_fragments.py`
measure their effect.
"""

from __future__ import annotations

from typing import Final

CACHED_FILES: Final = 256
"""Number of data files whose metadata a version caches: a few kilobytes each, more with many columns or pages."""

CACHED_SEQUENCES: Final = 1024
"""Number of deletion vectors, row id sequences and version sequences that a version caches, of each kind."""

CACHED_DERIVED: Final = 64
"""Number of other cached values derived from a version, such as parts of indexes."""

LONGEST_TURN: Final = 0.25
"""Maximum time that a writer waits for its turn, in seconds. About as long as some tens of flushes on a fast disk.

Limits the wait for a writer that hangs.
"""

SHORTEST_POLL: Final = 0.0005
LONGEST_POLL: Final = 0.004
"""Maximum interval between polls of the turn, in seconds.

Polling starts at a fraction of an unflushed commit's time, and ends near a flushed commit's time.
`benchmarks/writers.py` measures the effect of turns.
"""

SHARED_BYTES: Final = 6 << 30
"""Memory limit for open indexes and other values that versions of a table share, in bytes."""
