"""Bytes on local disks and object stores: plans of reads, and writes.

You hold: the URI of a table, paths below it, byte ranges or bytes. You get: a `Store`, bytes, file names.
Reading is separate from planning. Code that needs bytes is a `Request[T]`: a generator that yields lists of ByteRange
and receives the bytes. `gather` combines many requests step by step, and `run` fetches the bytes. For a local file,
bytes are views of a memory map. On an object store, nearby ranges are merged and fetched together.
Files appear atomically: `create` streams, `put` replaces, `put_if_absent` fails if the name exists. On a local disk,
all files are flushed before a version becomes visible, unless `fsync` is "false".
Immutable objects can be cached on a local disk: see `disk_cache`.
A file with checksums is read through `checked`, which verifies each block on first read.
Never here: the meaning of the bytes.
"""

from lance_duck.store.base import Entry, Store, is_temporary
from lance_duck.store.client import CACHE_OPTION, CACHE_SIZE_OPTION, service_options, with_cache
from lance_duck.store.external import ExternalManifestStore, register_manifest_store
from lance_duck.store.local_write import delete_temporary, new_folder, remove_empty_folders
from lance_duck.store.mapped import let_go_below
from lance_duck.store.object import store_in_memory
from lance_duck.store.request import ByteRange, ByteSource, Request, fetch, gather, run
from lance_duck.store.sink import Buffer, Sink, copy_bytes
from lance_duck.store.uri import (
    boolean_option,
    checked_place,
    did_you_mean_path,
    join_uri,
    local_path,
    open_source,
    open_store,
    split_place,
)

__all__ = [
    "CACHE_OPTION",
    "CACHE_SIZE_OPTION",
    "Buffer",
    "ByteRange",
    "ByteSource",
    "Entry",
    "ExternalManifestStore",
    "Request",
    "Sink",
    "Store",
    "boolean_option",
    "checked_place",
    "copy_bytes",
    "delete_temporary",
    "did_you_mean_path",
    "fetch",
    "gather",
    "is_temporary",
    "join_uri",
    "let_go_below",
    "local_path",
    "new_folder",
    "open_source",
    "open_store",
    "register_manifest_store",
    "remove_empty_folders",
    "run",
    "service_options",
    "split_place",
    "store_in_memory",
    "with_cache",
]
