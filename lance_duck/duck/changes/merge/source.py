"""Reads the source of a MERGE once. The generated queries use it several times, and each read could differ.

The rows are held in Arrow if Arrow has all their types. In Arrow, UUID, HUGEINT, tuples, unions and similar types would
become different types, for which operators and casts have a different meaning. A temporary table holds such rows
instead. DuckDB 1 cannot store tuples, and it stores the NULL type as INTEGER. A view over the table restores both.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import duckdb
import pyarrow as pa

from lance_duck.duck.changes.result import holds_tuple
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.duck.tables.statement_versions import with_one_version
from lance_duck.duck.user_scope import call_as_user
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE

MERGE_SOURCE: Final = "__lance_merge_source"
"""Name of the source, as an Arrow or a DuckDB table."""
_OTHER: Final = re.compile(r"\b(UUID|U?HUGEINT|TUPLE|UNION|ENUM|BIT|BIGNUM|VARIANT|GEOMETRY|JSON)\b|TIME WITH|\"NULL\"")
_NULL: Final = '"NULL"'
_STORED: Final = "__lance_merge_stored"


@dataclass(frozen=True)
class SourceColumn:
    """Name and DuckDB type of a source column."""

    name: str
    type: str


@dataclass(frozen=True)
class MergeSourceRows:
    """The source of a MERGE, read into memory.

    Attributes:
        columns: Its columns.
        rows: Its rows, unless a DuckDB table stores them.
        values: Computed values of all rows, by SQL expression.
    """

    columns: Sequence[SourceColumn]
    rows: pa.Table | None = None
    values: Mapping[str, pa.ChunkedArray] = field(default_factory=dict)


@contextmanager
def merge_source(
    session: ChangeSession, ctes: str, source: str, tables: dict[str, Any], values: Sequence[str] = ()
) -> Iterator[MergeSourceRows]:
    """Read the source of a MERGE, for one statement.

    Args:
        session: The statement.
        ctes: The WITH clause. Empty without one.
        source: The text after USING.
        tables: Tables that it reads. The source is added if it is an Arrow table.
        values: SQL expressions to compute while the source is read, if they succeed for all rows.
    """
    sql = f"{ctes}SELECT * FROM {source}"  # noqa: S608
    session.explain_query(sql, tables)
    computed = _computed(session, f"{ctes}SELECT *, {', '.join(values)} FROM {source}", tables, values)  # noqa: S608
    if computed is not None:
        tables[MERGE_SOURCE] = computed.rows
        yield computed
        return
    relation = session.relation(sql, tables)
    nulls = _null_columns(session, relation, sql, tables)
    tuples = {} if SPEAKS_SOURCE else _tuples(relation)
    nulls = {name: type_ for name, type_ in nulls.items() if name not in tuples}
    types = [nulls.get(name, str(type_)) for name, type_ in zip(relation.columns, relation.types, strict=True)]
    columns = [SourceColumn(*column) for column in zip(relation.columns, types, strict=True)]
    kinds = [_without_names(column.type) for column in columns if column.type != _NULL]
    inner = [type_ for elements in tuples.values() for type_ in elements]
    inner += [column.type for column in columns if column.name not in tuples]
    if not any(map(_OTHER.search, kinds)) or any(map(holds_tuple, inner)):
        rows = with_one_version(partial(call_as_user, relation.to_arrow_table, tables))
        tables[MERGE_SOURCE] = _with_nulls(rows, nulls)
        yield MergeSourceRows(columns, tables[MERGE_SOURCE])
        return
    del relation
    with _stored(session, sql, tables, nulls, tuples):
        yield MergeSourceRows(columns)


def _computed(
    session: ChangeSession, sql: str, tables: Mapping[str, Any], values: Sequence[str]
) -> MergeSourceRows | None:
    """Read a source and computed values of its rows with one query.

    Returns None if Arrow does not have a type, or if the query fails. It can fail on values that MERGE itself does not
    use.
    """
    if not values or not SPEAKS_SOURCE:
        return None
    try:
        relation = session.relation(sql, tables)
        count = len(relation.columns) - len(values)
        named = zip(relation.columns[:count], relation.types, strict=False)
        columns = [SourceColumn(name, str(type_)) for name, type_ in named]
        if any(_OTHER.search(_without_names(column.type)) for column in columns):
            return None
        rows = with_one_version(partial(call_as_user, relation.to_arrow_table, tables))
    except duckdb.InterruptException:
        raise
    except duckdb.Error:
        return None
    computed = dict(zip(values, rows.columns[count:], strict=True))
    return MergeSourceRows(columns, rows.select(range(count)), computed)


def _without_names(type_: str) -> str:
    """Return a type without its field names."""
    return re.sub(r'"(?:[^"]|"")*"(?= )', "", type_)


def _tuples(relation: Any) -> dict[str, list[str]]:
    """Return the element types of tuple columns in DuckDB 1, by column name."""
    found = zip(relation.columns, relation.types, strict=True)
    structs = {name: type_.children for name, type_ in found if type_.id == "struct"}
    return {name: [str(type_) for _, type_ in children] for name, children in structs.items() if not children[0][0]}


@contextmanager
def _stored(
    session: ChangeSession,
    sql: str,
    tables: dict[str, Any],
    nulls: Mapping[str, str],
    tuples: Mapping[str, Sequence[str]],
) -> Iterator[None]:
    """Store rows in a temporary table of DuckDB, for one statement.

    Args:
        session: The statement.
        sql: The query of the rows.
        tables: Tables that it reads.
        nulls: Types that contain the NULL type, by column name. A table cannot store these types.
        tuples: Element types of tuples, by column name. A table cannot store tuples either.
    """
    named = [
        f"CAST({quoted(name)} AS STRUCT({', '.join(f'v{i} {kind}' for i, kind in enumerate(kinds))})) AS {quoted(name)}"
        for name, kinds in tuples.items()
    ]
    back = [f"CAST({quoted(name)} AS {type_}) AS {quoted(name)}" for name, type_ in nulls.items()]
    for name, kinds in tuples.items():
        elements = ", ".join(f"{quoted(name)}.v{i}" for i in range(len(kinds)))
        back.append(f"CASE WHEN {quoted(name)} IS NOT NULL THEN row({elements}) END AS {quoted(name)}")
    table = _STORED if back else MERGE_SOURCE
    replaced = f" REPLACE ({', '.join(named)})" if named else ""
    rows = f"SELECT *{replaced} FROM (\n{sql})" if named else sql  # noqa: S608
    try:
        session.affected(f"CREATE OR REPLACE TEMP TABLE {table} AS {rows}", tables)
        if back:
            view = f"SELECT * REPLACE ({', '.join(back)}) FROM temp.main.{table}"  # noqa: S608
            session.run(f"CREATE OR REPLACE TEMP VIEW {MERGE_SOURCE} AS {view}")
        yield
    finally:
        for kind, name in (("VIEW", MERGE_SOURCE), ("TABLE", _STORED)) if back else (("TABLE", MERGE_SOURCE),):
            with suppress(duckdb.Error):  # a failed transaction has removed it already
                session.run(f"DROP {kind} IF EXISTS temp.main.{name}")


def _null_columns(session: ChangeSession, relation: Any, sql: str, tables: Mapping[str, Any]) -> dict[str, str]:
    """Return types that contain the NULL type, by column name. DuckDB 1 reports the NULL type as INTEGER.

    Args:
        session: The statement.
        relation: The query as a relation.
        sql: The query.
        tables: Tables that it reads.
    """
    if SPEAKS_SOURCE or not any("INTEGER" in str(type_) for type_ in relation.types):
        return {}
    asked = f"SELECT typeof(any_value(COLUMNS(*))) FROM (SELECT * FROM (\n{sql}) LIMIT 0)"  # noqa: S608
    types = call_as_user(session.relation(asked, tables).fetchall, tables)[0]
    return {name: type_ for name, type_ in zip(relation.columns, types, strict=True) if _NULL in type_}


def _with_nulls(rows: pa.Table, nulls: Collection[str]) -> pa.Table:
    """Return the rows with some columns cast to the NULL type."""
    for name in nulls:
        rows = rows.set_column(rows.schema.get_field_index(name), name, pa.nulls(rows.num_rows))
    return rows
