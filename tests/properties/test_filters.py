"""Filters in every form have the same meaning as in DuckDB on plain Arrow data."""

from __future__ import annotations

import duckdb
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from properties.conditions import COLUMNS, TYPES, conditions, rows
from properties.sample import Sample

from lance_duck.scan.predicate.tree import Predicate


def ask(table: pa.Table, condition: str) -> list[int]:
    """Return `n` of the rows where DuckDB finds the condition true."""
    con = duckdb.connect()
    con.register("arrow", table)
    # A native table is used because DuckDB 1.5 leaves filters on Arrow data to pyarrow, which orders NaN differently.
    con.execute("CREATE TABLE rows_ AS FROM arrow")
    return [n for (n,) in con.execute(f"SELECT n FROM rows_ WHERE {condition} ORDER BY n").fetchall()]


@given(condition=conditions())
def test_string_and_expression_filters_agree_with_duckdb(table: Sample, condition: tuple[str, Predicate]) -> None:
    text, tree = condition
    expected = ask(table.rows, text)
    assert table.dataset.to_table(["n"], filter=text)["n"].to_pylist() == expected
    assert table.dataset.to_table(["n"], filter=tree)["n"].to_pylist() == expected
    assert table.dataset.count_rows(filter=text) == len(expected)


@given(condition=conditions())
def test_pushed_down_filters_equal_those_of_duckdb(table: Sample, condition: tuple[str, Predicate]) -> None:
    con = duckdb.connect()
    con.register("ours", table.dataset)
    found = con.execute(f"SELECT n FROM ours WHERE {condition[0]} ORDER BY n").fetchall()
    assert [n for (n,) in found] == ask(table.rows, condition[0])


@given(condition=conditions())
def test_true_false_and_null_rows_add_up_to_all_rows(table: Sample, condition: tuple[str, Predicate]) -> None:
    text, _ = condition
    parts = [table.dataset.count_rows(f) for f in (f"({text})", f"NOT ({text})", f"({text}) IS NULL")]
    assert sum(parts) == table.rows.num_rows


@given(condition=conditions(), data=st.data())
def test_bound_parameters_are_literals(table: Sample, condition: tuple[str, Predicate], data: st.DataObject) -> None:
    column = data.draw(st.sampled_from(["i", "s", "f", "d", "t", "m", "b"]))
    value = data.draw(rows(column))
    shown = table.rows[column].type
    scalar = pa.scalar(value, shown).as_py()
    text = f"{column} = ? OR ({condition[0]})"
    con = duckdb.connect()
    con.register("rows_", table.rows)
    expected = con.execute(f"SELECT n FROM rows_ WHERE {text} ORDER BY n", [scalar]).fetchall()
    found = table.dataset.to_table(["n"], filter=(text, [scalar]))["n"].to_pylist()
    assert found == [n for (n,) in expected]


def test_the_generated_sample_contains_every_type(table: Sample) -> None:
    assert {c: table.rows[c].type for c in COLUMNS} == TYPES
