r"""Shell commands, which begin with a dot.

As in the shells of DuckDB, SQLite and PostgreSQL, `quit`, `exit`, `\q` and `help` also work.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lance_duck.arguments import unknown_value
from lance_duck.cli.message import message_of
from lance_duck.cli.show import Form
from lance_duck.cli.sql.runner import StatementRunner
from lance_duck.cli.sql.script import Script, read_script
from lance_duck.cli.terminal import complain, write_line
from lance_duck.duck.statement.identifiers import literal, quoted
from lance_duck.errors import InvalidInputError, LanceDuckError
from lance_duck.wire.paths import TABLE_SUFFIX

_LEAVE: Final = frozenset({".quit", ".exit", ".q"})
_WORDS: Final = {
    **dict.fromkeys(("quit", "exit", "quit()", "exit()", "\\q"), ".quit"),
    **dict.fromkeys(("help", "\\?"), ".help"),
    "\\d": ".tables",
    "\\dt": ".tables",
}
"""Commands of other shells."""
_TABLES: Final = """
SELECT database, schema, name, column_names FROM (SHOW ALL TABLES)
ORDER BY database <> 'lance', database, schema, name
"""


@dataclass(frozen=True)
class DotCommand:
    """A shell command.

    Attributes:
        arguments: The arguments as shown by `.help`, with optional ones in brackets.
        what: Description for `.help`.
        run: Runs the command with its argument, or with an empty string.
    """

    arguments: str
    what: str
    run: Callable[[StatementRunner, str], None]

    @property
    def counts(self) -> tuple[int, ...]:
        """The valid argument counts."""
        if not self.arguments:
            return (0,)
        return (0, 1) if self.arguments.startswith("[") else (1,)


def command_of(text: str) -> str | None:
    """Return the shell command of an input. Returns None for SQL.

    The last line of an unfinished statement can only be a command that leaves the shell.
    """
    line = text.strip()
    if line.startswith("."):
        return line
    if (command := _WORDS.get(line.rstrip("; ").lower())) is not None:
        return command
    last = line.rpartition("\n")[2].strip().rstrip("; ").lower()
    return ".quit" if last in _LEAVE or last == "\\q" else None


def run_dot_command(runner: StatementRunner, text: str) -> bool:
    """Run a shell command. Returns False if the shell should end. Errors go to stderr."""
    name, _, rest = text.partition(" ")
    name = name.rstrip(";").lower()
    if name in _LEAVE:
        return False
    try:
        arguments = shlex.split(rest.strip().rstrip(";"))
        command = DOT_COMMANDS.get(name)
        if command is None:
            raise unknown_value("command", name, DOT_COMMANDS)
        if len(arguments) not in command.counts:
            raise InvalidInputError("wrong arguments", where=name, expected=f"{name} {command.arguments}".strip())
        command.run(runner, "".join(arguments))
    except (LanceDuckError, ValueError) as error:
        complain(message_of(error))
    return True


def _help(runner: StatementRunner, argument: str) -> None:
    for name, command in DOT_COMMANDS.items():
        write_line(f"{name} {command.arguments}".ljust(26) + command.what)


def _tables(runner: StatementRunner, argument: str) -> None:
    if runner.results.form is not Form.table:
        runner.run_script(Script(_TABLES))
        return
    for parts in _table_names(runner):
        write_line(".".join(parts))


def _table_names(runner: StatementRunner) -> list[tuple[str, ...]]:
    """Return the names of all tables and views, without database and schema unless several have one name."""
    rows = runner.connection.cursor().sql(_TABLES).fetchall()
    names = [name for _, _, name, _ in rows]
    return [
        (name,) if schema == "main" and names.count(name) == 1 else (database, schema, name)
        for database, schema, name, _ in rows
    ]


def _schema(runner: StatementRunner, argument: str) -> None:
    if not argument:
        for parts in _table_names(runner):
            if runner.results.form is Form.table:
                write_line(".".join(parts))
            runner.run_script(Script(f"DESCRIBE {'.'.join(map(quoted, parts))}"))
        return
    is_path = argument.rstrip("/").lower().endswith(TABLE_SUFFIX)
    table = f"FROM {literal(argument)}" if is_path else ".".join(map(quoted, argument.split(".")))
    runner.run_script(Script(f"DESCRIBE {table}"))


def _read(runner: StatementRunner, argument: str) -> None:
    runner.run_script(read_script(Path(argument).expanduser()))


def _mode(runner: StatementRunner, argument: str) -> None:
    if argument not in ("", *Form):
        raise unknown_value("mode", argument, [form.value for form in Form])
    if argument:
        runner.results.form = Form(argument)
    write_line(f"mode: {runner.results.form}")


def _timer(runner: StatementRunner, argument: str) -> None:
    if argument not in ("on", "off"):
        raise unknown_value(".timer", argument, ("on", "off"))
    runner.is_timed = argument == "on"


def _nothing(runner: StatementRunner, argument: str) -> None:
    pass


DOT_COMMANDS: Final[Mapping[str, DotCommand]] = {
    ".help": DotCommand("", "Lists these commands.", _help),
    ".tables": DotCommand("", "Lists tables and views.", _tables),
    ".schema": DotCommand("[TABLE]", "Shows the columns of a table, or of all tables.", _schema),
    ".read": DotCommand("FILE", "Runs the statements of a file.", _read),
    ".mode": DotCommand(f"[{'|'.join(Form)}]", "Says how rows are shown, or changes that.", _mode),
    ".timer": DotCommand("on|off", "Shows the time that each statement took.", _timer),
    ".quit": DotCommand("", "Leaves, as Ctrl-D does.", _nothing),
    ".exit": DotCommand("", "Likewise.", _nothing),
}
