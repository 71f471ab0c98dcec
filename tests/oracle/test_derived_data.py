"""Computed columns and materialized views that LanceDB makes: changes that its refresh undoes, or that break them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lancedb
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lance_duck as ld
from lance_duck.errors import InvalidInputError
from lance_duck_command import app

ROWS = pa.table({"id": [1, 2, 3], "x": [10, 20, 30], "n": ["a", "b", "c"]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table t whose column y is computed of x, and a view v of it."""
    database = lancedb.connect(str(tmp_path), storage_options={"new_table_enable_stable_row_ids": "true"})
    table = database.create_table("t", ROWS)
    table.add_columns(computed={"y": "x * 2"})
    table.refresh_column("y")
    database.create_materialized_view("v", "t", select=["id", ("z", "x + 1")], where="x > 15")
    return tmp_path


def sql(path: str, text: str) -> None:
    with ld.connect({"t": path}) as connection:
        for statement in text.split("; "):
            connection.execute(statement)


BREAKING: dict[str, Callable[[str], object]] = {
    "rename": lambda path: ld.dataset(path).alter_columns({"path": "x", "name": "q"}),
    "drop": lambda path: ld.dataset(path).drop_columns(["x"]),
    "cast": lambda path: ld.dataset(path).alter_columns({"path": "x", "data_type": pa.int32()}),
    "cast of the column": lambda path: ld.dataset(path).alter_columns({"path": "y", "data_type": pa.int32()}),
    "RENAME": lambda path: sql(path, "ALTER TABLE t RENAME COLUMN x TO q"),
    "DROP": lambda path: sql(path, "ALTER TABLE t DROP COLUMN x"),
    "TYPE": lambda path: sql(path, "ALTER TABLE t ALTER COLUMN x TYPE INTEGER"),
}


@pytest.mark.parametrize("name", BREAKING)
def test_changes_that_break_a_computed_column_are_rejected(name: str, folder: Path) -> None:
    path = str(folder / "t.lance")
    before = sorted(Path(path).rglob("*"))
    with pytest.raises(InvalidInputError, match=r"column '\w' is .*drop column 'y' first"):
        BREAKING[name](path)
    assert sorted(Path(path).rglob("*")) == before
    assert lancedb.connect(str(folder)).open_table("t").refresh_column("y") is not None


def test_other_column_changes_keep_the_computed_column_definition(folder: Path) -> None:
    dataset = ld.dataset(folder / "t.lance")
    dataset.alter_columns({"path": "n", "name": "m"})
    dataset.alter_columns({"path": "y", "name": "w"})
    dataset.add_columns({"k": "x + 1"})
    dataset.drop_columns(["m"])
    assert dataset.computed_columns == {"w": "x * 2"}
    dataset.insert(pa.table({"id": [4], "x": [40], "k": [41]}))
    lancedb.connect(str(folder)).open_table("t").refresh_column("w")
    dataset.checkout_latest()
    assert dataset.to_table(["w"])["w"].to_pylist() == [20, 40, 60, 80]
    dataset.drop_columns(["w", "x"])
    assert dataset.computed_columns == {}


def upsert(path: str, *names: str) -> None:
    values = {"id": [1], "x": [10], "n": ["a"], "y": [7]}
    rows = pa.table({name: values[name] for name in names})
    ld.dataset(path).merge_insert("id").when_matched_update_all().execute(rows)


