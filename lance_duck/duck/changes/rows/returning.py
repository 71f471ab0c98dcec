"""RETURNING: any list of expressions over the rows that a statement has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from lance_duck.duck.changes.result import ChangeResult, counted, returned
from lance_duck.duck.changes.rows.mentions import is_hidden, refuse_identifiers, without_address
from lance_duck.duck.changes.rows.twin import fill, twin
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.target import TargetTable
from lance_duck.duck.statement.clauses import Clauses
from lance_duck.duck.statement.identifiers import folded, quoted

_ROWS: Final = "__lance_changed"


def result_of(
    session: ChangeSession, clause: Clauses, table: TargetTable, alias: str, rows: pa.Table | None, count: int
) -> ChangeResult:
    """Return what a statement gives: the rows that its RETURNING asks for, or their count.

    Args:
        session: The statement.
        clause: RETURNING, or nothing.
        table: The table that is changed.
        alias: What the list calls it.
        rows: The rows with all columns of the table; None without a list.
        count: How many there are.
    """
    if not clause.tokens or rows is None:
        return counted(count)
    refuse_identifiers(table, (clause,))
    rows, text = table.stored(rows), clause.part(1).text
    if _is_plain(clause, alias):
        casts = ", ".join(f"CAST({column.quoted} AS {column.type}) AS {column.quoted}" for column in table.columns)
        source = f"(SELECT {casts} FROM {_ROWS}) AS {quoted(alias)}"  # noqa: S608
        answer, titles, types = session.answer(f"SELECT {text} FROM {source}", {_ROWS: rows})  # noqa: S608
        return returned(answer, types, count, numbered(titles))
    with twin(session, table) as own:
        fill(session, table, own, rows)
        same = table.columns[0].quoted  # DELETE of DuckDB 1 leaves out rows that the same transaction has written
        sql = f"UPDATE {own} AS {quoted(alias)} SET {same} = {same} RETURNING {text}"  # noqa: S608
        answer, titles, types = session.answer(sql, {})
        return returned(answer, types, count, titles)


def returned_by(
    session: ChangeSession,
    changes: Sequence[str],
    clause: Clauses,
    table: TargetTable,
    alias: str,
    tables: Mapping[str, Any],
) -> ChangeResult:
    """Change a shadow, and return what RETURNING asks for, without its column of addresses.

    Args:
        session: The statement.
        changes: The change, or those that it is made of.
        clause: RETURNING.
        table: The table that the shadow stands for.
        alias: What the statement calls it.
        tables: What the change reads.
    """
    refuse_identifiers(table, (clause,))
    items = without_address(table, alias, clause.part(1).text, stars=False)
    answers = [session.answer(f"{sql}RETURNING {items}", tables) for sql in changes]
    rows, (_, titles, types) = pa.concat_tables([rows for rows, *_ in answers]), answers[0]
    seen = [i for i, title in enumerate(titles) if not is_hidden(title)]
    return returned(rows.select(seen), [types[i] for i in seen], rows.num_rows, [titles[i] for i in seen])


def numbered(titles: Sequence[str]) -> list[str]:
    """Return titles as DuckDB has them for statements that are no SELECT: one that comes again gets a number."""
    counts: dict[str, int] = {}
    result = []
    for title in titles:
        unique, name = title, folded(title)
        while folded(unique) in counts:
            unique = f"{title}_{counts[name]}"
            counts[name] += 1
        counts[folded(unique)] = 1
        result.append(unique)
    return result


def _is_plain(clause: Clauses, alias: str) -> bool:
    """Return whether a list has columns, stars and operators alone, which mean the same in a SELECT."""
    for place, token in enumerate(clause.tokens[1:], 1):
        is_row = token.name is not None and folded(token.name) == folded(alias) and clause.text_at(place + 1) != "."
        if is_row or token.text == "(" or token.word in _NOT_PLAIN:
            return False
    return True


_NOT_PLAIN: Final = frozenset({"distinct", "order", "limit", "from", "where", "group"})
