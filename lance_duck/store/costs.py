"""The thresholds by which stores choose how to read and write: each with its unit and its reason.

A threshold changes speed and memory, never the bytes. Each one that was measured by
itself, or that a service prescribes, says so.
"""

from __future__ import annotations

from typing import Final

COALESCED_GAP: Final = 128 << 10
"""Bytes between two ranges of an object that are rather read than asked for apart. Requests wait at the same time: one
more costs a part of a millisecond, as so many bytes do. `benchmarks/object_store.py`, of rows that a search ranks
again; half and twice as many were not better."""

CALL_REQUESTS: Final = 10
"""Requests that obstore runs at once of one call, a constant of its own; more wait for these."""

CALLS_AT_ONCE: Final = 8
"""Calls that run at once for one read of an object: with `CALL_REQUESTS`, 80 requests. Not measured."""

KEPT_TAIL: Final = 64 << 10
"""Bytes at the end of an object that are kept once they were read: as many as the first read of a file asks for, whose
metadata keeps them in memory anyway. They are all of a small file, such as those of indexes."""

REQUESTS_AT_ONCE: Final = 16
"""Threads that read objects side by side: their requests wait for the network and not for a processor."""

AHEAD_BYTES: Final = 128 << 20
"""Bytes of objects that a scan asks for before it has used those before, about: a bound of memory, which keeps a
connection of some GB/s at work though each request waits tens of milliseconds. Other values were not measured."""

FLUSHES_AT_ONCE: Final = 16
"""Threads that flush files and directories side by side: a disk writes in one go what waits together."""

FLUSHES_BY_ONE: Final = 2
"""Flushes for which a thread is worth its start, 0.1 ms: `benchmarks/appends.py`, where an append has five."""

LATE_BYTES: Final = 1 << 20
"""Bytes of a file up to which it is flushed with the commit that names it, and not by itself before: a flush of its own
waits for the disk's journal once more, which is dear for a small file and nothing beside the writing of a large one.
`benchmarks/appends.py`."""

SAFE_DIRECTORIES: Final = 65_536
"""Directories remembered as flushed; about 10 MB. More are forgotten, and flushed once more."""

RESIDENT_BYTES: Final = 64 << 20
"""Bytes of memory maps that may be touched before the longest unused are released: `benchmarks/memory.py` measures what
a scan takes with it."""

REPEATED_BYTES: Final = 1 << 30
"""The same of maps of which rows by chance are read again and again, as those that searches rank again. A bound of
memory that the system can take back; lists of an index, which it cannot, may take twice as much. `benchmarks/vectors.py
--sizes 1000000x128 --kinds IVF_PQ`: with 64 MiB, a query takes 1.27 of the processor time, with 256 MiB 1.1."""

NOTED_AHEAD: Final = 64 << 10
"""Bytes of a map that are counted as touched before they are, so that most reads of single rows need not be: to count
takes 1 us, a tenth of such a read. The system maps as many around a page that is touched. Not measured by itself."""

RANGES_AHEAD: Final = 64
"""Ranges of a page or less, read together, up to which each is asked for ahead: 1 µs each. Not measured."""

SAMPLED_PLACES: Final = 4
"""Places of a read that are looked up to tell whether it is in memory: 2 µs each. Whether more would find
more cold reads was not measured."""

READS_TRUSTED: Final = 15
"""Reads of a file after one that was in memory that are not looked up: 10 µs each, of 60 to 300 that a warm take of a
column lasts. `benchmarks/cold.py`, which measures warm takes with and without."""

MAPPED_FILES: Final = 1024
"""Maximum number of files that stay mapped, for all tables together: four times as many as a version keeps open. A map
takes no descriptor. To map a file again takes 20 µs. Other values were not measured."""

SWEPT_EVERY: Final = 16
"""Minimum number of files that are mapped between two searches for deleted ones: 2 µs for each file that is mapped."""

BUFFER_BYTES: Final = 1 << 20
"""Bytes that a local file is written at once."""

COPY_BYTES: Final = 8 << 20
"""Bytes that a copy from one store to another holds at once."""

PART_BYTES: Final = 10 << 20
"""Bytes of a part of an upload: services allow 10,000 parts, thus 97 GiB."""

PARTS_AT_ONCE: Final = 4
"""Parts that are uploaded side by side; with `PART_BYTES`, 40 MiB of memory."""

FEW_RANGES: Final = 16
"""Ranges whose blocks are looked up one by one to be checked: numpy takes as long for one range as for many. Not
measured."""
