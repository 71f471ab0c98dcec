"""MERGE INTO, on a shadow of the rows that the source matches; it ends in `verbs.rows.edits`.

    MERGE INTO t [[AS] a] USING source ON … | USING (c, …)
        WHEN MATCHED | NOT MATCHED [BY TARGET] | NOT MATCHED BY SOURCE [AND …]
            THEN UPDATE … | DELETE | INSERT … | DO NOTHING | ERROR …
        [RETURNING …]

The shadow has one column more than the table, so INSERT and UPDATE by position get lists of columns. With BY SOURCE,
and where a clause reads the table itself, the shadow has all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import pyarrow as pa

from lance_duck.duck.changes.head import StatementHead
from lance_duck.duck.changes.result import ChangeResult
from lance_duck.duck.changes.returning import result_of
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.shadow import SHADOW, changed_shadow, shadow
from lance_duck.duck.changes.target import SOURCE, TargetTable
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.identifiers import folded, quoted
from lance_duck.errors import InvalidInputError
from lance_duck.scan.projection import ROW_ADDRESS
from lance_duck.verbs.rows.edits import RowEdits

_SOURCE: Final = "__lance_merge_source"
_ACTION: Final = "merge_action"
_MATCHES_ONCE: Final = duckdb.__version__ >= "2"
"""Whether DuckDB refuses a row that several rows of the source match; before 2.0 the last of them counts."""


@dataclass(frozen=True)
class MergeStatement:
    """A MERGE; each clause begins with its word.

    Attributes:
        ctes: WITH.
        target: The table.
        alias: What the statement calls it.
        source: What follows USING.
        source_alias: What the statement calls the source.
        join: ON, or USING with columns.
        actions: Each WHEN.
        returning: RETURNING, or nothing.
    """

    ctes: Clauses
    target: TableName
    alias: str
    source: Clauses
    source_alias: str
    join: Clauses
    actions: tuple[Clauses, ...]
    returning: Clauses

    @classmethod
    def read(cls, head: StatementHead) -> MergeStatement | None:
        """Read the clauses; None if they are not those of a MERGE."""
        body = head.body
        target = TableName.at(body, 2) if body.says(0, "merge", "into") else None
        if target is None:
            return None
        alias, using = target.alias(body, "using")
        when = [i for i in range(len(body)) if body.word(i) == "when" and body.depths[i] == 0]
        joins = (
            [i for i in range(using + 1, when[0]) if body.word(i) in ("on", "using") and body.depths[i] == 0]
            if when
            else []
        )
        if body.word(using) != "using" or not joins:
            return None
        end = body.find("returning", start=when[-1])
        end = len(body) if end < 0 else end
        source = body.part(using + 1, joins[-1])
        actions = [body.part(start, stop) for start, stop in zip(when, [*when[1:], end], strict=True)]
        name = _alias_of(source)
        if name is None:
            return None
        join = body.part(joins[-1], when[0])
        return cls(head.ctes, target, alias, source, name, join, tuple(actions), body.part(end))

    def run(self, session: ChangeSession) -> ChangeResult:
        """Merge the source into the table."""
        return session.change(self.target, lambda table: self.edits(session, table))

    def edits(self, session: ChangeSession, table: TargetTable) -> tuple[RowEdits, ChangeResult]:
        """Run the MERGE on a shadow of a version."""
        clauses = (self.ctes, self.source, self.join, *self.actions)
        with session.pinned(table, self.target, *clauses) as ((ctes, source, join, *actions), tables):
            rows = session.arrow(f"{ctes}SELECT * FROM {source}", tables)  # noqa: S608
            tables[_SOURCE] = rows
            matched = self._matched(session, table, ctes, join, tables)
            when = "".join(
                self._spelled(table, part, text, rows.column_names)
                for part, text in zip(self.actions, actions, strict=True)
            )
            with shadow(session, table, matched):
                target = f"{SHADOW} AS {quoted(self.alias)} USING {_SOURCE} AS {quoted(self.source_alias)}\n{join}"
                sql = f"{ctes}MERGE INTO {target}{when}"
                if self.returning.tokens:
                    answer = session.arrow(f"{sql}RETURNING {_ACTION}, *", tables)
                    count = answer.num_rows
                else:
                    answer, count = None, session.affected(sql, tables)
                edits = changed_shadow(session, table, matched, self.keys)
        shown = None if answer is None else answer.drop_columns([ROW_ADDRESS])
        return edits, result_of(session, self.returning, table, self.alias, shown, count)

    @property
    def keys(self) -> tuple[str, ...] | None:
        """The columns of the table by whose equality rows match; None if they match by something else."""
        if self.join.word(0) == "using":
            names = [part.tokens[0].name for part in self.join.part(2, self.join.closer(1)).split()]
            return tuple(name for name in names if name is not None)
        keys = []
        for part in _conjuncts(self.join.part(1)):
            sides = [TableName.at(part, 0), TableName.at(part, 4)] if len(part) == 7 and part.text_at(3) == "=" else []
            mine = [
                s.name
                for s in sides
                if s is not None and len(s.parts) == 2 and folded(s.parts[0]) == folded(self.alias)
            ]
            if len(mine) != 1:
                return None
            keys += mine
        return tuple(keys)

    def _matched(
        self, session: ChangeSession, table: TargetTable, ctes: str, join: str, tables: dict[str, Any]
    ) -> pa.Table:
        """Return the rows of the table that the shadow has."""
        is_whole = any(part.find("by", "source") >= 0 for part in self.actions)
        is_whole = is_whole or any(token.word == "select" for part in self.actions for token in part.tokens)
        alias, source = quoted(self.alias), f"{_SOURCE} AS {quoted(self.source_alias)}"
        target = f"{SOURCE} AS {alias}"
        if not _MATCHES_ONCE and any(self._changes_matched(part) for part in self.actions):
            pairs = f'SELECT {alias}."{ROW_ADDRESS}" FROM {target} JOIN {source} {join}'  # noqa: S608
            if session.arrow(f"{ctes}{pairs}GROUP BY ALL HAVING count(*) > 1 LIMIT 1", tables).num_rows:
                raise InvalidInputError(
                    "MERGE: several rows of the source match one row of the table",
                    where=f"table {table.name}",
                    remedy="let the source have one row for each",
                )
        if is_whole:
            return session.arrow(f"SELECT * FROM {SOURCE}", tables)  # noqa: S608
        columns = ", ".join([*(f"{alias}.{c.quoted}" for c in table.columns), f'{alias}."{ROW_ADDRESS}"'])
        return session.arrow(f"{ctes}SELECT {columns} FROM {target} SEMI JOIN {source} {join}", tables)  # noqa: S608

    def _changes_matched(self, part: Clauses) -> bool:
        then = part.find("then")
        return part.word(1) == "matched" and part.word(then + 1) in ("update", "delete")

    def _spelled(self, table: TargetTable, part: Clauses, text: str, names: Sequence[str]) -> str:
        """Return a WHEN whose INSERT or UPDATE names its columns."""
        then = part.find("then")
        action = part.part(then + 1)
        columns = ", ".join(column.quoted for column in table.columns)
        values = [f"{quoted(self.source_alias)}.{quoted(name)}" for name in names]
        condition = text[: part.tokens[then].end - part.start] if text == part.text else text[: _then(text)]
        if action.word(0) == "insert" and action.word(1) == "values":
            return f"{condition} INSERT ({columns}) {text[len(condition) :].lstrip()[len('insert') :]}"
        if _is_positional(action, "insert"):
            return f"{condition} INSERT ({columns}) VALUES ({', '.join(values)})\n"  # noqa: S608
        if _is_positional(action, "update"):
            if len(values) != len(table.columns):
                raise InvalidInputError(
                    "MERGE: UPDATE by position", expected=f"{len(table.columns)} columns", found=len(values)
                )
            pairs = zip(table.columns, values, strict=True)
            return f"{condition} UPDATE SET {', '.join(f'{column.quoted} = {value}' for column, value in pairs)}\n"
        return text


def _then(text: str) -> int:
    clauses = Clauses.of(text)
    return clauses.tokens[clauses.find("then")].end


def _is_positional(action: Clauses, verb: str) -> bool:
    """Return whether an INSERT or UPDATE of a MERGE takes the columns of the source as they come."""
    words = [token.text.lower() for token in action.tokens]
    forms = ([verb], [verb, "*"], [verb, "by", "position"], [verb, "set", "*"])
    return words in [list(form) for form in forms]


def _alias_of(source: Clauses) -> str | None:
    """Return what a statement calls a source: its alias, or the last part of its name."""
    name = TableName.at(source, 0)
    after = source.closer(0) + 1 if source.text_at(0) == "(" else name.after if name is not None else 1
    if name is not None and source.text_at(after) == "(":
        after = source.closer(after) + 1  # a function
    if after >= len(source):
        return None if name is None else name.name
    place = after + (source.word(after) == "as")
    return source.tokens[place].name if place < len(source) else None


def _conjuncts(condition: Clauses) -> list[Clauses]:
    """Return the parts of a condition between AND, also where parentheses are around it."""
    while condition.text_at(0) == "(" and condition.closer(0) == len(condition) - 1:
        condition = condition.part(1, len(condition) - 1)
    places = [i for i in range(len(condition)) if condition.word(i) == "and" and condition.depths[i] == 0]
    return [
        condition.part(start, stop) for start, stop in zip([0, *(i + 1 for i in places)], [*places, None], strict=True)
    ]
