"""The thresholds by which a scan decides how to read: each with its unit, its reason, and the benchmark that found it.

A threshold changes how fast an answer comes, never the answer. Bounds of memory stand beside what they bound.
"""

from __future__ import annotations

from typing import Final

# Takes and rows that an index chose: see `rows_way`.

POINT_ROWS: Final = 32
"""Rows of a fragment that are each decoded by themselves."""
CACHED_TAKE_ROWS: Final = 1 << 15
TAKES_BEFORE_CACHE: Final = 16
ROWS_DECODED_IN_A_TAKE: Final = 1 << 15
