"""The thresholds by which stores choose how to read and write: each with its unit and its reason.

A threshold changes speed and memory, never the bytes.
"""

from __future__ import annotations

from typing import Final

REQUESTS_AT_ONCE: Final = 16
"""Threads that wait side by side for an object store or for the flushes of a disk, and not for a processor."""

# Object stores

COALESCED_GAP: Final = 128 << 10
"""Bytes between two ranges of an object that are rather read than asked for apart: half and twice as many are not
better (`benchmarks/object_store.py`)."""

CALL_REQUESTS: Final = 10
"""Requests that obstore runs at once of one call, a constant of its own."""

TAIL_BYTES: Final = 64 << 10
"""Bytes at the end of a file that its first read asks for, and that an object keeps: the metadata of most files fit."""

AHEAD_BYTES: Final = 128 << 20
"""Bytes of objects that a scan asks for before it has used those before: a bound of memory."""

PART_BYTES: Final = 10 << 20
"""Bytes of a part of an upload: services allow 10,000 parts, thus 97 GiB."""

PARTS_AT_ONCE: Final = 4
"""Parts that are uploaded side by side: with `PART_BYTES`, a bound of memory of 40 MiB."""

# Local disks

FLUSHES_BY_ONE: Final = 2
"""Flushes for which a thread is worth its start, 0.1 ms (`benchmarks/appends.py`)."""

LATE_BYTES: Final = 1 << 20
"""Bytes of a file up to which it is flushed with the commit that names it: a flush of its own waits for the disk's
journal once more (`benchmarks/appends.py`)."""

SAFE_DIRECTORIES: Final = 65_536
"""Directories that are remembered as flushed: a bound of memory, about 10 MB."""

RESIDENT_BYTES: Final = 64 << 20
"""Bytes of memory maps that may be touched before the longest unused are released: a bound of memory
(`benchmarks/memory.py`)."""

REPEATED_BYTES: Final = 1 << 30
"""The same of maps whose rows searches rank again and again: with 64 MiB, a query takes 1.27 of the processor time
(`benchmarks/vectors.py --sizes 1000000x128 --kinds IVF_PQ`)."""

NOTED_AHEAD: Final = 64 << 10
"""Bytes of a map that are counted as touched before they are: counted one by one, a take of one row takes 1.14 times as
long."""

RANGES_AHEAD: Final = 64
"""Small ranges, read together, up to which each is asked for ahead: 64 of a cold file take 3 ms so and 18 ms otherwise,
and each costs 1.6 µs in a warm one."""

SAMPLED_PLACES: Final = 16
"""Positions of a read that are looked up to tell whether it is in memory, 2 µs each: of a file half of which is cold,
64 rows take 7 ms with 4 and 1 ms with 16."""

READS_TRUSTED: Final = 15
"""Reads of a file after one that was in memory that are not looked up: 10 µs each, of 60 to 300 that a warm take of a
column lasts (`benchmarks/cold.py`)."""

MAPPED_FILES: Final = 1024
"""Maximum number of files that stay mapped, for all tables together: a bound of maps, four times as many as a version
keeps open."""

SWEPT_EVERY: Final = 16
"""Minimum number of files that are mapped between two searches for deleted ones: 2 µs for each file that is mapped."""

BUFFER_BYTES: Final = 1 << 20
"""Bytes that a local file is written at once: fewer do not pay for a call of the system."""

COPY_BYTES: Final = 8 << 20
"""Bytes that a copy of a file or a blob holds at once: a bound of memory."""
