"""The thresholds by which zone maps and Bloom filters are written, read and kept: each with its unit and its reason.

A threshold changes speed and memory, never an answer. `benchmarks/zones.py` measures what they give together; none was
measured by itself.
"""

from __future__ import annotations

from typing import Final

FILTER_READ_BYTES: Final = 16 << 20
"""Bytes of Bloom filters that are read and probed at once."""

FILTER_CACHE_BYTES: Final = 256 << 20
"""Bytes of Bloom filters that an open index caches: all filters, or none if they are larger."""

FILTER_WRITE_BYTES: Final = 8 << 20
"""Bytes of Bloom filters that are written at once."""

WAITING_ZONES: Final = 1 << 14
"""Zones whose bounds wait to be joined into one array."""

LONG_ZONE: Final = 512
"""Values of a zone, on average, from which on the bounds of each zone are computed separately."""

PROBED_ROWS: Final = 64
"""Rows of a zone that are followed before all are: most zones move as a whole."""

FOLLOWED_ROWS: Final = 1 << 22
"""Rows that are followed at once: 32 MiB of addresses."""
