"""Commands that change a table, and `validate`, which reads all of it."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated

import typer

import lance_duck as ld
from lance_duck.cli.app import JsonOption, PathArgument, TagOption, VersionOption, app, open_table
from lance_duck.cli.bar import progress_bar
from lance_duck.cli.show import report, show


class Mode(StrEnum):
    """What happens to rows that are there already."""

    create = "create"
    append = "append"
    overwrite = "overwrite"


@app.command()
def write(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Parquet, CSV or JSON file, or SQL in parentheses.")],
    table: PathArgument,
    mode: Annotated[Mode, typer.Option(help="create fails when the table exists; append makes a missing one.")] = (
        Mode.create
    ),
    data_storage_version: Annotated[str | None, typer.Option("--format", help="File format: 2.0, 2.1 or 2.2.")] = None,
    max_rows_per_file: Annotated[int, typer.Option("--max-rows-per-file", min=1, help="Rows of a file.")] = 1 << 20,
    as_json: JsonOption = False,
) -> None:
    """Write rows to a table."""
    with ld.connect() as connection:
        place = source if source.lstrip().startswith("(") else _quoted(source)
        dataset = ld.write_dataset(
            connection.sql(f"FROM {place}"),
            table,
            mode=mode.value,
            data_storage_version=data_storage_version,
            max_rows_per_file=max_rows_per_file,
        )
    report({"version": dataset.version, "rows": dataset.count_rows()}, as_json)


@app.command()
def compact(
    table: PathArgument,
    target_rows: Annotated[int | None, typer.Option("--target-rows", min=1, help="Join smaller fragments.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Join small fragments and leave out deleted rows."""
    dataset = open_table(table)
    with progress_bar("compacting") as progress:
        metrics = dataset.optimize.compact_files(target_rows_per_fragment=target_rows, progress=progress)
    report({"version": dataset.version, **vars(metrics)}, as_json)


@app.command()
def cleanup(
    table: PathArgument,
    older_than: Annotated[
        float | None, typer.Option("--older-than", min=0, metavar="DAYS", help="Age to keep.")
    ] = None,
    retain: Annotated[int | None, typer.Option("--retain", min=1, help="Newest versions to keep.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, remove nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove old versions (14 days, unless told otherwise) and the files that only they refer to."""
    age = None if older_than is None else timedelta(days=older_than)
    stats = open_table(table).cleanup_old_versions(age, retain, dry_run=dry_run, error_if_tagged_old_versions=False)
    report(vars(stats), as_json)


@app.command()
def validate(
    table: PathArgument, version: VersionOption = None, tag: TagOption = None, as_json: JsonOption = False
) -> None:
    """Read everything and list what is wrong; exit code 1 when something is."""
    problems = open_table(table, version, tag).find_problems()
    show(({"where": p.where, "problem": p.what} for p in problems), ["where", "problem"], as_json, max_rows=1000)
    if problems:
        raise typer.Exit(1)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
