"""Limits for the data that an open version keeps in memory, with units and reasons.

The limits affect speed and memory use, never results. `benchmarks/open_table.py` and `benchmarks/many_fragments.py`
measure their effect.
"""

from __future__ import annotations

from typing import Final

CACHED_FILES: Final = 256
"""Number of data files whose metadata a version caches. Metadata takes a few kilobytes per file, and more with many
columns or pages.
"""

CACHED_SEQUENCES: Final = 1024
"""Number of deletion vectors that a version caches. The same number applies to row id sequences and version
sequences.
"""

CACHED_DERIVED: Final = 64
"""Number of other cached values derived from a version, such as parts of indexes."""

LONGEST_TURN: Final = 0.25
"""Maximum time that a writer waits for its turn, in seconds. A fast disk performs some tens of flushes in this time.

The limit applies if the writer with the turn hangs.
"""

SHORTEST_POLL: Final = 0.0005
LONGEST_POLL: Final = 0.004
"""Maximum interval between polls of the turn, in seconds.

The interval begins at a fraction of the time of an unflushed commit, and grows to about the time of a flushed commit.
`benchmarks/writers.py` measures the effect of turns.
"""

SHARED_BYTES: Final = 6 << 30
"""Memory limit for open indexes and other values that versions of a table share, in bytes."""
