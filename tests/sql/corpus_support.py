"""Tables for the corpus of statements, in Lance and in DuckDB."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

import lance_duck as ld
from lance_duck.errors import LanceDuckError

CORPUS = Path(__file__).parent / "corpus"
REFUSED = (duckdb.Error, LanceDuckError)
_KEY = {b"lance-schema:unenforced-primary-key": b"true"}
_WORDS = [
    "conflict",
    "returning",
    "values",
    "set",
    "where",
    "from",
    "end",
    "case",
    "matched",
    "using",
    "replace",
    "ignore",
    "name",
    "position",
    "default",
    "when",
    "by",
]
_NATIVE = "CREATE TABLE n (i INTEGER); INSERT INTO n VALUES (1), (3); CREATE SEQUENCE seq START 11"


@dataclass(frozen=True)
class SampleTable:
    """A table of the corpus.

    Attributes:
        types: Its columns, in DuckDB's words.
        rows: Its rows, as VALUES has them.
        changed: Types that Lance has for columns, where DuckDB's own would give another.
        key: Whether `id` is its primary key.
    """

    types: str
    rows: str
    changed: tuple[tuple[str, pa.DataType], ...] = ()
    key: bool = False

    def create(self, native: duckdb.DuckDBPyConnection, name: str) -> None:
        types = self.types.replace("NOT NULL", "PRIMARY KEY") if self.key else self.types
        native.execute(f"CREATE TABLE {name} ({types}); INSERT INTO {name} VALUES {self.rows}")

    def write(self, folder: Path, name: str) -> None:
        with duckdb.connect() as native:
            self.create(native, name)
            durations = ", ".join(f"epoch_us({column}) AS {column}" for column, _ in self.changed)
            rows = native.sql(f"SELECT * {f'REPLACE ({durations})' if durations else ''} FROM {name}").to_arrow_table()
        fields = []
        for field in rows.schema:
            type_ = dict(self.changed).get(field.name, field.type)
            is_id = field.name == "id" and "NOT NULL" in self.types
            fields.append(pa.field(field.name, type_, not is_id, _KEY if is_id and self.key else None))
        ld.write_dataset(rows.cast(pa.schema(fields)), folder / f"{name}.lance")


TABLES = {
    "t": SampleTable(
        "id INTEGER NOT NULL, a INTEGER, s VARCHAR, d DOUBLE, l INTEGER[], st STRUCT(x INTEGER, y VARCHAR), "
        "ts TIMESTAMP",
        "(1, 10, 'one', 0.5, [1, 2], {'x': 1, 'y': 'p'}, '2020-01-01'),"
        "(2, 20, 'two', 1.5, [], {'x': 2, 'y': NULL}, NULL),"
        "(3, NULL, 'three', NULL, NULL, NULL, '2021-01-01'), (4, 5, NULL, 4.5, [NULL, 7], {'x': NULL, 'y': 'q'}, NULL)",
    ),
    "u": SampleTable("id INTEGER, b INTEGER, s VARCHAR", "(1, 100, 'x'), (1, 101, 'y'), (2, 200, 'z'), (9, 300, 'w')"),
    "v": SampleTable("id INTEGER, a INTEGER, s VARCHAR", "(1, 11, 'v1'), (2, 22, 'v2'), (9, 33, 'v9')"),
    "k": SampleTable(
        ", ".join(f'"{word}" INTEGER' for word in ["id", *_WORDS]),
        ", ".join(f"({', '.join([str(number)] * (len(_WORDS) + 1))})" for number in (1, 2)),
    ),
    "y": SampleTable(
        "id INTEGER, iv INTERVAL, v INTEGER, tz TIMESTAMPTZ, dec DECIMAL(10, 2), bl BLOB, b BOOLEAN, tm TIME, dt DATE,"
        "arr FLOAT[3], u8 UTINYINT, ls STRUCT(p INTEGER, q VARCHAR[])[]",
        "(1, INTERVAL 24 HOUR, 1, '2020-01-01 00:00:00+00', 1.5, 'a', true, '10:00:00', '2020-01-01', [1, 2, 3], 7,"
        "[{'p': 1, 'q': ['a']}]), (2, INTERVAL 90 SECOND, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),"
        "(3, NULL, 3, NULL, 2.25, '\\x00b', false, NULL, NULL, [4, 5, 6], 255, [])",
        changed=(("iv", pa.duration("us")),),
    ),
    "p": SampleTable(
        "id INTEGER NOT NULL, a INTEGER, s VARCHAR", "(1, 10, 'one'), (2, 20, 'two'), (3, NULL, 'three')", key=True
    ),
    "py": SampleTable(
        "id INTEGER NOT NULL, iv INTERVAL, v INTEGER",
        "(1, INTERVAL 1 HOUR, 1), (2, NULL, 2)",
        changed=(("iv", pa.duration("us")),),
        key=True,
    ),
}


def statements(name: str) -> list[str]:
    """Return the statements of a file of the corpus."""
    lines = (CORPUS / f"{name}.sql").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("--")]


def fresh_tables(templates: Path, folder: Path, sql: str) -> Iterator[str]:
    """Copy the tables that a statement names into a folder, and yield their names."""
    for name in TABLES:
        if re.search(rf"\b{name}\b", sql):
            shutil.copytree(templates / f"{name}.lance", folder / f"{name}.lance")
            yield name


@contextmanager
def empty_database() -> Iterator[duckdb.DuckDBPyConnection]:
    """An empty database in memory; all are attached to one DuckDB, which takes 15 ms to start."""
    with _duckdb().cursor() as connection:
        connection.execute("ATTACH ':memory:' AS native; USE native")
        yield connection
    _duckdb().execute("DETACH native")


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def differences(templates: Path, folder: Path, sql: str) -> list[str]:
    """Run a statement on Lance tables and on native tables, and return the differences."""
    names = list(fresh_tables(templates, folder, sql))
    with ld.connect(folder) as ours, empty_database() as native:
        for connection in (ours.native, native):
            connection.execute(_NATIVE)
        for name in names:
            TABLES[name].create(native, name)
        places = sql.replace("main.t", "lance.main.t").replace("main.v", "lance.main.v")
        pairs = [("answer", _answer(ours, places), _answer(native, sql))]
        pairs += [(f"rows of {name}", _rows(ours, name), _rows(native, name)) for name in [*names, "n"]]
    return [f"{sql}\n  {what}\n    {mine}\n    {theirs}" for what, mine, theirs in pairs if mine != theirs]


def _answer(connection: Any, sql: str) -> Any:
    """Return titles, types and sorted rows.

    Returns None if the statement is rejected.
    """
    count = max(sql.count("?"), len(set(re.findall(r"\$\d", sql))))
    try:
        given = connection.execute(sql, [5] * count) if count else connection.execute(sql)
        rows = sorted(map(repr, given.fetchall()))
        # Duplicate titles are numbered: see `con.sql` of DuckDB.
        titles = [re.sub(r"^(id)_1$", r"\1", column[0]) for column in given.description]
        return titles, [str(column[1]) for column in given.description], rows
    except REFUSED:
        return None


def _rows(connection: Any, name: str) -> list[str]:
    """Return the rows of a table as strings, which do not depend on Python's time zone."""
    return sorted(map(repr, connection.execute(f"SELECT COLUMNS(*)::VARCHAR FROM {name}").fetchall()))
