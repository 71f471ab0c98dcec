"""The types of placeholders that prepared statements announce to Flight clients."""

from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.flight_sql import connected, rows

import lance_duck as ld

LONG, TEXT, DAY = pa.int64(), pa.string(), pa.date32()
MONEY, VECTOR = pa.decimal128(10, 2), pa.list_(pa.float32(), 2)


@pytest.fixture
def cursor(start: Callable[..., Any], tmp_path: Path) -> Iterator[Any]:
    """A cursor of a server with the table `t` of one row and the table `u`."""
    with ld.connect(tmp_path) as connection:
        connection.execute("CREATE TABLE t (id BIGINT, v VARCHAR, d DATE, e DECIMAL(10, 2), x FLOAT[2])")
        connection.execute("INSERT INTO t VALUES (1, 'a', '2026-01-02', 1.5, [1, 2])")
        connection.execute("CREATE TABLE u AS SELECT 1 AS id, 's' AS d")
        connection.execute("CREATE SCHEMA other; CREATE TABLE other.t AS SELECT 's' AS id")
    with connected(start(tmp_path, write=True, flight=0)) as cursor:
        yield cursor


@pytest.mark.parametrize(
    ("query", "types"),
    [
        ("SELECT * FROM t WHERE id = ?", [LONG]),
        ("FROM t WHERE ? < D", [DAY]),
        ("SELECT * FROM t AS a WHERE a.d >= $since AND a.id IN ($one, 2, $two)", [DAY, LONG, LONG]),
        ("SELECT count(*) FROM other.t WHERE id = ?", [TEXT]),
        ("SELECT * FROM t LIMIT ? OFFSET ?", [LONG, LONG]),
        ("INSERT INTO t VALUES (?, ?, ?, ?, ?)", [LONG, TEXT, DAY, MONEY, VECTOR]),
        ("INSERT INTO t (d, id) VALUES (?, ?), ('2026-01-01', ?)", [DAY, LONG, LONG]),
        ("UPDATE t SET d = ? WHERE e = ?", [DAY, MONEY]),
        ("DELETE FROM t WHERE id BETWEEN ? AND ?", [LONG, LONG]),
        ("SELECT id + ?, len(?) FROM t", [TEXT, TEXT]),
        ("SELECT * FROM t, u WHERE t.id = ?", [TEXT]),
        ("SELECT * FROM t WHERE d = (SELECT max(d) FROM u WHERE d = ?)", [TEXT]),
        ("SELECT * FROM (SELECT v AS id FROM t) WHERE id = ?", [TEXT]),
        ("WITH t AS (SELECT 'x' AS id) SELECT * FROM t WHERE id = ?", [TEXT]),
        ("SELECT v AS id FROM t GROUP BY 1 HAVING id = ?", [TEXT]),
        ("SELECT * FROM t WHERE id::VARCHAR = ?", [TEXT]),
        ("SELECT * FROM range(?)", [TEXT]),
        ("INSERT INTO t SELECT ?, v, d, e, x FROM t", [TEXT]),
    ],
)
def test_placeholders_have_the_types_of_their_columns(cursor: Any, query: str, types: list[pa.DataType]) -> None:
    assert cursor.adbc_prepare(query).types == types


def test_values_of_other_types_are_accepted(cursor: Any) -> None:
    assert rows(cursor, "SELECT v FROM t WHERE id = ?", ("1",)) == [("a",)]
    assert rows(cursor, "SELECT v FROM t WHERE id = ? AND d = ?", (1.0, "2026-01-02")) == [("a",)]
    assert rows(cursor, "SELECT v FROM t LIMIT ?", ("1",)) == [("a",)]
    cursor.execute("INSERT INTO t (id, d, e) VALUES (?, ?, ?)", ("2", "2026-01-03", 2))
    assert rows(cursor, "SELECT d, e FROM t WHERE id = 2") == [(date(2026, 1, 3), Decimal(2))]


def test_a_table_that_does_not_exist_yet_has_strings(cursor: Any) -> None:
    assert cursor.adbc_prepare("INSERT INTO nope VALUES (?)").types == [TEXT]


def test_a_vector_is_a_value_of_a_search(cursor: Any) -> None:
    query = "SELECT v FROM lance_vector_search('t', 'x', ?, k => 1)"
    assert rows(cursor, query, ([1.0, 2.0],)) == [("a",)]
