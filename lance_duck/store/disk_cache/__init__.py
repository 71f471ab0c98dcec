"""A cache on a local disk for immutable objects of object stores. Off unless the option `cache` names a folder.

You hold: an object that never changes, byte ranges of it, and a way to fetch them. You get: the bytes, from blocks on
the disk or from the store. A thread in the background stores fetched bytes in blocks (`wait_for_blocks` waits for it).
A process asks the store for size and e-tag of an object before it uses blocks of it, and refuses blocks of another
object with the same name. Blocks are verified with checksums. Any number of threads and processes share a folder
without locks. Errors of the disk switch the cache off for a minute, and readers then use the store.
Never here: requests (`store.object` sends them), and which files of a table are immutable (`wire.paths`).
"""

from lance_duck.store.disk_cache.cache import (
    BucketCache,
    CachedObject,
    DiskCache,
    FetchedPart,
    ObjectReader,
    open_cache,
)
from lance_duck.store.disk_cache.usage import Usage, clear, usage
from lance_duck.store.disk_cache.waiting import wait_for_blocks

__all__ = [
    "BucketCache",
    "CachedObject",
    "DiskCache",
    "FetchedPart",
    "ObjectReader",
    "Usage",
    "clear",
    "open_cache",
    "usage",
    "wait_for_blocks",
]
