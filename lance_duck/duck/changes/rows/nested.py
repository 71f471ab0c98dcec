"""Changes inside other statements: `WITH x AS (DELETE FROM t … RETURNING …) …`, which DuckDB 2.0 has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NoReturn

from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import TableStatement
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.errors import UnsupportedError

_NAMED_AFTER: Final = {"insert": "into", "update": "update", "delete": "from", "merge": "into", "truncate": "truncate"}
"""The word after which each change names its table."""


@dataclass(frozen=True)
class NestedChange(TableStatement):
    """A change of a Lance table as a common table expression, which is refused."""

    @classmethod
    def targets(cls, head: StatementHead) -> list[NestedChange]:
        """Return the changes that WITH holds, those of tables of DuckDB's own among them."""
        names = (_target(head.ctes, place) for place in range(len(head.ctes)))
        return [cls(name) for name in names if name is not None]

    def run(self, session: ChangeSession) -> NoReturn:
        """Raise UnsupportedError."""
        raise UnsupportedError(
            "a change of a Lance table as a common table expression",
            where=f"table {self.target.name}",
            remedy="run it as a statement of its own, and keep what it returns",
        )


def _target(ctes: Clauses, place: int) -> TableName | None:
    """Return the table that a change names which begins at a place, right after AS (."""
    word = _NAMED_AFTER.get(ctes.word(place) or "")
    if word is None or ctes.text_at(place - 1) != "(" or ctes.word(place - 2) not in ("as", "materialized"):
        return None
    named = next((i for i in range(place, min(place + 4, len(ctes))) if ctes.word(i) == word), None)
    return None if named is None else TableName.at(ctes, named + 1)
