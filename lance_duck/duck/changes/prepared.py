"""Prepared statements of one connection. Their texts are stored, and EXECUTE runs the text.

    PREPARE x AS statement
    [EXPLAIN …] EXECUTE x [(e, …) | (name := e, …)]   →  the statement, with (e) in place of $1 or $name
    DEALLOCATE [PREPARE] x

DuckDB also prepares each statement that it can run, and executes those that do not refer to Lance tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from typing import Final

import duckdb

from lance_duck.duck.changes.parameters import placeholders_of, places_of
from lance_duck.duck.statement.clauses import Clauses, statements_of
from lance_duck.duck.statement.edits import Edit, apply
from lance_duck.duck.statement.head import FirstWords, StatementHead, StatementKind
from lance_duck.duck.statement.identifiers import folded, literal, quoted
from lance_duck.duck.statement.text import Statement
from lance_duck.errors import InvalidInputError

_CHECK: Final = "__lance_values"
_VALUE: Final = "__lance_value_"
_NUMBERS: Final = cycle(range(1024))
_CONSTANTS: Final = frozenset({"null", "true", "false"})


@dataclass(frozen=True)
class Preparation:
    """A PREPARE.

    Attributes:
        name: Name of the statement.
        text: The statement.
    """

    name: str
    text: str

    @classmethod
    def read(cls, sql: str) -> Preparation | None:
        """Read a PREPARE. Returns None for other statements."""
        body = _only_statement(sql)
        if body is None or body.word(0) != "prepare" or body.word(2) != "as" or len(body) < 4:
            return None
        return cls(body.tokens[1].name or "", body.part(3).text)


@dataclass(frozen=True)
class _Prepared:
    """A prepared statement.

    Attributes:
        text: The statement, with numbered placeholders.
        is_ours: Whether to always run the text, and never DuckDB's prepared statement.
    """

    text: str
    is_ours: bool


class PreparedStatements:
    """The prepared statements of one connection, by name.

    Args:
        native: DuckDB's connection.
    """

    def __init__(self, native: duckdb.DuckDBPyConnection) -> None:
        self._native = native
        self._prepared: dict[str, _Prepared] = {}

    def keep(self, preparation: Preparation, *, is_ours: bool) -> None:
        """Store a prepared statement.

        Args:
            preparation: The statement.
            is_ours: Whether to always run the text, and never DuckDB's prepared statement.
        """
        text = Statement.of(preparation.text).numbered
        self._prepared[folded(preparation.name)] = _Prepared(text, is_ours)

    def executed(self, sql: str, reads_ours: Callable[[str], bool] | None) -> str:
        """Return the statement that an EXECUTE runs.

        Returns other statements unchanged. For DEALLOCATE, drops the statement.

        Args:
            sql: The statement.
            reads_ours: Only given in a transaction, because it may read different table versions than DuckDB's prepared
                statement. Returns whether a statement may read a Lance table.

        Raises:
            InvalidInputError: The values do not match the placeholders.
            duckdb.Error: A value is not a constant.
        """
        if (statement := _only_statement(sql)) is None:
            return sql
        head = StatementHead.of(statement)
        body = head.body
        if body.word(0) == "deallocate":
            place = 2 if body.word(1) == "prepare" and len(body) > 2 else 1
            if place < len(body):
                self._prepared.pop(folded(body.tokens[place].name or ""), None)
            return sql
        name = body.tokens[1].name if body.word(0) == "execute" and len(body) > 1 else None
        prepared = None if name is None else self._prepared.get(folded(name))
        if name is None or prepared is None:
            return sql
        if not prepared.is_ours and (reads_ours is None or not reads_ours(prepared.text)):
            return sql
        return head.explain.text + self._with_values(name, prepared.text, body.part(2))

    def _with_values(self, name: str, text: str, clauses: Clauses) -> str:
        """Return a statement with values in place of its placeholders."""
        values = _values(clauses)
        names = placeholders_of(text)
        if values.keys() != names:
            raise InvalidInputError(
                "the values of EXECUTE do not match the statement",
                where=f"prepared statement {quoted(name)}",
                expected=", ".join(f"${each}" for each in sorted(names)) or "none",
                found=", ".join(f"${each}" for each in sorted(values)) or "none",
            )
        if any(placeholders_of(value.text) or "?" in value.text for value in values.values()):
            raise InvalidInputError(
                "EXECUTE takes values, and cannot take parameters of the connection",
                where=f"prepared statement {quoted(name)}",
                remedy="write the values, or run the statement with execute(sql, parameters)",
            )
        texts = {
            each: f"({value.text})" if _is_literal(value) else self._evaluated(value) for each, value in values.items()
        }
        return apply(text, [Edit(*span, texts[each]) for each, span in places_of(text)])

    def _evaluated(self, value: Clauses) -> str:
        """Evaluate an expression and return its value as SQL. Raises duckdb.Error if it is not a constant."""
        self._native.execute(f"PREPARE {_CHECK} AS SELECT $1")
        try:
            self._native.execute(f"EXECUTE {_CHECK}({value.text})").fetchall()
        finally:
            self._native.execute(f"DEALLOCATE {_CHECK}")
        name = f"{_VALUE}{next(_NUMBERS)}"
        self._native.execute(f"SET VARIABLE {name} = ({value.text})")
        return f"getvariable({literal(name)})"


def _is_literal(value: Clauses) -> bool:
    """Return whether a value consists only of numbers, strings and signs, and therefore means the same everywhere."""
    return not any(token.text == "(" or (token.name and token.word not in _CONSTANTS) for token in value.tokens)


def _only_statement(sql: str) -> Clauses | None:
    if FirstWords.of(sql).kind is not StatementKind.PREPARED:
        return None
    statements = statements_of(sql)
    return statements[0] if len(statements) == 1 else None


def _values(clauses: Clauses) -> dict[str, Clauses]:
    """Return the values in parentheses, keyed by name, or by number as a string."""
    if clauses.text_at(0) != "(":
        return {}
    values: dict[str, Clauses] = {}
    for number, item in enumerate(clauses.part(1, clauses.closer(0)).split(), 1):
        is_named = item.text_at(1).startswith(":") and item.sql.startswith(":=", item.tokens[1].start)
        values[str(item.tokens[0].name) if is_named else str(number)] = item.part(2) if is_named else item
    return values
