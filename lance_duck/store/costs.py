"""Thresholds for reads and writes of stores, each with its unit and reason.

A threshold affects speed and memory, never the bytes.
"""

from __future__ import annotations

from typing import Final

REQUESTS_AT_ONCE: Final = 16
"""Maximum number of concurrent threads for object store requests and disk flushes. They mostly wait, and rarely use a
processor.
"""

# Object stores

COALESCED_GAP: Final = 128 << 10
"""Maximum gap between two ranges of an object that are fetched by one request, in bytes. Half and twice this size are
not faster (`benchmarks/object_store.py`).
"""

CALL_REQUESTS: Final = 10
"""Number of concurrent requests in one obstore call. obstore fixes this number."""

GETS_AT_ONCE: Final = REQUESTS_AT_ONCE * CALL_REQUESTS
"""Maximum number of concurrent requests of one read through the disk cache, the same as without it. 100 ranges of a
store that takes 20 ms need 160 ms with 16 requests, 65 ms with 64, and 50 ms with 128.
"""

SHORT_BODY: Final = 128 << 10
"""Maximum size of a response that arrives with its header, in bytes. Waiting for it in the event loop takes longer than
reading it: 100 pages of 64 KiB take 68 ms instead of 50 ms.
"""

TAIL_BYTES: Final = 64 << 10
"""Size of the first read at the end of a file, in bytes. The metadata of most files fits. For objects, the bytes are
kept.
"""

AHEAD_BYTES: Final = 128 << 20
"""Maximum size of object data that a scan fetches ahead, in bytes. Limits memory use."""

PART_BYTES: Final = 10 << 20
"""Size of an upload part, in bytes. Services allow 10,000 parts: up to 97 GiB per file."""

PARTS_AT_ONCE: Final = 4
"""Number of concurrent part uploads. With `PART_BYTES`, they use at most 40 MiB of memory."""

# Local disks

FLUSHES_BY_ONE: Final = 2
"""Minimum number of flushes that justify an additional thread. A thread takes 0.1 ms to start
(`benchmarks/appends.py`).
"""

LATE_BYTES: Final = 1 << 20
"""Maximum size of a file that is flushed with the commit that names it, in bytes. A separate flush would wait
for the disk's journal once more (`benchmarks/appends.py`).
"""

SAFE_DIRECTORIES: Final = 65_536
"""Maximum number of directories recorded as flushed. Limits memory use to about 10 MB."""

RESIDENT_BYTES: Final = 64 << 20
"""Memory limit for touched pages of memory maps, in bytes. Above it, the least recently used maps release their
pages (`benchmarks/memory.py`).
"""

REPEATED_BYTES: Final = 1 << 30
"""Like `RESIDENT_BYTES`, for maps from which searches repeatedly rerank rows. With 64 MiB, a query takes 1.27 times the
processor time (`benchmarks/vectors.py --sizes 1000000x128 --kinds IVF_PQ`).
"""

NOTED_AHEAD: Final = 64 << 10
"""The touched bytes of a map are counted in advance, in increments of this size. If each read were counted, taking one
row would take 1.14 times as long.
"""

RANGES_AHEAD: Final = 64
"""Maximum number of small ranges in one read for which each range is prefetched. 64 ranges of a cold file take 3 ms
with prefetch and 18 ms without. In a warm file, each prefetch costs 1.6 µs.
"""

SAMPLED_PLACES: Final = 16
"""Number of sampled positions for the check whether the bytes of a read are in memory. Each sample takes 2 µs. In a
file that is half in memory, 64 rows take 7 ms with 4 samples and 1 ms with 16.
"""

READS_TRUSTED: Final = 15
"""Number of reads that skip the memory check after a read whose bytes were in memory. A check takes 10 µs. A take from
a column in memory takes 60 to 300 µs (`benchmarks/cold.py`).
"""

MAPPED_FILES: Final = 1024
"""Maximum number of mapped files in all tables. It is four times the number of files that a version keeps open."""

SWEPT_EVERY: Final = 16
"""Minimum number of newly mapped files between two searches for deleted files. A search takes 2 µs for each mapped
file."""

BUFFER_BYTES: Final = 1 << 20
"""Write chunk size for local files, in bytes. Smaller chunks are not worth a system call."""

COPY_BYTES: Final = 8 << 20
"""Chunk size for copies of files and blobs, in bytes. Limits memory use."""
