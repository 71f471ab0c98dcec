"""Bytes in: local disks and object stores, and the plan of a read."""

from lance_duck.store.base import Entry, Store
from lance_duck.store.request import ByteRange, ByteSource, Request, fetch, gather, run
from lance_duck.store.uri import join_uri, local_path, open_source, open_store

__all__ = [
    "ByteRange",
    "ByteSource",
    "Entry",
    "Request",
    "Store",
    "fetch",
    "gather",
    "join_uri",
    "local_path",
    "open_source",
    "open_store",
    "run",
]
