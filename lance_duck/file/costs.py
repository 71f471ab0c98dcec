"""The thresholds by which files are read and written: each with its unit and its reason.

A threshold changes speed, memory and the size of a file, never what is read; `benchmarks/write.py` and
`benchmarks/scan.py` measure what they give together.
"""

from __future__ import annotations

from typing import Final

PAGE_BYTES: Final = 8 << 20
"""Bytes of values after which a page is cut, unless asked otherwise: as pylance writes."""

MAX_PAGE_BYTES: Final = 32 << 20
"""Maximum size of a page, unless asked otherwise, in bytes of values: as pylance writes."""

GROWN_PAGE_BYTES: Final = 64 << 20
"""Maximum size of a page of texts with a dictionary, in bytes: the longer the page, the more the dictionary pays."""

ROUND_BYTES: Final = 4 << 20
"""Bytes of batches that are encoded together: less does not pay for handing it to threads."""

HELD_BYTES: Final = 32 << 20
"""Bytes of values that are shredded at once, and of batches that wait to be written: a bound of memory."""

READ_AHEAD: Final = 1 << 20
"""Bytes that a reader of batches or of a blob gets ahead: fewer do not pay for a read."""

OPEN_BLOB_FILES: Final = 64
"""Files with blobs that one read holds open together: the default limit of a process is often 256 or 1,024."""

KEPT_BLOB_FILES: Final = 4
"""Files with blobs that a data file keeps open for the next read, of its own and of others each: a bound of handles."""

BATCH_ROWS: Final = 1024
"""Rows of a batch of a single file, unless asked otherwise: as pylance reads."""
