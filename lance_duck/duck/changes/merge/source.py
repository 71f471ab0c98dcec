"""The source of a MERGE, read once: the statement mentions it several times, and it may be another one each time.

Arrow holds it where Arrow has its types. UUID, HUGEINT, tuples, unions and their kind would become something else
there, for which operators and casts mean something else: a temporary table holds these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import duckdb

from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.user_scope import call_as_user

MERGE_SOURCE: Final = "__lance_merge_source"
"""What the source is called, in Arrow and as a table."""
_OTHER: Final = re.compile(r"\b(UUID|U?HUGEINT|TUPLE|UNION|ENUM|BIT|BIGNUM|VARIANT|GEOMETRY|JSON)\b|TIME WITH|\"NULL\"")
_UNNAMED: Final = re.compile(r"STRUCT\([A-Z]+[,()\[]")
"""A tuple as DuckDB 1 writes it, of which it makes no table."""


@dataclass(frozen=True)
class SourceColumn:
    """A column of a source: its name, and its type in DuckDB's words."""

    name: str
    type: str


@contextmanager
def merge_source(session: ChangeSession, sql: str, tables: dict[str, Any]) -> Iterator[list[SourceColumn]]:
    """Read the source of a MERGE, for one statement.

    Args:
        session: The statement.
        sql: The query of the source.
        tables: What it reads; the source itself is added where it is an Arrow table.

    Yields:
        Its columns.
    """
    session.explain_query(sql, tables)
    relation = session.relation(sql, tables)
    columns = [SourceColumn(*column) for column in zip(relation.columns, map(str, relation.types), strict=True)]
    types = [re.sub(r'"(?:[^"]|"")*"(?= )', "", column.type) for column in columns]
    if not any(map(_OTHER.search, types)) or any(map(_UNNAMED.search, types)):
        tables[MERGE_SOURCE] = call_as_user(relation.to_arrow_table, tables)
        yield columns
        return
    del relation
    try:
        session.affected(f"CREATE OR REPLACE TEMP TABLE {MERGE_SOURCE} AS {sql}", tables)
        yield columns
    finally:
        with suppress(duckdb.Error):  # a transaction that failed takes it along
            session.run(f"DROP TABLE IF EXISTS temp.main.{MERGE_SOURCE}")
