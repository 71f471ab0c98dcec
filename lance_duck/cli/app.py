"""The application, and the arguments that its commands share."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

import lance_duck as ld
from lance_duck.errors import InvalidInputError

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


def open_table(
    table: str, version: int | None = None, tag: str | None = None, asof: datetime | None = None
) -> ld.LanceDataset:
    """Open a version of a table. Raises InvalidInputError when more than one is asked for."""
    if sum(choice is not None for choice in (version, tag, asof)) > 1:
        raise InvalidInputError("more than one version was asked for", remedy="give one of --version, --tag, --asof")
    return ld.dataset(table, version=tag if version is None else version, asof=asof)
