"""Returns metadata as Arrow tables: versions, history, fragments and indexes."""

from __future__ import annotations

from datetime import UTC
from itertools import chain
from typing import Any, Final

import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.errors import InvalidInputError

_TIME: Final = pa.timestamp("us", "UTC")

VERSIONS: Final = pa.schema(
    {
        "version": pa.int64(),
        "timestamp": _TIME,
        "num_rows": pa.int64(),
        "num_fragments": pa.int64(),
        "tags": pa.list_(pa.string()),
    }
)
HISTORY: Final = pa.schema(
    {
        "version": pa.int64(),
        "timestamp": _TIME,
        "operation": pa.string(),
        "message": pa.string(),
        "read_version": pa.int64(),
        "transaction": pa.string(),
        "properties": pa.map_(pa.string(), pa.string()),
    }
)
FRAGMENTS: Final = pa.schema(
    {
        "fragment": pa.int64(),
        "num_rows": pa.int64(),
        "num_deleted_rows": pa.int64(),
        "num_files": pa.int64(),
        "size_bytes": pa.int64(),
        "formats": pa.list_(pa.string()),
        "paths": pa.list_(pa.string()),
    }
)
INDICES: Final = pa.schema(
    {
        "name": pa.string(),
        "type": pa.string(),
        "columns": pa.list_(pa.string()),
        "num_segments": pa.int64(),
        "num_indexed_fragments": pa.int64(),
        "num_unindexed_fragments": pa.int64(),
        "num_indexed_rows": pa.int64(),
    }
)


def versions(table: LanceDataset) -> pa.Table:
    """Return all versions, newest first, with number, time, rows, fragments and tags."""
    tags: dict[int, list[str]] = {}
    for name, entry in table.tags.list().items():
        tags.setdefault(entry["version"], []).append(name)
    rows = [
        {
            "version": entry["version"],
            "timestamp": entry["timestamp"].astimezone(UTC),
            "num_rows": _number(entry["metadata"].get("total_rows")),
            "num_fragments": _number(entry["metadata"].get("total_fragments")),
            "tags": sorted(tags.get(entry["version"], [])),
        }
        for entry in reversed(table.versions())
    ]
    return pa.Table.from_pylist(rows, VERSIONS)


def history(table: LanceDataset, limit: int | None = None) -> pa.Table:
    """Return the changes of each version, newest first.

    Args:
        table: The table.
        limit: Maximum number of versions. The manifest of each one is read. By default, all versions.

    Returns:
        A row for each version. `transaction` is the transaction's UUID. `operation`, `read_version`, `transaction`,
        `message` and `properties` are null if the transaction was not stored.
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise InvalidInputError("limit", where="history", expected="a number that is not negative", found=repr(limit))
    numbers = [entry["version"] for entry in reversed(table.version_refs())]
    return pa.Table.from_pylist([_change(table, number) for number in numbers[:limit]], HISTORY)


def fragments(table: LanceDataset) -> pa.Table:
    """Return the fragments of the version, with rows, deleted rows, files and sizes, format versions and paths."""
    return pa.Table.from_pylist(list(map(_fragment, table.get_fragments())), FRAGMENTS)


def indices(table: LanceDataset) -> pa.Table:
    """Return the indexes of the version, with the number of fragments that each one covers."""
    there = {fragment.fragment_id for fragment in table.get_fragments()}
    rows = []
    for index in table.describe_indices():
        coverage = there.intersection(chain.from_iterable(segment.fragment_ids for segment in index.segments))
        rows.append(
            {
                "name": index.name,
                "type": index.index_type,
                "columns": list(index.field_names),
                "num_segments": len(index.segments),
                "num_indexed_fragments": len(coverage),
                "num_unindexed_fragments": len(there) - len(coverage),
                "num_indexed_rows": index.num_rows_indexed,
            }
        )
    return pa.Table.from_pylist(rows, INDICES)


def _change(table: LanceDataset, number: int) -> dict[str, Any]:
    snapshot = table.checkout_version(number).handle.snapshot
    transaction = snapshot.transaction()
    row: dict[str, Any] = {"version": number, "timestamp": snapshot.timestamp.astimezone(UTC)}
    if transaction is None:
        return row
    return row | {
        "operation": transaction.operation,
        "message": transaction.commit_message,
        "read_version": transaction.read_version,
        "transaction": transaction.uuid,
        "properties": sorted(transaction.transaction_properties.items()),
    }


def _fragment(fragment: Any) -> dict[str, Any]:
    files = fragment.data_files()
    sizes = [file.file_size_bytes for file in files]
    return {
        "fragment": fragment.fragment_id,
        "num_rows": fragment.count_rows(),
        "num_deleted_rows": fragment.num_deletions,
        "num_files": len(files),
        "size_bytes": None if None in sizes else sum(sizes),
        "formats": sorted({f"{file.file_major_version}.{file.file_minor_version}" for file in files}),
        "paths": [file.path for file in files],
    }


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
