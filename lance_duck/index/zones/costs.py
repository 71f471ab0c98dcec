"""The thresholds by which zone maps and Bloom filters are written, read and kept: each with its unit and its reason.

A threshold changes speed and memory, never an answer; `benchmarks/zones.py` measures what they give together.
"""

from __future__ import annotations

from typing import Final

FILTER_CACHE_BYTES: Final = 256 << 20
"""Bytes of Bloom filters that an open index caches, all or none: a bound of memory."""

WAITING_ZONES: Final = 1 << 14
"""Zones whose bounds wait to be joined into one array: a bound of memory."""

LONG_ZONE: Final = 512
"""Values of a zone, on average, from which on its bounds are computed by themselves: 1,024 numbers take half of the
time so, 256 take 1.4."""

PROBED_ROWS: Final = 64
"""Rows of a zone that are followed before all are: most zones move as a whole."""
