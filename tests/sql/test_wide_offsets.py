"""Rows of DuckDB that Arrow can hold with 64-bit offsets only."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.arrow import limits
from lance_duck.duck.wide_offsets import open_stream, run_with_wide_offsets
from lance_duck.write.relations import with_narrow_offsets

OVERFLOW = (
    "Arrow Appender: the offset of 2160000000 exceeds this. * SET arrow_large_buffer_size=true to use large buffers"
)
QUERY = (
    "SELECT i, 'text ' || i AS s, ['a' || i, NULL] AS l, {'x': 'y' || i} AS st, MAP {'k': ['v' || i]} AS m, "
    "('b' || i)::BLOB AS b, 'e'::ENUM ('e') AS e, [i, 2] AS n FROM range(5) r(i)"
)


def is_wide(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether DuckDB exports wide offsets."""
    return bool(connection.execute("SELECT current_setting('arrow_large_buffer_size')").fetchall()[0][0])


def test_a_statement_whose_offsets_overflow_runs_again_with_wide_ones() -> None:
    connection = duckdb.connect()
    seen = []

    def run(wide: bool) -> str:
        seen.append((wide, is_wide(connection)))
        if not wide:
            raise duckdb.InvalidInputException(OVERFLOW)
        return "done"

    assert run_with_wide_offsets(connection, run) == "done"
    assert seen == [(False, False), (True, True)]
    assert not is_wide(connection)


def test_other_errors_are_not_retried_with_wide_offsets() -> None:
    connection = duckdb.connect()
    seen = []

    def run(wide: bool) -> None:
        seen.append(wide)
        raise duckdb.InvalidInputException(OVERFLOW if len(seen) == 1 else "another error")

    with pytest.raises(duckdb.InvalidInputException, match="another error"):
        run_with_wide_offsets(connection, run)
    with pytest.raises(duckdb.InvalidInputException, match="another error"):
        run_with_wide_offsets(connection, run)
    assert seen == [False, True, False]
    assert not is_wide(connection)


def test_a_locked_configuration_raises_the_first_error() -> None:
    connection = duckdb.connect(config={"lock_configuration": True})

    def run(wide: bool) -> None:
        raise duckdb.InvalidInputException(OVERFLOW)

    with pytest.raises(duckdb.InvalidInputException, match="the offset of 2160000000"):
        run_with_wide_offsets(connection, run)


def test_duckdb_1_streams_always_use_wide_offsets() -> None:
    connection = duckdb.connect()
    with open_stream(connection) as is_widened:
        assert is_widened is is_wide(connection) is duckdb.__version__.startswith("1.")
    assert not is_wide(connection)
    connection.execute("SET arrow_large_buffer_size = true")
    with open_stream(connection) as is_widened:
        assert not is_widened
    assert is_wide(connection)


def test_rows_with_wide_offsets_equal_a_plain_export() -> None:
    connection = duckdb.connect()
    plain = connection.sql(QUERY).to_arrow_table()
    connection.execute("SET arrow_large_buffer_size = true")
    wide = connection.sql(QUERY).to_arrow_table()
    assert wide.schema.field("s").type == pa.large_string()
    found = with_narrow_offsets(wide.to_reader()).read_all()
    assert found.schema == plain.schema
    assert found.to_pylist() == plain.to_pylist()


def test_rows_that_overflow_narrow_offsets_are_split_into_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_BYTES", 100)
    table = pa.table({"s": pa.array(["x" * 40] * 5, pa.large_string())})
    batches = list(with_narrow_offsets(table.to_reader()))
    assert [batch.num_rows for batch in batches] == [2, 1, 2]
    assert [text for batch in batches for text in batch.column("s").to_pylist()] == ["x" * 40] * 5


def test_changes_accept_wide_offsets_and_keep_the_column_types(tmp_path: Path) -> None:
    connection = ld.connect(str(tmp_path))
    path = str(tmp_path / "t.lance")
    connection.execute(f"CREATE TABLE '{path}' AS SELECT * REPLACE (e::VARCHAR AS e) FROM ({QUERY})")
    schema = ld.dataset(path).schema
    connection.execute("SET arrow_large_buffer_size = true")
    connection.execute(f"INSERT INTO '{path}' SELECT * REPLACE (i + 5 AS i) FROM ({QUERY})")
    connection.execute(f"UPDATE '{path}' SET s = s || '!', l = ['new'] WHERE i < 3")
    connection.execute(
        f"MERGE INTO '{path}' AS t USING ({QUERY}) AS q ON t.i = q.i + 9 "
        "WHEN MATCHED THEN UPDATE SET s = q.s, st = q.st WHEN NOT MATCHED THEN INSERT "
        "VALUES (q.i + 9, q.s, q.l, q.st, q.m, q.b, q.e, q.n)"
    )
    connection.execute("SET arrow_large_buffer_size = false")
    assert ld.dataset(path).schema == schema
    rows = connection.execute(f"SELECT i, s, l, st, m, b, e, n FROM '{path}' ORDER BY i").fetchall()
    assert [row[0] for row in rows] == list(range(14))
    assert [row[1] for row in rows] == (
        [f"text {i}!" for i in range(3)]
        + ["text 3", "text 4"]
        + [f"text {i}" for i in range(4)]
        + [f"text {i}" for i in range(5)]
    )
    assert rows[1][2:] == (["new"], {"x": "y1"}, {"k": ["v1"]}, b"b1", "e", [1, 2])
    assert rows[13][2:] == (["a4", None], {"x": "y4"}, {"k": ["v4"]}, b"b4", "e", [4, 2])
