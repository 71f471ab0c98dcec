"""Rejects DuckDB statements that would write a file to the path of a Lance table.

COPY … TO e [(…)]                            e is a placeholder, an expression in parentheses, a constant that is not a
                                             plain string, or any path with FORMAT lance
ATTACH [DATABASE] [IF NOT EXISTS] e [AS …]   refused, except with TYPE lance
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NoReturn

from lance_duck.duck.changes.options import is_lance
from lance_duck.duck.changes.parameters import placeholders_of
from lance_duck.duck.changes.result import ChangeResult
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import LanceStatement
from lance_duck.duck.changes.tables.copy_to import CopyStatement
from lance_duck.duck.statement.clauses import Clauses, TableName, stem
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import literal
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.wire.paths import TABLE_SUFFIX

_STREAMS: Final = frozenset({"stdin", "stdout"})
"""Keywords that COPY accepts instead of a path."""


@dataclass(frozen=True)
class WrittenPath:
    """The path of a file in a statement.

    Attributes:
        sql: An expression.
        after: Position of the token after it.
    """

    sql: str
    after: int

    @classmethod
    def at(cls, clauses: Clauses, place: int) -> WrittenPath | None:
        """Read the path at a token position. Returns None at the end of the statement."""
        if place >= len(clauses):
            return None
        tokens, after = clauses.tokens, place + 1
        first, is_quoted = tokens[place], clauses.sql.startswith("'", tokens[place].end)
        if first.text == "(":
            after = clauses.closer(place) + 1
        elif first.text == "$" and place + 1 < len(clauses) and tokens[place + 1].start == first.end:
            after = place + 2
        elif first.name is not None and not is_quoted:  # unquoted x.lance is also a path
            name = TableName.at(clauses, place)
            assert name is not None
            if first.word in _STREAMS:
                return cls(literal(f"/dev/{first.word}"), name.after)
            return cls(literal(".".join(name.parts)), name.after)
        end = tokens[after].start if after < len(tokens) else clauses.end
        return cls(clauses.sql[first.start : end].strip(), after)

    def value(self, session: ChangeSession) -> str | None:
        """Return the path. Returns None if it depends on unknown values."""
        if placeholders_of(self.sql) and session.parameters.used_by(self.sql) is None:
            return None
        if "?" in self.sql:
            return None
        value = session.relation(f"SELECT ({self.sql}\n)::VARCHAR", {}).fetchall()[0][0]
        return "" if value is None else str(value)

    def may_be_lance(self, session: ChangeSession) -> bool:
        """Return whether the path may refer to a Lance table, or to a file in its folder."""
        value = self.value(session)
        return value is None or is_in_table(value)


def is_in_table(path: str) -> bool:
    """Return whether a path refers to a Lance table, or to a file in its folder."""
    parts = path.replace("\\", "/").split("/")
    return any(part.lower().endswith(TABLE_SUFFIX) and part.lower() != TABLE_SUFFIX for part in parts)


@dataclass(frozen=True)
class ComputedCopyStatement(LanceStatement):
    """A COPY … TO a path that is not a plain constant, or that does not end in `.lance`.

    Attributes:
        source: A query in parentheses, or a table with an optional column list.
        path: The target path.
        options: The options, including parentheses. May be empty.
    """

    source: Clauses
    path: WrittenPath
    options: Clauses

    @property
    def subject(self) -> str:
        """The path, for errors."""
        return self.path.sql

    @classmethod
    def read(cls, head: StatementHead) -> ComputedCopyStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        to = body.find("to")
        path = WrittenPath.at(body, to + 1) if to > 0 else None
        if path is None:
            return None
        options = body.part(path.after + (body.word(path.after) == "with"))
        is_plain = body.text_at(to + 1).startswith("'") and TABLE_SUFFIX not in path.sql.lower()
        return None if is_plain and not is_lance(options) else cls(body.part(1, to), path, options)

    def concerns(self, session: ChangeSession) -> bool:
        """Return whether the format is lance, or the path may refer to a Lance table or to a file in its folder."""
        return is_lance(self.options) or self.path.may_be_lance(session)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Write the rows."""
        path = self.path.value(session)
        if path is None:
            raise InvalidInputError("the path of COPY … TO is null", where=self.path.sql)
        if not path.lower().rstrip("/").endswith(TABLE_SUFFIX) and (is_in_table(path) or not is_lance(self.options)):
            raise path_refused("COPY to", path)
        return CopyStatement(TableName((stem(path) or path,), path, 0, 0), self.source, self.options).run(session)


@dataclass(frozen=True)
class ForeignFileStatement(LanceStatement):
    """An ATTACH that would write to the path of a Lance table, or read it in a different format.

    Attributes:
        path: The path in the statement.
    """

    path: WrittenPath

    @property
    def subject(self) -> str:
        """The path, for errors."""
        return self.path.sql

    @classmethod
    def read(cls, head: StatementHead) -> ForeignFileStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        if body.word(0) != "attach":
            return None
        place = 3 if body.says(1, "or", "replace") else 1
        place += body.word(place) == "database"
        place += 3 if body.says(place, "if", "not", "exists") else 0
        path = WrittenPath.at(body, place)
        return None if path is None else cls(path)

    def concerns(self, session: ChangeSession) -> bool:
        """Return whether the path may refer to a Lance table, or to a file in its folder."""
        return self.path.may_be_lance(session)

    def run(self, session: ChangeSession) -> NoReturn:
        """Raise UnsupportedError."""
        raise path_refused("ATTACH without TYPE lance of", self.path.value(session) or self.path.sql, _ATTACHED)


_OTHER_PATH: Final = "choose a path without .lance"
_ATTACHED: Final = "read the table with FROM 'name.lance', or attach its folder: ATTACH 'folder' AS name (TYPE lance)"


def path_refused(what: str, path: str, remedy: str = _OTHER_PATH) -> UnsupportedError:
    """Return the error for a statement that would write to the path of a Lance table."""
    return UnsupportedError(f"{what} the path of a Lance table is not supported", where=literal(path), remedy=remedy)