WRITES: dict[str, Callable[[str], object]] = {
    "update": lambda path: ld.dataset(path).update({"y": "5"}, "id = 1"),
    "overlay": lambda path: ld.dataset(path).update({"y": "5"}, "id = 1", update_mode="data_overlay"),
    "insert": lambda path: ld.dataset(path).insert(ROWS.append_column("y", [[1, 2, 3]])),
    "merge": lambda path: upsert(path, "id", "y"),
    "whole merge": lambda path: upsert(path, "id", "x", "n", "y"),
    "UPDATE": lambda path: sql(path, "UPDATE t SET y = 5 WHERE id = 1"),
    "INSERT": lambda path: sql(path, "INSERT INTO t VALUES (9, 9, 'i', 9)"),
    "transaction": lambda path: sql(path, "BEGIN; UPDATE t SET y = 5 WHERE id = 1; COMMIT"),
}
FINE: dict[str, Callable[[str], object]] = {
    "update": lambda path: ld.dataset(path).update({"x": "5"}, "id = 1"),
    "insert": lambda path: ld.dataset(path).insert(ROWS),
    "merge": lambda path: upsert(path, "id", "x", "n"),
    "delete": lambda path: ld.dataset(path).delete("id = 1"),
    "compact": lambda path: ld.dataset(path).optimize.compact_files(),
    "UPDATE": lambda path: sql(path, "UPDATE t SET x = 5 WHERE id = 1"),
    "INSERT": lambda path: sql(path, "INSERT INTO t (id, x) VALUES (9, 9)"),
    "DELETE": lambda path: sql(path, "DELETE FROM t WHERE id = 1"),
    "transaction": lambda path: sql(path, "BEGIN; UPDATE t SET x = 5 WHERE id = 1; COMMIT"),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_to_a_computed_column_warn(name: str, folder: Path) -> None:
    path = str(folder / "t.lance")
    with pytest.warns(ld.DerivedDataWarning, match=r"LanceDB computes column 'y' as x \* 2") as caught:
        WRITES[name](path)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", ld.DerivedDataWarning)
        version = ld.dataset(path).version
        with pytest.raises(ld.DerivedDataWarning):
            WRITES[name](path)
    assert ld.dataset(path).version == version


@pytest.mark.parametrize("name", FINE)
def test_other_changes_of_a_computed_table_do_not_warn(name: str, folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FINE[name](str(folder / "t.lance"))


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.delete("id = 2"),
        lambda d: d.update({"z": "0"}),
        lambda d: d.insert(pa.table({"id": [9], "z": [9], "__source_row_id": pa.array([9], pa.uint64())})),
        lambda d: d.alter_columns({"path": "z", "name": "q"}),
        lambda d: d.add_columns({"q": "z"}),
        lambda d: sql(d.uri, "DELETE FROM t WHERE id = 2"),
        lambda d: d.restore(),
    ],
)
def test_changes_of_a_view_warn(change: Callable[[Any], object], folder: Path) -> None:
    dataset = ld.dataset(folder / "v.lance")
    with pytest.warns(ld.DerivedDataWarning, match=r"materialized view of LanceDB \(SELECT id, x \+ 1 AS z FROM t"):
        change(dataset)


def test_indexing_and_compacting_a_view_does_not_warn(folder: Path) -> None:
    dataset = ld.dataset(folder / "v.lance")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset.create_scalar_index("id", "BTREE")
        dataset.optimize.compact_files()
        dataset.tags.create("a", 1)


def test_computed_column_definitions_are_shown(folder: Path) -> None:
    query = "SELECT id, x + 1 AS z FROM t WHERE x > 15"
    table, view = ld.dataset(folder / "t.lance"), ld.dataset(folder / "v.lance")
    assert (table.computed_columns, table.view_query) == ({"y": "x * 2"}, None)
    assert (view.computed_columns, view.view_query) == ({}, query)

    def run(*args: str) -> Any:
        return CliRunner().invoke(app, [*args, "--json"]).stdout

    assert json.loads(run("info", table.uri))["computed_columns"] == {"y": "x * 2"}
    assert json.loads(run("info", view.uri))["view_of"] == query
    rows = [json.loads(line) for line in run("schema", table.uri).splitlines()]
    assert [row["computed"] for row in rows] == [None, None, None, "x * 2"]
    assert "computed" not in json.loads(run("schema", view.uri).splitlines()[0])
