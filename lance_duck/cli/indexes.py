"""Commands for indexes: which there are, and making, updating and dropping them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any

import typer

import lance_duck as ld
from lance_duck.cli.app import (
    AsofOption,
    JsonOption,
    PathArgument,
    TagOption,
    VersionOption,
    app,
    open_table,
)
from lance_duck.cli.bar import progress_bar
from lance_duck.cli.show import report, show
from lance_duck.verbs.index_vector import is_vector_kind

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the index.")]


@app.command()
def indices(
    table: PathArgument,
    version: VersionOption = None,
    tag: TagOption = None,
    asof: AsofOption = None,
    as_json: JsonOption = False,
) -> None:
    """Indexes, and how many rows each covers."""
    columns = ["name", "kind", "columns", "segments", "indexed_rows", "unindexed_rows", "bytes", "created"]
    show(_indices(open_table(table, version, tag, asof)), columns, as_json, max_rows=1000)


@app.command()
def index(
    table: PathArgument,
    column: Annotated[str, typer.Argument(metavar="COLUMN", help="Column, or a.b for a field of a struct.")],
    kind: Annotated[
        str, typer.Option(help="btree, bitmap, label_list, zonemap or bloomfilter; of vectors ivf_pq and the like.")
    ] = ("btree"),
    name: Annotated[str | None, typer.Option(help="Name; made from the column unless given.")] = None,
    replace: Annotated[bool, typer.Option(help="Take the place of an index of this name.")] = True,
    metric: Annotated[str, typer.Option(help="Of vectors: l2, cosine, dot or hamming.")] = "l2",
    partitions: Annotated[int | None, typer.Option(min=1, help="Of vectors: partitions; chosen unless given.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Index a column."""
    dataset = open_table(table)
    before = {segment["uuid"] for segment in dataset.list_indices()}
    with progress_bar("indexing") as progress:
        if is_vector_kind(kind):
            dataset.create_index(column, kind, name, metric, replace, partitions, progress=progress)
        else:
            dataset.create_scalar_index(column, kind, name, replace=replace, progress=progress)
    made = next(s["name"] for s in dataset.list_indices() if s["uuid"] not in before)
    figures = dataset.index_statistics(made)
    report({"version": dataset.version, "name": made, "indexed_rows": figures["num_indexed_rows"]}, as_json)


@app.command("drop-index")
def drop_index(table: PathArgument, name: NameArgument, as_json: JsonOption = False) -> None:
    """Remove an index."""
    dataset = open_table(table)
    dataset.drop_index(name)
    report({"version": dataset.version}, as_json)


@app.command()
def optimize(
    table: PathArgument,
    names: Annotated[list[str] | None, typer.Option("--index", metavar="NAME", help="Only this; again for more.")] = (
        None
    ),
    merge: Annotated[
        int | None, typer.Option(min=0, metavar="COUNT", help="Merge the newest so many segments, too.")
    ] = None,
    retrain: Annotated[bool, typer.Option("--retrain", help="Build anew, of all rows.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Have indexes cover new rows."""
    dataset = open_table(table)
    with progress_bar("indexing") as progress:
        dataset.optimize.optimize_indices(
            num_indices_to_merge=merge, index_names=names or None, retrain=retrain, progress=progress
        )
    unindexed = sum(row["unindexed_rows"] for row in _indices(dataset))
    report(
        {"version": dataset.version, "indices": len(dataset.describe_indices()), "unindexed_rows": unindexed}, as_json
    )


def _indices(dataset: ld.LanceDataset) -> Iterator[dict[str, Any]]:
    rows = dataset.count_rows()
    for found in dataset.describe_indices():
        times = [segment.created_at for segment in found.segments if segment.created_at is not None]
        yield {
            "name": found.name,
            "kind": found.index_type,
            "columns": " ".join(found.field_names),
            "segments": len(found.segments),
            "indexed_rows": found.num_rows_indexed,
            "unindexed_rows": rows - found.num_rows_indexed,
            "bytes": found.total_size_bytes,
            "created": max(times, default=None, key=datetime.timestamp),
        }
