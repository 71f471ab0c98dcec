r"""Scripts of statements and shell commands, with their line numbers.

Shell commands begin with a dot. As in the shells of DuckDB, SQLite and PostgreSQL, `quit`, `exit`, `\q` and `help` also
work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lance_duck.duck.statement.clauses import Clauses, statements_of
from lance_duck.errors import InvalidInputError, NotFoundError

_LINE: Final = re.compile(r"^LINE (\d+): ")
LEAVE: Final = frozenset({".quit", ".exit", ".q"})
"""Commands that leave the shell, or end a script."""
_WORDS: Final = {
    **dict.fromkeys(("quit", "exit", "quit()", "exit()", "\\q"), ".quit"),
    **dict.fromkeys(("help", "\\?"), ".help"),
    "\\d": ".tables",
    "\\dt": ".tables",
}
"""Commands of other shells."""
_MAYBE_COMMAND: Final = re.compile(r"^[ \t]*(?:[.\\]|quit|exit|help).*$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Script:
    """A SQL script.

    Attributes:
        sql: The SQL text.
        name: File name for error messages. If None, messages do not include line numbers.
    """

    sql: str
    name: str | None = None

    def statements(self) -> Iterator[ScriptStatement]:
        """Yield the statements and commands in order. Remaining text, such as a comment, is the last statement."""
        start = 0
        for line in _MAYBE_COMMAND.finditer(self.sql):
            command = command_of(line[0])
            if command is not None and _is_between(self.sql[start : line.start()]):
                yield from self._statements(start, line.start())
                yield self._statement(line.start(), command, is_command=True)
                start = line.end()
        yield from self._statements(start, len(self.sql))

    def _statements(self, begin: int, end: int) -> Iterator[ScriptStatement]:
        """Yield the statements in a part of the script."""
        sql = self.sql[begin:end]
        statements = statements_of(sql)
        for statement in statements:
            yield self._statement(begin + statement.start, statement.text.rstrip())
        rest = sql[_end_of_last(sql, statements) :].lstrip()
        if rest:
            yield self._statement(end - len(rest), rest.rstrip())

    def _statement(self, start: int, text: str, *, is_command: bool = False) -> ScriptStatement:
        return ScriptStatement(text, self.sql.count("\n", 0, start) + 1, self.name, is_command)


@dataclass(frozen=True)
class ScriptStatement:
    """A statement or a shell command of a script.

    Attributes:
        text: The statement, without the semicolon, or the command.
        line: Line of the script on which the statement begins, from 1.
        script: See `Script.name`.
        is_command: Whether this is a shell command.
    """

    text: str
    line: int = 1
    script: str | None = None
    is_command: bool = False

    def located(self, message: str) -> str:
        """Return an error message with the script's line numbers instead of the statement's."""
        lines, line, shift = [], self.line, 0
        for text in message.split("\n"):
            if shift and not text.strip(" ^"):
                text = " " * shift + text
            shift = 0
            if place := _LINE.match(text):
                line = self.line + int(place[1]) - 1
                head = f"LINE {line}: "
                shift = len(head) - place.end()
                text = head + text[place.end() :]
            lines.append(text)
        return "\n".join(lines) if self.script is None else f"{self.script}:{line}: " + "\n".join(lines)


def read_script(file: Path) -> Script:
    """Read a file of statements.

    Raises:
        NotFoundError: The file does not exist.
        InvalidInputError: The file is not text.
    """
    try:
        return Script(file.read_text(encoding="utf-8-sig"), str(file))
    except FileNotFoundError as error:
        raise NotFoundError("no such SQL file", where=str(file)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError("the file is not valid UTF-8", where=str(file), found=str(error)) from error


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
    return ".quit" if last in LEAVE or last == "\\q" else None


def is_complete(sql: str) -> bool:
    """Return whether the input is empty or its last statement ends with a semicolon."""
    tokens = Clauses.of(sql).tokens
    return tokens[-1].text == ";" if tokens else not sql.strip()


def first_word(sql: str) -> str:
    """Return a statement's first word in lower case, or an empty string if the first token is not a word."""
    return Clauses.of(sql).word(0) or ""


def _is_between(before: str) -> bool:
    """Return whether a new statement can begin after a text, which may end with comments.

    A semicolon that follows the text is a token unless a string or a comment is open.
    """
    tokens = Clauses.of(before + ";").tokens
    return bool(tokens) and tokens[-1].start == len(before) and all(token.text == ";" for token in tokens[-2:])


def _end_of_last(sql: str, statements: list[Clauses]) -> int:
    """Return the end of the semicolon after the last statement, or of the input if there is none."""
    if not statements:
        return 0
    last = statements[-1]
    return last.end + 1 if sql[last.end : last.end + 1] == ";" else len(sql)
