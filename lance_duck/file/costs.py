"""Thresholds for reading and writing files, each with its unit and reason.

A threshold affects speed, memory and file size, never the values. `benchmarks/write.py` and `benchmarks/scan.py`
measure the combined effect.
"""

from __future__ import annotations

from typing import Final

PAGE_BYTES: Final = 8 << 20
"""Default page size, in bytes of values, as in pylance."""

MAX_PAGE_BYTES: Final = 32 << 20
"""Default maximum page size, in bytes of values, as in pylance."""

GROWN_PAGE_BYTES: Final = 64 << 20
"""Maximum size of a page of dictionary-encoded strings, in bytes. Dictionaries pay off more in larger pages."""

ROUND_BYTES: Final = 4 << 20
"""Minimum size of batches that are encoded together, in bytes. Smaller batches are not worth a thread switch."""

HELD_BYTES: Final = 32 << 20
"""Maximum size of values shredded in one step, and of batches waiting to be written, in bytes; limits memory use."""

READ_AHEAD: Final = 1 << 20
"""Read-ahead of batch and blob readers, in bytes: smaller reads are dominated by latency."""

OPEN_BLOB_FILES: Final = 64
"""Maximum number of blob files that one read keeps open. The default limit of a process is often 256 or 1,024."""

KEPT_BLOB_FILES: Final = 4
"""Maximum number of open blob files per data file, separately for sidecars, managed files and external files. Limits
file handles.
"""

BATCH_ROWS: Final = 1024
"""Default rows per batch of a single file, as in pylance."""
