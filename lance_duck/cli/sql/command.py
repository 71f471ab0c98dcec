"""The command `lance-duck sql`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from lance_duck.cli.show import usual_form
from lance_duck.cli.sql.memory import lost_message
from lance_duck.cli.sql.places import STANDARD_INPUT, VersionArguments, connect_to, places_and_sql
from lance_duck.cli.sql.results import Results
from lance_duck.cli.sql.runner import StatementRunner
from lance_duck.cli.sql.script import Script, read_script
from lance_duck.cli.sql.shell import Shell
from lance_duck.cli.terminal import complain


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
) -> None:
    """Run SQL, or open a SQL shell. Tables are named after their folders, without .lance."""
    places, text = places_and_sql(words or [])
    scripts = list(_scripts(files or [], text))
    with connect_to(places, VersionArguments(version, tag, asof), read_only=read_only) as connection:
        runner = StatementRunner(connection, Results(usual_form(as_json), max_rows))
        try:
            if not scripts and sys.stdin.isatty():
                Shell(runner).run()
            elif not _run(runner, scripts or [_standard_input()], keep_going=keep_going):
                sys.exit(1)
        finally:
            runner.leave()
            if (message := lost_message(connection, places)) is not None:
                complain(message)


def _run(runner: StatementRunner, scripts: Sequence[Script], *, keep_going: bool) -> bool:
    """Run scripts until one fails; return whether all succeeded."""
    is_good = True
    for script in scripts:
        is_good &= runner.run_script(script, keep_going=keep_going)
        if not is_good and not keep_going:
            return False
    return is_good


def _scripts(files: Sequence[Path], text: str | None) -> Iterator[Script]:
    """Yield the scripts: first the files, then the SQL given on the command line."""
    for file in files:
        yield _standard_input() if str(file) == STANDARD_INPUT else read_script(file)
    if text is not None:
        yield _standard_input() if text == STANDARD_INPUT else Script(text)


def _standard_input() -> Script:
    return Script(sys.stdin.read(), "<stdin>")
