"""Scripts of several statements, with their line numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lance_duck.duck.statement.clauses import Clauses, statements_of
from lance_duck.errors import InvalidInputError, NotFoundError

_LINE: Final = re.compile(r"^LINE (\d+): ")


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
        """Yield the statements in order, then any remaining text, such as a comment or an unterminated statement."""
        statements = statements_of(self.sql)
        for statement in statements:
            yield self._statement(statement.start, statement.text.rstrip())
        start = _end_of_last(self.sql, statements)
        rest = self.sql[start:].lstrip()
        if rest:
            yield self._statement(len(self.sql) - len(rest), rest)

    def _statement(self, start: int, text: str) -> ScriptStatement:
        return ScriptStatement(text, self.sql.count("\n", 0, start) + 1, self.name)


@dataclass(frozen=True)
class ScriptStatement:
    """A statement of a script.

    Attributes:
        text: The statement, without the semicolon.
        line: Line of the script on which the statement begins, from 1.
        script: See `Script.name`.
    """

    text: str
    line: int = 1
    script: str | None = None

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


def is_complete(sql: str) -> bool:
    """Return whether the input is empty or its last statement ends with a semicolon."""
    tokens = Clauses.of(sql).tokens
    return tokens[-1].text == ";" if tokens else not sql.strip()


def first_word(sql: str) -> str:
    """Return a statement's first word in lower case, or an empty string if the first token is not a word."""
    return Clauses.of(sql).word(0) or ""


def _end_of_last(sql: str, statements: list[Clauses]) -> int:
    """Return the end of the semicolon after the last statement, or of the input if there is none."""
    if not statements:
        return 0
    last = statements[-1]
    return last.end + 1 if sql[last.end : last.end + 1] == ";" else len(sql)
