"""VALUES rows that are evaluated without DuckDB."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_duck.duck.changes.rows.constants import ListedConstants, constant_rows
from lance_duck.duck.changes.rows.insert import listed_rows
from lance_duck.duck.changes.target import TargetColumn
from lance_duck.duck.statement.clauses import Clauses

TYPES = {
    "TINYINT": pa.int8(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "VARCHAR": pa.string(),
    "JSON": pa.string(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
}


def made(values: str, *types: str, nullable: bool = True) -> pa.Table | None:
    rows = listed_rows(Clauses.of(f"VALUES {values}"))
    assert rows is not None
    columns = [TargetColumn(f"c{i}", name, TYPES[name], nullable) for i, name in enumerate(types)]
    return constant_rows(columns, [[item.text.rstrip() for item in row] for row in rows])


def test_constants_are_values_of_their_columns() -> None:
    table = made(
        "(-1, 0.5, 'it''s', true, NULL), (2, 7, '', FALSE, default)",
        *["BIGINT", "DOUBLE"],
        "VARCHAR",
        "BOOLEAN",
        "TINYINT",
    )
    assert table is not None
    assert table.to_pylist() == [
        {"c0": -1, "c1": 0.5, "c2": "it's", "c3": True, "c4": None},
        {"c0": 2, "c1": 7.0, "c2": "", "c3": False, "c4": None},
    ]
    assert table.schema.types == [pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.int8()]


def test_a_decimal_negative_zero_becomes_zero() -> None:
    table = made("(-0.0)", "DOUBLE")
    assert table is not None
    assert str(table.column(0)[0].as_py()) == "0.0"


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ("(128)", "TINYINT"),
        ("(9223372036854775807)", "BIGINT"),
        ("(1.0)", "BIGINT"),
        ("('1')", "BIGINT"),
        ("(1 + 1)", "BIGINT"),
        ("(1 -- one\n)", "BIGINT"),
        ("(- 1)", "BIGINT"),
        ("(1e5)", "DOUBLE"),
        ("(0.12345678901234567)", "DOUBLE"),
        ("(9007199254740993)", "DOUBLE"),
        ("(0.5)", "FLOAT"),
        ("(1)", "VARCHAR"),
        ("(E'a')", "VARCHAR"),
        ("('a' || 'b')", "VARCHAR"),
        ("('{}')", "JSON"),
        ("(1)", "BOOLEAN"),
        ("('2024-01-01')", "DATE"),
        ("(?)", "BIGINT"),
    ],
)
def test_other_values_are_evaluated_by_duckdb(values: str, type_: str) -> None:
    assert made(values, type_) is None


def test_nulls_in_a_not_null_column_are_evaluated_by_duckdb() -> None:
    assert made("(NULL)", "BIGINT", nullable=False) is None


@pytest.mark.parametrize(
    ("sql", "shape", "rows"),
    [
        (
            "INSERT INTO t VALUES (1, 'a'), (-2.5, NULL);",
            "INSERT INTO t VALUES (NULL)",
            [["1", "'a'"], ["-2.5", "NULL"]],
        ),
        (
            ' insert into "a b".t ( x , "y)" ) values( true )',
            ' insert into "a b".t ( x , "y)" ) VALUES (NULL)',
            [["true"]],
        ),
        ("INSERT INTO t VALUES ('(1), -- it''s', 2)", "INSERT INTO t VALUES (NULL)", [["'(1), -- it''s'", "2"]]),
    ],
)
def test_an_insert_of_constants_is_read_without_its_tokens(sql: str, shape: str, rows: list[list[str]]) -> None:
    listed = ListedConstants.of(sql)
    assert listed is not None
    assert (listed.shape, listed.rows) == (shape, rows)


@pytest.mark.parametrize(
    "source",
    [
        "VALUES (1), (2, 3)",
        "VALUES (1) -- one",
        "VALUES (1), /* two */ (2)",
        "VALUES (1 + 1)",
        "VALUES (1_000)",
        "VALUES (1e5)",
        "VALUES ('a' 'b')",
        "VALUES (E'a')",
        "VALUES ($1)",
        "VALUES (DEFAULT)",
        "VALUES ('\ud800')",
        "VALUES (1) RETURNING *",
        "VALUES (1); SELECT 1",
        "VALUES (1), (2) LIMIT 1",
        "SELECT 1",
    ],
)
def test_other_inserts_need_their_tokens(source: str) -> None:
    assert ListedConstants.of(f"INSERT INTO t {source}") is None
