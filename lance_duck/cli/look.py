"""Commands that show the metadata and rows of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import lance_duck as ld
from lance_duck.cli.message import message_of
from lance_duck.cli.open import check_folder, listed_names, open_table
from lance_duck.cli.show import ByteCount, show, write_json
from lance_duck.errors import LanceDuckError
from lance_duck.namespaces import Namespace
from lance_duck.redact import shown
from lance_duck.snapshot import shards


def info(
    table: str,
    version: int | None = None,
    tag: str | None = None,
    asof: datetime | None = None,
    as_json: bool = False,
) -> None:
    """Describe a table: version, rows, size, columns, tags."""
    facts = _facts(open_table(table, version, tag, asof))
    if as_json:
        write_json(facts)
    else:
        show(({"field": name, "value": value} for name, value in _flat(facts)), ["field", "value"])


def schema(
    table: str,
    version: int | None = None,
    tag: str | None = None,
    asof: datetime | None = None,
    as_json: bool = False,
) -> None:
    """List the columns with their types."""
    dataset = open_table(table, version, tag, asof)
    computed = dataset.computed_columns
    names = ["column", "type", "nullable", *(["computed"] if computed else [])]
    rows = (
        {"column": f.name, "type": str(f.type), "nullable": f.nullable, "computed": computed.get(f.name)}
        for f in dataset.schema
    )
    show(({name: row[name] for name in names} for row in rows), names, as_json)


def head(
    table: str,
    count: int = 10,
    columns: str | None = None,
    where: str | None = None,
    version: int | None = None,
    tag: str | None = None,
    asof: datetime | None = None,
    as_json: bool = False,
) -> None:
    """Show the first rows."""
    data = open_table(table, version, tag, asof).head(count, columns=listed_names(columns), filter=where)
    show(data.to_pylist(), data.schema.names, as_json, max_rows=max(count, 1))


def versions(table: str, as_json: bool = False) -> None:
    """List the readable versions and their tags."""
    dataset = open_table(table)
    tags: dict[int, list[str]] = {}
    for name, entry in dataset.tags.list().items():
        tags.setdefault(entry["version"], []).append(name)
    rows = (
        {
            "version": entry["version"],
            "timestamp": entry["timestamp"],
            "rows": _number(entry["metadata"], "total_rows"),
            "fragments": _number(entry["metadata"], "total_fragments"),
            "tags": " ".join(sorted(tags.get(entry["version"], []))),
        }
        for entry in dataset.versions()
    )
    show(rows, ["version", "timestamp", "rows", "fragments", "tags"], as_json, max_rows=1000)


def files(
    table: str,
    version: int | None = None,
    tag: str | None = None,
    asof: datetime | None = None,
    as_json: bool = False,
) -> None:
    """List data files by fragment, and deletion files."""
    columns = ["fragment", "rows", "deleted", "path", "format", "fields", "bytes", "deletion_file"]
    show(_files(open_table(table, version, tag, asof)), columns, as_json, max_rows=1000)


def tables(folder: str, as_json: bool = False) -> None:
    """List the tables of a folder and its namespaces. A table that cannot be opened is listed with the reason."""
    check_folder(folder)
    namespace = ld.connect_namespace("dir", {"root": folder})
    rows = (_listed(namespace, name) for name in _names_below(namespace, []))
    show(rows, ["table", "version", "rows", "columns", "problem"], as_json, max_rows=1000)


def _flat(facts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Flatten nested facts. A dict entry is named like "tags.first", and a list becomes a string."""
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{key}", item) for key, item in value.items())
        else:
            yield name, " ".join(map(str, value)) if isinstance(value, list) else value


def _facts(dataset: ld.LanceDataset) -> dict[str, Any]:
    files = list(_files(dataset))
    fragments = dataset.get_fragments()
    waiting = shards.waiting_rows(dataset.handle.snapshot)
    return {
        "uri": shown(dataset.uri),
        "version": dataset.version,
        "latest_version": dataset.latest_version,
        "rows": dataset.count_rows(),
        "deleted_rows": sum(fragment.num_deletions for fragment in fragments),
        "columns": len(dataset.schema.names),
        "fragments": len(fragments),
        "data_files": len(files),
        "bytes": ByteCount(sum(entry["bytes"] or 0 for entry in files)),
        "formats": sorted({entry["format"] for entry in files}),
        "tags": {name: entry["version"] for name, entry in dataset.tags.list().items()},
        "branches": sorted(dataset.branches.list()),
        **({"view_of": dataset.view_query} if dataset.view_query else {}),
        **({"computed_columns": dataset.computed_columns} if dataset.computed_columns else {}),
        **({"not_read": f"rows that are in the write-ahead log alone: {waiting}"} if waiting else {}),
    }


def _files(dataset: ld.LanceDataset) -> Iterator[dict[str, Any]]:
    for fragment in dataset.get_fragments():
        for file in fragment.data_files():
            yield {
                "fragment": fragment.fragment_id,
                "rows": fragment.count_rows(),
                "deleted": fragment.num_deletions,
                "path": file.path,
                "format": f"{file.file_major_version}.{file.file_minor_version}",
                "fields": len(file.fields),
                "bytes": ByteCount.of(file.file_size_bytes),
                "deletion_file": fragment.deletion_file(),
            }


def _number(metadata: Mapping[str, str], name: str) -> int | None:
    return int(metadata[name]) if name in metadata else None


def _names_below(namespace: Namespace, inside: list[str]) -> Iterator[list[str]]:
    """Yield the names of all tables. A namespace's tables come before its child namespaces."""
    yield from ([*inside, name] for name in namespace.list_tables(inside))
    for child in namespace.list_namespaces(inside):
        yield from _names_below(namespace, [*inside, child])


def _listed(namespace: Namespace, name: list[str]) -> dict[str, Any]:
    facts: dict[str, Any] = {"table": "$".join(name), "version": None, "rows": None, "columns": None, "problem": None}
    try:
        dataset = namespace.open_table(name)
        counts = {"version": dataset.version, "rows": dataset.count_rows(), "columns": len(dataset.schema.names)}
    except LanceDuckError as error:
        return {**facts, "problem": message_of(error)}
    return {**facts, **counts}
