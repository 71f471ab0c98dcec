"""Shell commands, which begin with a dot, and scripts with them."""

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
from lance_duck.cli.sql.script import LEAVE, Script, ScriptStatement, read_script
from lance_duck.cli.terminal import complain, write_line
from lance_duck.duck.statement.identifiers import literal, quoted
from lance_duck.errors import InvalidInputError, LanceDuckError
from lance_duck.wire.paths import TABLE_SUFFIX

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
        run: Runs the command with its argument, or with an empty string. Returns False if it fails.
    """

    arguments: str
    what: str
    run: Callable[[StatementRunner, str], bool | None]

    @property
    def counts(self) -> tuple[int, ...]:
        """The valid argument counts."""
        if not self.arguments:
            return (0,)
        return (0, 1) if self.arguments.startswith("[") else (1,)


def run_script(runner: StatementRunner, script: Script, *, keep_going: bool = False) -> bool:
    """Run the statements and commands of a script until one fails or leaves. Returns whether all succeeded.

    Args:
        runner: Runs the statements.
        script: The statements and commands.
        keep_going: Whether to continue after a failure.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    is_good = True
    for statement in script.statements():
        is_good &= _run_command(runner, statement) if statement.is_command else runner.run(statement)
        if runner.has_left or not (is_good or keep_going):
            break
    return is_good


def _run_command(runner: StatementRunner, command: ScriptStatement) -> bool:
    """Run a shell command. Writes errors to stderr. Returns whether it succeeded."""
    name, _, rest = command.text.partition(" ")
    name = name.rstrip(";").lower()
    if name in LEAVE:
        runner.has_left = True
        return True
    try:
        arguments = shlex.split(rest.strip().rstrip(";"))
        known = DOT_COMMANDS.get(name)
        if known is None:
            raise unknown_value("command", name, DOT_COMMANDS)
        if len(arguments) not in known.counts:
            raise InvalidInputError("wrong arguments", where=name, expected=f"{name} {known.arguments}".strip())
        return known.run(runner, "".join(arguments)) is not False
    except (LanceDuckError, ValueError) as error:
        complain(command.located(message_of(error)))
        return False


def _help(runner: StatementRunner, argument: str) -> None:
    for name, command in DOT_COMMANDS.items():
        write_line(f"{name} {command.arguments}".ljust(26) + command.what)


def _tables(runner: StatementRunner, argument: str) -> None:
    if runner.results.form is not Form.table:
        run_script(runner, Script(_TABLES))
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
            run_script(runner, Script(f"DESCRIBE {'.'.join(map(quoted, parts))}"))
        return
    is_path = argument.rstrip("/").lower().endswith(TABLE_SUFFIX)
    table = f"FROM {literal(argument)}" if is_path else ".".join(map(quoted, argument.split(".")))
    run_script(runner, Script(f"DESCRIBE {table}"))


def _read(runner: StatementRunner, argument: str) -> bool:
    return run_script(runner, read_script(Path(argument).expanduser()))


def _mode(runner: StatementRunner, argument: str) -> None:
    if argument not in ("", *Form):
        raise unknown_value("mode", argument, [form.value for form in Form])
    if argument:
        runner.results.form = Form(argument)
    if runner.is_interactive or not argument:
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
