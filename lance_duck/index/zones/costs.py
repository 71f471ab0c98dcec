"""The thresholds for writing, reading and caching zone maps and Bloom filters, with units and reasons.

Thresholds change speed and memory use, never results. `benchmarks/zones.py` measures their combined effect.
"""

from __future__ import annotations

from typing import Final

FILTER_CACHE_BYTES: Final = 256 << 20
"""Maximum size of an open index's Bloom filters for caching, in bytes. Either all filters are cached, or none."""

WAITING_ZONES: Final = 1 << 14
"""Number of zones whose bounds are buffered before they are joined into one array. Limits memory."""

LONG_ZONE: Final = 512
"""Minimum mean number of values per zone for computing bounds zone by zone. Compared with all zones at once, zones with
1,024 numbers take half of the time, and zones with 256 numbers take 1.4 times the time."""

PROBED_ROWS: Final = 64
"""Number of a fragment's rows that are looked up to find out whether the fragment still exists."""
