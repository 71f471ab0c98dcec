"""The thresholds by which stores choose how to read and write: each with its unit and its reason.

A threshold changes speed and memory, never the bytes. None was measured by itself; what a service prescribes says so.
"""

from __future__ import annotations

from typing import Final

COALESCED_GAP: Final = 256 << 10
"""Bytes between two ranges of an object that are rather read than asked for apart: a request takes tens of
milliseconds, in which a connection brings megabytes."""

REQUESTS_AT_ONCE: Final = 16
"""Threads that read objects side by side: their requests wait for the network and not for a processor."""

FLUSHES_AT_ONCE: Final = 16
"""Threads that flush files and directories side by side: a disk writes in one go what waits together."""

SAFE_DIRECTORIES: Final = 65_536
"""Directories remembered as flushed; about 10 MB. More are forgotten, and flushed once more."""

RESIDENT_BYTES: Final = 64 << 20
"""Bytes of memory maps that may be touched before the longest unused are released: `benchmarks/memory.py` measures what
a scan takes with it."""

OPEN_FILES: Final = 65_536
"""Files that the process is let open, where the system allows it: a memory map holds its file open."""

BUFFER_BYTES: Final = 1 << 20
"""Bytes that a local file is written at once."""

COPY_BYTES: Final = 8 << 20
"""Bytes that a copy from one store to another holds at once."""

PART_BYTES: Final = 10 << 20
"""Bytes of a part of an upload: services allow 10,000 parts, thus 97 GiB."""

PARTS_AT_ONCE: Final = 4
"""Parts that are uploaded side by side; with `PART_BYTES`, 40 MiB of memory."""
