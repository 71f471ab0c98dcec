"""The command line: look at Lance tables and run SQL over them.

On a terminal results are tables for people. In a pipe they are CSV with a header, and with --json one JSON object a
line (`info`: one object). Both spell bytes as hexadecimal digits, times as ISO 8601 and decimals in full; CSV writes
nested values as JSON and null as nothing. An error is one line on stderr and exit code 1; wrong usage is exit code 2.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

import lance_duck as ld
from lance_duck.errors import InvalidInputError, NotFoundError

Row = Mapping[str, Any]

app = typer.Typer(
    name="lance-duck",
    help="Lance tables on the command line, and SQL over them in DuckDB.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

PathArgument = Annotated[str, typer.Argument(metavar="TABLE", help="Folder or address of a Lance table.")]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON: one object a line.")]
VersionOption = Annotated[int | None, typer.Option("--version", help="Read this version.")]
TagOption = Annotated[str | None, typer.Option("--tag", help="Read the version that has this tag.")]
AsofOption = Annotated[datetime | None, typer.Option("--asof", help="Read the newest version at this local time.")]
MaxRowsOption = Annotated[int, typer.Option("--max-rows", min=1, help="Rows to show on a terminal; a pipe gets all.")]


@app.callback(invoke_without_command=True)
def about(version: Annotated[bool, typer.Option("--version", help="Show the version and leave.")] = False) -> None:
    """Lance tables on the command line, and SQL over them in DuckDB."""
    if version:
        print(f"lance-duck {ld.__version__}")
        raise typer.Exit


@app.command()
def info(
    table: PathArgument,
    version: VersionOption = None,
    tag: TagOption = None,
    asof: AsofOption = None,
    as_json: JsonOption = False,
) -> None:
    """What the table is: version, rows, files, size, columns, tags."""
    facts = _facts(_open(table, version, tag, asof))
    if as_json:
        print(json.dumps(plain(facts)))
    else:
        show(({"field": name, "value": value} for name, value in facts.items()), ["field", "value"])


@app.command()
def schema(
    table: PathArgument,
    version: VersionOption = None,
    tag: TagOption = None,
    asof: AsofOption = None,
    as_json: JsonOption = False,
) -> None:
    """Columns with their types."""
    fields = _open(table, version, tag, asof).schema
    rows = ({"column": field.name, "type": str(field.type), "nullable": field.nullable} for field in fields)
    show(rows, ["column", "type", "nullable"], as_json)


@app.command()
def head(
    table: PathArgument,
    count: Annotated[int, typer.Option("--rows", "-n", min=0, help="Number of rows.")] = 10,
    version: VersionOption = None,
    tag: TagOption = None,
    asof: AsofOption = None,
    as_json: JsonOption = False,
) -> None:
    """The first rows."""
    data = _open(table, version, tag, asof).head(count)
    show(data.to_pylist(), data.schema.names, as_json, max_rows=max(count, 1))


@app.command()
def sql(
    place: Annotated[str, typer.Argument(metavar="PLACE", help="A folder of Lance tables, or one table.")],
    query: Annotated[str, typer.Argument(help="SQL; '-' reads it from standard input.")],
    version: VersionOption = None,
    tag: TagOption = None,
    asof: AsofOption = None,
    as_json: JsonOption = False,
    max_rows: MaxRowsOption = 100,
) -> None:
    """Run SQL; tables have the names of their folders, without .lance."""
    with _connect(place, version, tag, asof) as connection:
        result = connection.sql(sys.stdin.read() if query == "-" else query)
        if result is not None:
            reader = result.to_arrow_reader(10_000)
            rows = (row for batch in reader for row in batch.to_pylist())
            show(rows, reader.schema.names, as_json, max_rows)


@app.command()
def versions(table: PathArgument, as_json: JsonOption = False) -> None:
    """Versions that can be read, with their tags."""
    dataset = _open(table)
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


@app.command()
def files(
    table: PathArgument,
    version: VersionOption = None,
    tag: TagOption = None,
    asof: AsofOption = None,
    as_json: JsonOption = False,
) -> None:
    """Data files by fragment, and deletion files."""
    columns = ["fragment", "rows", "deleted", "path", "format", "fields", "bytes", "deletion_file"]
    show(_files(_open(table, version, tag, asof)), columns, as_json, max_rows=1000)


def show(rows: Iterable[Row], columns: Sequence[str], as_json: bool = False, max_rows: int = 100) -> None:
    """Write rows to stdout in the form that suits it; at most `max_rows` of them on a terminal."""
    if as_json:
        for row in rows:
            print(json.dumps(plain(row), ensure_ascii=False))
    elif sys.stdout.isatty():
        show_table(rows, columns, max_rows, Console())
    else:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([text(row[name]) for name in columns] for row in rows)


def show_table(rows: Iterable[Row], columns: Sequence[str], max_rows: int, console: Console) -> None:
    """Draw at most `max_rows` rows for a person."""
    numbered = iter(rows)
    shown = list(islice(numbered, max_rows))
    drawing = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        numeric = any(isinstance(row[name], int | float | Decimal) for row in shown)
        drawing.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in shown:
        drawing.add_row(*(_cell(row[name]) for name in columns))
    console.print(drawing, markup=False)
    if next(numbered, None) is not None:
        console.print(f"first {max_rows:,} rows; --max-rows shows more, a pipe gets all", style="dim")


def plain(value: Any) -> Any:
    """Return `value` in types that JSON has."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def text(value: Any) -> str:
    """Return `value` as one CSV cell."""
    simple = plain(value)
    if simple is None:
        return ""
    return simple if isinstance(simple, str) else json.dumps(simple, ensure_ascii=False)


def _cell(value: Any) -> str:
    if isinstance(value, timedelta):
        return str(value)
    shown = text(value)
    return shown if len(shown) <= 200 else f"{shown[:197]}…"


def _open(
    table: str, version: int | None = None, tag: str | None = None, asof: datetime | None = None
) -> ld.LanceDataset:
    if sum(choice is not None for choice in (version, tag, asof)) > 1:
        raise InvalidInputError("more than one version was asked for", remedy="give one of --version, --tag, --asof")
    return ld.dataset(table, version=tag if version is None else version, asof=asof)


def _connect(place: str, version: int | None, tag: str | None, asof: datetime | None) -> ld.Connection:
    name = Path(place.rstrip("/")).name
    try:
        return ld.connect({name.removesuffix(".lance"): _open(place, version, tag, asof)})
    except NotFoundError:
        if name.endswith(".lance") or (version, tag, asof) != (None, None, None):
            raise
        return ld.connect(place)


def _facts(dataset: ld.LanceDataset) -> dict[str, Any]:
    listed = list(_files(dataset))
    fragments = dataset.get_fragments()
    return {
        "uri": dataset.uri,
        "version": dataset.version,
        "latest_version": dataset.latest_version,
        "rows": dataset.count_rows(),
        "deleted_rows": sum(fragment.num_deletions for fragment in fragments),
        "columns": len(dataset.schema.names),
        "fragments": len(fragments),
        "data_files": len(listed),
        "bytes": sum(entry["bytes"] or 0 for entry in listed),
        "formats": sorted({entry["format"] for entry in listed}),
        "tags": {name: entry["version"] for name, entry in dataset.tags.list().items()},
        "branches": sorted(dataset.branches.list()),
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
                "bytes": file.file_size_bytes,
                "deletion_file": fragment.deletion_file(),
            }


def _number(metadata: Mapping[str, str], name: str) -> int | None:
    return int(metadata[name]) if name in metadata else None
