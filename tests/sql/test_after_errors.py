"""The connection runs the next statement after every error, and an error keeps its message."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from sql.random_errors import failed

import lance_duck as ld
from lance_duck.errors import InvalidInputError, LanceDuckError, UnsupportedError

SEEDS = [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 30))]
REFUSED = [
    ("SELECT 1 AS _rowid", "", InvalidInputError, "column '_rowid' has a reserved name"),
    ('SELECT 1 AS "a.b"', "", InvalidInputError, "'a.b': a column name cannot contain a dot"),
    ("SELECT [['a']]::VARCHAR[1][1] AS x", "", UnsupportedError, "column 'x': Lance cannot store fixed_size_list"),
    ("SELECT MAP {1: 2} AS m", "data_storage_version 2.1", UnsupportedError, "cannot store type map<int32, int32>"),
    ("SELECT 1 AS x", "max_rows_per_file 0", InvalidInputError, "max_rows_per_file: expected a number from 1"),
    ("SELECT INTERVAL 1 DAY AS x", "", UnsupportedError, "column 'x': Lance cannot store DuckDB type INTERVAL"),
]
REPEATED = [
    ("SELECT 1 AS id, 2 AS id, 3 AS id", ["id", "id_1", "id_2"]),
    ("SELECT 1 AS id, 2 AS id_1, 3 AS id", ["id", "id_1", "id_2"]),
    ("SELECT 1 AS id, 2 AS id, 3 AS id_1", ["id", "id_1", "id_1_1"]),
    ('SELECT 1 AS id, 2 AS "ID", 3 AS x', ["id", "ID_1", "x"]),
    ("SELECT a.k, b.k, 3 AS j FROM (VALUES (1)) a(k), (VALUES (2)) b(k) -- a comment", ["k", "k_1", "j"]),
]


@pytest.mark.parametrize("seed", SEEDS)
def test_after_any_error_the_next_statement_runs(tmp_path: Path, seed: int) -> None:
    counts = failed(tmp_path, seed, statements=30)
    print(f"seed {seed}: {dict(counts)}")
    assert sum(counts.values()) > 15


@pytest.mark.parametrize("template", ["CREATE TABLE lance.w {with}AS {query}", "COPY ({query}) TO '{place}' {options}"])
@pytest.mark.parametrize(("query", "option", "kind", "words"), REFUSED)
def test_a_rejected_table_keeps_its_message_and_the_connection_usable(
    con: ld.Connection, folder: Path, template: str, query: str, option: str, kind: type[LanceDuckError], words: str
) -> None:
    name, _, value = option.partition(" ")
    parts = {
        "query": query,
        "place": folder / "w.lance",
        "with": f"WITH ({name} = {value}) " if option else "",
        "options": f"({option})" if option else "",
    }
    with pytest.raises(kind) as refused:
        con.execute(template.format_map(parts))
    assert words in str(refused.value)
    assert con.execute("SELECT 5").fetchall() == [(5,)]
    assert not (folder / "w.lance").exists()


@pytest.mark.parametrize(("query", "names"), REPEATED)
def test_duplicate_column_names_are_numbered_as_in_duckdb(
    con: ld.Connection, folder: Path, query: str, names: list[str]
) -> None:
    con.execute(f"CREATE TABLE lance.made AS {query}")
    con.execute(f"COPY ({query}\n) TO '{folder}/copied.lance'")
    con.execute(f"CREATE TEMP TABLE native AS {query}")
    for table in ("lance.made", "lance.copied", "native"):
        rows = con.sql(f"FROM {table}")
        assert (rows.columns, rows.fetchall()) == (names, [(1, 2, 3)])


@pytest.mark.parametrize(
    "write",
    [
        lambda relation, folder: ld.write_dataset(relation, folder / "w.lance"),
        lambda relation, folder: ld.write_dataset(lambda: [relation], folder / "w.lance"),
        lambda relation, folder: ld.dataset(folder / "dim.lance").insert(relation),
        lambda relation, folder: ld.dataset(folder / "dim.lance").merge(relation, "city"),
        lambda relation, folder: ld.dataset(folder / "dim.lance").add_columns(relation),
        lambda relation, folder: (
            ld.dataset(folder / "dim.lance").merge_insert("city").when_not_matched_insert_all().execute(relation)
        ),
    ],
)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT 'a' AS city, 'b' AS city",
        "SELECT CASE WHEN i = 90000 THEN error('late') ELSE 'a' END AS city FROM range(100000) r(i)",
        "SELECT CASE WHEN i = 90000 THEN 'x' ELSE '1' END::INT AS city FROM range(100000) r(i)",
    ],
)
def test_a_relation_that_fails_to_write_leaves_its_connection_usable(
    con: ld.Connection, folder: Path, write: Callable[[Any, Path], object], query: str
) -> None:
    with pytest.raises((LanceDuckError, duckdb.Error)):
        write(con.sql(query), folder)
    assert con.execute("SELECT 5").fetchall() == [(5,)]
    assert ld.dataset(folder / "dim.lance").count_rows() == 3


def test_rows_that_fail_late_are_an_error_of_the_relation(con: ld.Connection, folder: Path) -> None:
    relation = con.sql("SELECT CASE WHEN i = 90000 THEN error('late') ELSE i END AS i FROM range(100000) r(i)")
    with pytest.raises((InvalidInputError, duckdb.InvalidInputException), match="Invalid Input Error: late") as ended:
        ld.write_dataset(relation, folder / "w.lance")
    if isinstance(ended.value, InvalidInputError):  # DuckDB 1 finds the error before there are rows
        assert str(ended.value).startswith("data: the rows of the DuckDB relation cannot be read: found ")
    assert not (folder / "w.lance").exists()
