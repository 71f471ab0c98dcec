"""The command `lance-duck sql`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import lance_duck as ld
from lance_duck.cli.open import cache_options
from lance_duck.cli.show import usual_form
from lance_duck.cli.sql.dot_commands import run_script
from lance_duck.cli.sql.places import STANDARD_INPUT, VersionArguments, connect_to, places_and_sql
from lance_duck.cli.sql.results import Results
from lance_duck.cli.sql.runner import StatementRunner
from lance_duck.cli.sql.script import Script, read_script
from lance_duck.cli.sql.shell import Shell
from lance_duck.cli.terminal import complain
from lance_duck.duck.statement.identifiers import literal, quoted
from lance_duck.store import open_store
from lance_duck.wire.paths import TABLE_SUFFIX, VERSIONS

_LOST: Final = """
SELECT 'table' AS kind, schema_name, table_name AS name FROM system.main.duckdb_tables()
WHERE database_name = 'memory' AND NOT internal AND NOT temporary
UNION ALL
SELECT 'view', schema_name, view_name FROM system.main.duckdb_views()
WHERE database_name = 'memory' AND NOT internal AND NOT temporary
ORDER BY kind, schema_name, name
"""
"""Query for tables and views in DuckDB's in-memory database, which disappears with the connection."""
_NAMED: Final = 5


def sql(
    words: list[str] | None = (None),
    files: list[Path] | None = (None),
    read_only: bool = False,
    keep_going: bool = False,
    version: int | None = None,
    tag: str | None = None,
    asof: datetime | None = None,
    as_json: bool = False,
    max_rows: int = 100,
    cache: str | None = None,
    cache_size: str | None = None,
) -> None:
    """Run SQL, or open a SQL shell. A folder is the database, and new tables and views are stored in it."""
    places, text = places_and_sql(words or [])
    scripts = list(_scripts(files or [], text))
    arguments = VersionArguments(version, tag, asof)
    options = cache_options(cache, cache_size)
    with connect_to(places, arguments, read_only=read_only, storage_options=options) as connection:
        runner = StatementRunner(connection, Results(usual_form(as_json), max_rows))
        try:
            if not scripts and sys.stdin.isatty():
                Shell(runner).run()
            elif not _run(runner, scripts or [_standard_input()], keep_going=keep_going):
                sys.exit(1)
        finally:
            runner.leave()
            if (message := _lost_message(connection, places)) is not None:
                complain(message)


def _run(runner: StatementRunner, scripts: Sequence[Script], *, keep_going: bool) -> bool:
    """Run scripts until one fails or leaves. Returns whether all succeeded."""
    is_good = True
    for script in scripts:
        is_good &= run_script(runner, script, keep_going=keep_going)
        if runner.has_left or not (is_good or keep_going):
            break
    return is_good


def _scripts(files: Sequence[Path], text: str | None) -> Iterator[Script]:
    """Yield the scripts: files first, then the SQL argument."""
    for file in files:
        yield _standard_input() if str(file) == STANDARD_INPUT else read_script(file)
    if text is not None:
        yield _standard_input() if text == STANDARD_INPUT else Script(text)


def _standard_input() -> Script:
    return Script(sys.stdin.read(), "<stdin>")


def _lost_message(connection: ld.Connection, places: Sequence[str]) -> str | None:
    """Return a warning that names the tables and views that are lost with the connection, and a way to keep them.

    Args:
        connection: The connection, outside a transaction.
        places: The folder or the tables to which it is connected.

    Returns:
        One line, or None if no tables or views are in memory.
    """
    lost = connection.native.execute(_LOST).fetchall()
    if not lost:
        return None
    names = [f"{kind} {_spelled(schema, name)}" for kind, schema, name in lost[:_NAMED]]
    more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
    kind, _, name = lost[0]
    target = f"lance.{_spelled('main', name)}" if _has_folder(places) else literal(name + TABLE_SUFFIX)
    kept = "a table" if kind == "table" else "its rows"
    line = f"in memory only, and gone now: {', '.join(names)}{more}; CREATE TABLE {target} AS … keeps {kept}"
    return line.replace("\n", r"\n")


def _spelled(schema: str, name: str) -> str:
    parts = [name] if schema == "main" else [schema, name]
    return ".".join(part if part.isidentifier() else quoted(part) for part in parts)


def _has_folder(places: Sequence[str]) -> bool:
    """Return whether the database `lance` has a folder for new tables."""
    return len(places) == 1 and VERSIONS not in (open_store(places[0]).folders() or ())
