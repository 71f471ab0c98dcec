"""The thresholds for writing, reading and caching zone maps and Bloom filters, with units and reasons.

Thresholds change speed and memory use, never results. `benchmarks/zones.py` measures their combined effect.
"""

from __future__ import annotations

from typing import Final

FILTER_CACHE_BYTES: Final = 256 << 20
"""Maximum size of cached Bloom filters, in bytes. Either all filters of an open index are cached, or none."""

WAITING_ZONES: Final = 1 << 14
"""Number of zones whose bounds are buffered before they are joined into one array. Bounds memory."""

LONG_ZONE: Final = 512
"""Bounds of zones with at least this mean number of values are computed zone by zone. 1,024 numbers take half of the
time, 256 take 1.4 times as long."""

PROBED_ROWS: Final = 64
"""Number of a zone's rows to look up first. Most zones move as a whole."""
