"""The thresholds by which a scan decides: each with its unit, its reason, and the benchmark that found it.

A threshold changes how fast an answer comes, never the answer.
"""

from __future__ import annotations

from typing import Final

CACHED_TAKE_ROWS: Final = 1 << 15
"""Rows of a take up to which decoded columns are used: finding the rows takes longest of it. `benchmarks/caches.py`."""

TAKES_BEFORE_CACHE: Final = 16
"""Takes of a column before it is decoded for the next ones: who takes once pays nothing. Not measured."""

ROWS_DECODED_IN_A_TAKE: Final = 1 << 15
"""Rows that are decoded in the time in which one take finds its rows: so many takes pay for a column. Not measured."""

ALWAYS_COMPARED_ROWS: Final = 1024
"""Rows of a filter that a search compares one by one, without its index. `benchmarks/vectors.py`, filtered."""

COMPARED_SHARE: Final = 200
"""One row in so many: fewer rows of a filter are compared one by one, too. `benchmarks/vectors.py`, filtered."""
