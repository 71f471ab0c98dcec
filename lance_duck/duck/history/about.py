"""The history functions for versions, tags and branches, and the one-row summary of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.duck.history.rows import MAP, TEXTS, TIME, table_of
from lance_duck.duck.places import shown_place
from lance_duck.duck.tables.handle import pinned_versions
from lance_duck.snapshot import Snapshot
from lance_duck.snapshot.refs import MAIN
from lance_duck.snapshot.versions import load_all
from lance_duck.wire.flags import flag_names
from lance_duck.wire.index import SYSTEM
from lance_duck.wire.manifest import Manifest
from lance_duck.wire.paths import is_detached
from lance_duck.wire.transaction import COMMIT_AUTHOR, COMMIT_MESSAGE, Transaction

_READERS: Final = 16  # threads for reading transactions

_VERSIONS: Final = pa.schema(
    {
        "version": pa.int64(),
        "timestamp": TIME,
        "operation": pa.string(),
        "tags": TEXTS,
        "rows": pa.int64(),
        "fragments": pa.int64(),
        "files": pa.int64(),
        "bytes": pa.int64(),
        "author": pa.string(),
        "message": pa.string(),
        "properties": MAP,
        "writer": pa.string(),
    }
)
_TAGS: Final = pa.schema(
    {"tag": pa.string(), "version": pa.int64(), "branch": pa.string(), "created_at": TIME, "updated_at": TIME}
)
_BRANCHES: Final = pa.schema(
    {
        "branch": pa.string(),
        "parent_branch": pa.string(),
        "parent_version": pa.int64(),
        "latest_version": pa.int64(),
        "created_at": TIME,
    }
)
_INFO: Final = pa.schema(
    {
        "uri": pa.string(),
        "branch": pa.string(),
        "version": pa.int64(),
        "latest_version": pa.int64(),
        "timestamp": TIME,
        "tags": TEXTS,
        "columns": pa.int64(),
        "rows": pa.int64(),
        "deleted_rows": pa.int64(),
        "fragments": pa.int64(),
        "files": pa.int64(),
        "bytes": pa.int64(),
        "indexes": TEXTS,
        "storage_version": pa.string(),
        "stable_row_ids": pa.bool_(),
        "reader_flags": TEXTS,
        "writer_flags": TEXTS,
        "writer": pa.string(),
    }
)


def versions(dataset: LanceDataset) -> pa.Table:
    """Return a row for each version of a branch, oldest first.

    In a transaction, versions newer than the transaction's version are omitted.
    """
    snapshot = dataset.handle.snapshot
    newest = None if pinned_versions() is None else (snapshot.base or snapshot).version
    manifests = [each for each in load_all(snapshot.store) if newest is None or each.version <= newest]
    tags = _tags(snapshot)
    with ThreadPoolExecutor(_READERS) as pool:
        transactions = list(pool.map(lambda manifest: snapshot.sharing_files(manifest).transaction(), manifests))
    pairs = zip(manifests, transactions, strict=True)
    return table_of(_VERSIONS, (_version(manifest, transaction, tags) for manifest, transaction in pairs))


def tags(dataset: LanceDataset) -> pa.Table:
    """Return a row for each tag of a table, ordered by name."""
    entries = sorted(dataset.handle.snapshot.tags().items())
    rows = ((name, tag.version, tag.branch or MAIN, tag.created_at, tag.updated_at) for name, tag in entries)
    return table_of(_TAGS, rows)


def branches(dataset: LanceDataset) -> pa.Table:
    """Return a row for each branch of a table: first main, then the other branches ordered by name."""
    snapshot = dataset.handle.snapshot.checkout((MAIN, None))
    rows: list[Sequence[Any]] = [(MAIN, None, None, snapshot.version, None)]
    for name, branch in sorted(snapshot.branches().items()):
        created = None if branch.create_at is None else datetime.fromtimestamp(branch.create_at, UTC)
        latest = snapshot.checkout((name, None)).version
        rows.append((name, branch.parent_branch or MAIN, branch.parent_version, latest, created))
    return table_of(_BRANCHES, rows)


def info(dataset: LanceDataset) -> pa.Table:
    """Return one row about a table at a version.

    In a transaction that changed the table, the version number is the version that the changes are based on. The number
    of a detached version is null, because it exceeds the column's type.
    """
    snapshot = dataset.handle.snapshot
    manifest = snapshot.manifest
    counts = manifest.summary()
    rows = snapshot.count_rows()
    version = (snapshot.base or snapshot).version
    row = (
        shown_place(snapshot.uri),
        snapshot.branch or MAIN,
        None if is_detached(version) else version,
        snapshot.latest_version(),
        snapshot.timestamp,
        _tags(snapshot).get(version, []),
        len(snapshot.schema.fields),
        rows,
        sum(map(snapshot.physical_rows, snapshot.fragments)) - rows,
        len(snapshot.fragments),
        int(counts["total_data_files"]),
        int(counts["total_files_size"]),
        sorted({index.name for index in snapshot.indices if index.name not in SYSTEM}),
        snapshot.data_storage_version,
        snapshot.has_stable_row_ids,
        flag_names(manifest.reader_flags),
        flag_names(manifest.writer_flags),
        _writer(manifest),
    )
    return table_of(_INFO, [row])


def _version(manifest: Manifest, transaction: Transaction | None, tags: Mapping[int, Sequence[str]]) -> Sequence[Any]:
    counts = manifest.summary()
    properties = {} if transaction is None else dict(transaction.transaction_properties)
    return (
        manifest.version,
        manifest.timestamp,
        None if transaction is None else transaction.operation,
        tags.get(manifest.version, []),
        int(counts["total_rows"]),
        int(counts["total_fragments"]),
        int(counts["total_data_files"]),
        int(counts["total_files_size"]),
        properties.get(COMMIT_AUTHOR),
        properties.get(COMMIT_MESSAGE),
        list(properties.items()),
        _writer(manifest),
    )


def _tags(snapshot: Snapshot) -> dict[int, list[str]]:
    """Return the names of a branch's tags, keyed by version number."""
    names: dict[int, list[str]] = {}
    for name, tag in sorted(snapshot.tags().items()):
        if (tag.branch or MAIN) == (snapshot.branch or MAIN):
            names.setdefault(tag.version, []).append(name)
    return names


def _writer(manifest: Manifest) -> str | None:
    return None if manifest.writer is None else " ".join(manifest.writer)
