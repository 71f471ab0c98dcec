"""The thresholds by which files are read and written: each with its unit and its reason.

A threshold changes speed, memory and the size of a file, never what is read. None was measured by itself;
`benchmarks/write.py` and `benchmarks/scan.py` measure what they give together.
"""

from __future__ import annotations

from typing import Final

TAIL_BYTES: Final = 64 * 1024
"""Bytes at the end of a file that its first read asks for: the metadata of most files fit, so that opening is one
request."""

SMALL_PAGE: Final = 64 * 1024
"""Bytes of a page of an object store that are read at once, whichever of its rows are wanted: less than a connection
brings while a second request waits. Other values were not measured."""

PAGE_BYTES: Final = 8 << 20
"""Bytes of values after which a page is cut, unless asked otherwise. As pylance writes."""

MAX_PAGE_BYTES: Final = 32 << 20
"""Bytes of values of a page at most, unless asked otherwise. As pylance writes."""

GROWN_PAGE_BYTES: Final = 64 << 20
"""Bytes of texts of a page at most, where pages are not asked to be smaller and a dictionary of long texts, which come
again far apart, pays the more the longer the page is."""

ROUND_BYTES: Final = 4 << 20
"""Bytes of batches that are encoded together: less does not pay for handing it to threads."""

BYTES_AHEAD: Final = 32 << 20
"""Bytes of batches that may be encoded before the first of them is written: a bound of memory, eight rounds."""

SLICE_BYTES: Final = 32 << 20
"""Bytes of an array that a column takes in at once: a bound of the memory that shredding it takes."""

BLOB_COPY_BYTES: Final = 8 << 20
"""Bytes of a blob that are copied at once."""

BLOB_BUFFER_BYTES: Final = 512 * 1024
"""Bytes that a reader who goes on reading a blob gets ahead."""

OPEN_BLOB_FILES: Final = 64
"""Files with blobs that one read holds open together: the default limit of a process is often 256 or 1,024."""

KEPT_BLOB_FILES: Final = 4
"""Files with blobs that a data file keeps open for the next read, of its own and of others each."""

BATCH_ROWS: Final = 1024
"""Rows of a batch of a single file, unless asked otherwise. As pylance reads."""

SPAN_BYTES: Final = 1 << 20
"""Bytes that a read of a single file brings before it stops reading more batches at once."""
