"""Thresholds for reads and writes of stores, each with its unit and reason.

A threshold changes speed and memory, never the bytes.
"""

from __future__ import annotations

from typing import Final

REQUESTS_AT_ONCE: Final = 16
"""Number of concurrent threads that wait for an object store or disk flushes, not for a processor."""

# Object stores

COALESCED_GAP: Final = 128 << 10
"""Maximum gap between two ranges of an object that are fetched by one request, in bytes. Half and twice as much are not
better (`benchmarks/object_store.py`)."""

CALL_REQUESTS: Final = 10
"""Number of concurrent requests of one obstore call, which obstore fixes."""

TAIL_BYTES: Final = 64 << 10
"""Size of the first read at a file's end, which is kept for objects: the metadata of most files fit."""

AHEAD_BYTES: Final = 128 << 20
"""Maximum size of object data that a scan fetches ahead, in bytes: bounds its memory."""

PART_BYTES: Final = 10 << 20
"""Size of an upload part, in bytes. Services allow 10,000 parts, which makes 97 GiB."""

PARTS_AT_ONCE: Final = 4
"""Number of concurrent part uploads. With `PART_BYTES`, they use at most 40 MiB of memory."""

# Local disks

FLUSHES_BY_ONE: Final = 2
"""Minimum number of flushes that justify another thread, whose start takes 0.1 ms (`benchmarks/appends.py`)."""

LATE_BYTES: Final = 1 << 20
"""Maximum size of a file that is flushed with the commit that names it, in bytes. A separate flush waits for the
disk's journal once more (`benchmarks/appends.py`)."""

SAFE_DIRECTORIES: Final = 65_536
"""Directories that are remembered as flushed: a bound of memory, about 10 MB."""

RESIDENT_BYTES: Final = 64 << 20
"""Memory limit for touched pages of memory maps, in bytes. Above it, the least recently used maps release theirs
(`benchmarks/memory.py`)."""

REPEATED_BYTES: Final = 1 << 30
"""Like `RESIDENT_BYTES`, for maps whose rows searches rerank repeatedly. With 64 MiB, a query takes 1.27 of the
processor time (`benchmarks/vectors.py --sizes 1000000x128 --kinds IVF_PQ`)."""

NOTED_AHEAD: Final = 64 << 10
"""Increment in which the touched bytes of a map are counted in advance. Counting each read makes a take of one row 1.14
times as slow."""

RANGES_AHEAD: Final = 64
"""Maximum number of small ranges, read together, that are each prefetched. 64 ranges of a cold file take 3 ms with
prefetch and 18 ms without. Each costs 1.6 µs in a warm file."""

SAMPLED_PLACES: Final = 16
"""Number of positions of a read that are sampled to check whether it is in memory, at 2 µs each. In a half-cold file,
64 rows take 7 ms with 4 samples and 1 ms with 16."""

READS_TRUSTED: Final = 15
"""Number of reads that skip the check after one that was in memory. A check takes 10 µs, and a warm take of a column 60
to 300 µs (`benchmarks/cold.py`)."""

MAPPED_FILES: Final = 1024
"""Maximum number of mapped files over all tables: four times as many as a version keeps open."""

SWEPT_EVERY: Final = 16
"""Minimum number of newly mapped files between two searches for deleted files. A search takes 2 µs for each mapped
file."""

BUFFER_BYTES: Final = 1 << 20
"""Write chunk size for local files, in bytes: smaller chunks are not worth a system call."""

COPY_BYTES: Final = 8 << 20
"""Chunk size for copies of files and blobs, in bytes: bounds their memory."""
