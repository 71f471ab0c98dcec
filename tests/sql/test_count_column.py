"""`count(x)` of a whole table equals plain DuckDB, and reads no values if pages are without nulls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.duck.tables.table import DuckTable

TYPES: dict[str, tuple[pa.DataType, Any]] = {
    "i": (pa.int64(), 7),
    "s": (pa.string(), "duck"),
    "long": (pa.string(), "lake" * 100),
    "f": (pa.float32(), float("nan")),
    "b": (pa.bool_(), False),
    "vec": (pa.list_(pa.float32(), 2), [1.0, None]),
    "l": (pa.list_(pa.int32()), []),
    "st": (pa.struct([("a", pa.int32())]), {"a": None}),
    "price": (pa.decimal128(15, 2), 1),
    "dict": (pa.dictionary(pa.int8(), pa.string()), "x"),
}


OLD = ("i", "s", "long", "b")
"""Columns that have nulls in files of 2.0 as well."""


def table_of(marks: Sequence[Sequence[bool]]) -> pa.Table:
    """Return a table whose columns have a value if their mark is true, and NULL otherwise."""
    arrays = {
        name: pa.array([value if mark else None for mark in column], type_)
        for (name, (type_, value)), column in zip(TYPES.items(), marks, strict=True)
    }
    return pa.table({"id": pa.array(range(len(marks[0])), pa.int64()), **arrays})


def marks(rows: int) -> st.SearchStrategy[list[list[bool]]]:
    mostly = st.one_of(
        st.just([True] * rows), st.just([False] * rows), st.lists(st.booleans(), min_size=rows, max_size=rows)
    )
    return st.lists(mostly, min_size=len(TYPES), max_size=len(TYPES))


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_column_counts_equal_those_of_duckdb(
    version: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("count")
    names = ["id", *(OLD if version == "2.0" else TYPES)]
    tables = [table_of(data.draw(marks(5))).select(names) for _ in range(2)]
    stable = data.draw(st.booleans())
    dataset = ld.write_dataset(
        tables[0], folder / "t.lance", data_storage_version=version, enable_stable_row_ids=stable
    )
    ld.write_dataset(tables[1], folder / "t.lance", mode="append")
    dataset = ld.dataset(folder / "t.lance")
    if data.draw(st.booleans()):
        dataset.delete(f"id = {data.draw(st.integers(0, 4))}")
    dataset.add_columns({"more": data.draw(st.sampled_from(["id + 1", "CAST(NULL AS BIGINT)", "nullif(id, 1)"]))})
    left = dataset.to_table()

    with ld.connect(folder) as con, duckdb.connect() as plain:
        plain.register("t", left)
        for name in left.column_names:
            sql = f"SELECT count({name}) FROM t"
            assert con.execute(sql).fetchall() == plain.execute(sql).fetchall(), name
            assert con.description[0][0] == plain.description[0][0]
        several = data.draw(st.lists(st.sampled_from([*left.column_names, "*"]), min_size=2, max_size=5))
        sql = f"SELECT {', '.join(f'count({name})' for name in several)} FROM t"
        assert con.execute(sql).fetchall() == plain.execute(sql).fetchall(), sql
        assert [column[0] for column in con.description] == [column[0] for column in plain.description]


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that receives an entry for each scan by DuckDB."""
    found: list[str] = []
    reader = DuckTable._reader

    def noted(self: DuckTable, dataset: ld.LanceDataset, wanted: pa.Schema, *rest: Any, **options: Any) -> Any:
        found.append(",".join(wanted.names))
        return reader(self, dataset, wanted, *rest, **options)

    monkeypatch.setattr(DuckTable, "_reader", noted)
    return found


def test_a_column_without_nulls_is_counted_without_a_scan(tmp_path: Path, streams: list[str]) -> None:
    full, half = [True] * 4, [True, False] * 2
    ld.write_dataset(table_of([full] * (len(TYPES) - 1) + [half]), tmp_path / "t.lance").delete("id = 1")

    with ld.connect(tmp_path) as con:
        for name in ("id", "i", "s", "LONG", "f", "b", "vec", "price"):
            assert con.execute(f"SELECT count({name}) FROM t").fetchall() == [(3,)], name
        assert streams == []
        assert con.execute("SELECT count(dict) FROM t").fetchall() == [(2,)]
        assert len(streams) == 1


def test_count_scans_only_columns_that_may_have_nulls(tmp_path: Path, streams: list[str]) -> None:
    full, half = [True] * 4, [True, False] * 2
    ld.write_dataset(table_of([full] * (len(TYPES) - 1) + [half]), tmp_path / "t.lance")

    with ld.connect(tmp_path) as con:
        assert con.execute("SELECT count(id), count(*) AS n, count(s) AS n FROM t").fetchall() == [(4, 4, 4)]
        assert [column[0] for column in con.description] == ["count(id)", "n", "n"]
        assert streams == []
        assert con.execute("SELECT count(id), count(dict), count(*) FROM t").fetchall() == [(4, 2, 4)]
        assert streams == ["dict"]


def test_counts_follow_new_versions_and_transactions(tmp_path: Path) -> None:
    table = pa.table({"x": [1, 2]})
    ld.write_dataset(table, tmp_path / "t.lance")

    with ld.connect(tmp_path) as con:
        assert con.execute("SELECT count(x) FROM t").fetchall() == [(2,)]
        ld.write_dataset(pa.table({"x": pa.array([None, 3], pa.int64())}), tmp_path / "t.lance", mode="append")
        assert con.execute("SELECT count(x) FROM t").fetchall() == [(3,)]
        con.execute("BEGIN")
        con.execute("DELETE FROM t WHERE x IS NULL")
        assert con.execute("SELECT count(x) AS n FROM t").fetchall() == [(3,)]
        con.execute("ROLLBACK")
        assert con.execute("SELECT count(x) FROM t").fetchall() == [(3,)]


def test_counts_of_unknown_columns_are_run_by_duckdb(tmp_path: Path) -> None:
    ld.write_dataset(pa.table({"x": [1]}), tmp_path / "t.lance")

    with ld.connect(tmp_path) as con:
        with pytest.raises(duckdb.BinderException, match="missing"):
            con.execute("SELECT count(missing) FROM t")
        con.execute("CREATE MACRO count(a) AS 5")
        assert con.execute("SELECT count(x) FROM t").fetchall() == [(5,)]
