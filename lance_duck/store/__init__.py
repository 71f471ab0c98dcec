"""Bytes: local disks and object stores, the plan of a read, and writes."""

from lance_duck.store.base import Entry, Store, is_temporary
from lance_duck.store.external import ExternalManifestStore, register_manifest_store
from lance_duck.store.request import ByteRange, ByteSource, Request, fetch, gather, run
from lance_duck.store.sink import Buffer, Sink, copy_bytes
from lance_duck.store.uri import boolean_option, join_uri, local_path, open_source, open_store

__all__ = [
    "Buffer",
    "ByteRange",
    "ByteSource",
    "Entry",
    "ExternalManifestStore",
    "Request",
    "Sink",
    "Store",
    "boolean_option",
    "copy_bytes",
    "fetch",
    "gather",
    "is_temporary",
    "join_uri",
    "local_path",
    "open_source",
    "open_store",
    "register_manifest_store",
    "run",
]
