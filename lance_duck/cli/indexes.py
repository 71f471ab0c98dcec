"""Commands that list, create, update and drop indexes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import lance_duck as ld
from lance_duck.arguments import number_or_text
from lance_duck.cli.bar import progress_bar
from lance_duck.cli.open import open_table
from lance_duck.cli.show import ByteCount, report, show
from lance_duck.verbs.indexes.vector import is_vector_kind


def indices(
    table: str,
    version: int | None = None,
    tag: str | None = None,
    asof: datetime | None = None,
    as_json: bool = False,
) -> None:
    """List the indexes and how many rows each covers."""
    columns = ["name", "kind", "columns", "segments", "indexed_rows", "unindexed_rows", "bytes", "created"]
    show(_indices(open_table(table, version, tag, asof)), columns, as_json, max_rows=1000)


def index(
    table: str,
    column: str,
    kind: str = ("btree"),
    name: str | None = None,
    replace: bool = True,
    metric: str = "l2",
    partitions: int | None = None,
    as_json: bool = False,
) -> None:
    """Index a column."""
    dataset = open_table(table)
    before = {segment["uuid"] for segment in dataset.list_indices()}
    with progress_bar("indexing") as progress:
        if is_vector_kind(kind):
            dataset.create_index(column, kind, name, metric, replace, partitions, progress=progress)
        else:
            dataset.create_scalar_index(column, kind, name, replace=replace, progress=progress)
    index_name = next(s["name"] for s in dataset.list_indices() if s["uuid"] not in before)
    figures = dataset.index_statistics(index_name)
    report({"version": dataset.version, "name": index_name, "indexed_rows": figures["num_indexed_rows"]}, as_json)


def drop_index(table: str, name: str, as_json: bool = False) -> None:
    """Remove an index."""
    dataset = open_table(table)
    dataset.drop_index(name)
    report({"version": dataset.version}, as_json)


def optimize(
    table: str,
    names: list[str] | None = (None),
    merge: int | None = None,
    retrain: bool = False,
    memory_limit: str | None = None,
    as_json: bool = False,
) -> None:
    """Bring indexes up to date with new rows."""
    dataset = open_table(table)
    with progress_bar("indexing") as progress:
        dataset.optimize.optimize_indices(
            num_indices_to_merge=merge,
            index_names=names or None,
            retrain=retrain,
            memory_limit=number_or_text(memory_limit),
            progress=progress,
        )
    unindexed = sum(row["unindexed_rows"] for row in _indices(dataset))
    report(
        {"version": dataset.version, "indices": len(dataset.describe_indices()), "unindexed_rows": unindexed}, as_json
    )


def _indices(dataset: ld.LanceDataset) -> Iterator[dict[str, Any]]:
    rows = dataset.count_rows()
    for description in dataset.describe_indices():
        times = [segment.created_at for segment in description.segments if segment.created_at is not None]
        yield {
            "name": description.name,
            "kind": description.index_type,
            "columns": " ".join(description.field_names),
            "segments": len(description.segments),
            "indexed_rows": description.num_rows_indexed,
            "unindexed_rows": rows - description.num_rows_indexed,
            "bytes": ByteCount.of(description.total_size_bytes),
            "created": max(times, default=None, key=datetime.timestamp),
        }
