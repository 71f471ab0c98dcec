"""The bounds of what an open version keeps in memory: each with its unit and its reason.

A bound changes speed and memory, never what is read; `benchmarks/open_table.py` and `benchmarks/many_fragments.py`
measure what they give together.
"""

from __future__ import annotations

from typing import Final

CACHED_FILES: Final = 256
"""Data files whose metadata a version keeps: some kilobytes each, more with many columns or pages."""

CACHED_SEQUENCES: Final = 1024
"""Deletion vectors, and sequences of row ids and versions, that a version keeps, so many of each: one a fragment."""

CACHED_DERIVED: Final = 64
"""Other things that are derived from a version and kept with it, such as the parts of indexes."""

LONGEST_TURN: Final = 0.25
"""Seconds that a writer waits for the turns of others, some tens of flushes of a fast disk: a bound of the wait for a
writer that hangs."""

SHORTEST_POLL: Final = 0.0005
LONGEST_POLL: Final = 0.004
"""Seconds between two looks whether the turn has come, about: at first a part of a commit that is not flushed, at last
about one that is. `benchmarks/writers.py` measures what turns give."""

SHARED_BYTES: Final = 6 << 30
"""Bytes of open indexes and of what else versions of a table share: a bound of memory."""
