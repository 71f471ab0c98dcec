"""pandas frames round trip through every change and read, at least as well as with pylance."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal

import lance_duck as ld

BIG = 2**53 + 1


def frame(**options: Any) -> pd.DataFrame:
    columns = {
        "i": pd.array([1, None, BIG], dtype="Int64"),
        "u": pd.array([None, 2**64 - 1, 3], dtype="UInt64"),
        "b": pd.array([True, None, False], dtype="boolean"),
        "s": pd.array(["a", None, "c"], dtype="string"),
        "f": [1.5, 2.5, 3.5],
        "z": pd.to_datetime(["2020-01-01", "2020-06-01", None]).tz_localize("Europe/Berlin"),
        "c": pd.Categorical(["x", "y", "x"]),
    }
    return pd.DataFrame(columns, **options)


INDICES: dict[str, Any] = {
    "default": None,
    "named": pd.Index([10, 20, 30], name="k"),
    "no name": pd.Index(["p", "q", "r"]),
    "range": pd.RangeIndex(5, 8),
    "named range": pd.RangeIndex(0, 30, 10, name="r"),
    "levels": pd.MultiIndex.from_tuples([(1, "a"), (1, "b"), (2, "a")], names=["one", "two"]),
    "times": pd.DatetimeIndex(["2020-01-01", "2021-01-01", "2022-01-01"], tz="UTC", name="t"),
}
LABELS: dict[str, Any] = {
    "numbers": [0, 1],
    "levels": pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["top", "low"]),
    "times": pd.DatetimeIndex(["2020-01-01", "2020-01-02"]),
    "named": pd.Index(["a", "b"], name="labels"),
}


def numbers(labels: Any) -> pd.DataFrame:
    return pd.DataFrame(np.arange(6).reshape(3, 2), columns=labels)


def of_pylance(data: pd.DataFrame, path: Path) -> pd.DataFrame:
    result: pd.DataFrame = lance.write_dataset(data, path).to_table().to_pandas()
    return result


@pytest.mark.parametrize("index", INDICES)
def test_frames_round_trip_with_dtypes_and_row_labels(tmp_path: Path, index: str) -> None:
    before = frame(index=INDICES[index])
    dataset = ld.write_dataset(before, tmp_path / "t.lance")
    found = dataset.to_table().to_pandas()
    assert_frame_equal(found, of_pylance(before, tmp_path / "p.lance"))
    assert_frame_equal(found, before, check_index_type=False, check_freq=False)
    assert found["i"].tolist()[2] == BIG
    assert_frame_equal(dataset.to_pandas(), found)
    assert_frame_equal(pa.Table.from_batches(dataset.to_batches()).to_pandas(), found)
    assert_frame_equal(lance.dataset(tmp_path / "t.lance").to_table().to_pandas(), found)


@pytest.mark.parametrize("labels", LABELS)
def test_column_labels_round_trip(tmp_path: Path, labels: str) -> None:
    before = numbers(LABELS[labels])
    dataset = ld.write_dataset(before, tmp_path / "t.lance")
    assert_frame_equal(dataset.to_pandas(), of_pylance(before, tmp_path / "p.lance"))
    assert_frame_equal(dataset.to_pandas(), before, check_column_type=False, check_freq=False)
    name = dataset.schema.names[0]
    assert_frame_equal(dataset.to_pandas(columns=[name]), before.iloc[:, :1], check_column_type=False, check_freq=False)
    more = dataset.to_table(with_row_id=True, columns={"sum": f'"{name}" + 1'}).to_pandas()
    assert more["sum"].tolist() == [1, 3, 5]
    dataset.alter_columns({"path": f"`{name}`", "name": "renamed"})
    dataset.add_columns({"added": "renamed + 1"})
    found = dataset.to_pandas()
    assert found.iloc[:, 0].tolist() == [0, 2, 4]
    assert found.columns[0] == "renamed"
    assert found["added"].tolist() == [1, 3, 5]


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("is_merge", [False, True])
def test_columns_of_a_frame_join_columns_with_any_labels(tmp_path: Path, labels: str, is_merge: bool) -> None:
    dataset = ld.write_dataset(numbers(LABELS[labels]), tmp_path / "t.lance")
    first = dataset.schema.names[0]
    added = pd.DataFrame({"n": pd.array([None, BIG, 1], dtype="Int64")})
    if is_merge:
        dataset.merge(added.assign(key=[0, 2, 4]), first, "key")
    else:
        dataset.add_columns(added)
    found = dataset.to_pandas()
    assert found["n"].tolist() == [pd.NA, BIG, 1]
    assert found.iloc[:, 0].tolist() == [0, 2, 4]
    assert_frame_equal(lance.dataset(tmp_path / "t.lance").to_table().to_pandas(), found)


def check(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    """Compare frames: values, dtypes, row labels."""
    assert_frame_equal(found, expected, check_index_type=False, check_freq=False, check_categorical=False)


@pytest.mark.parametrize("index", INDICES)
def test_selected_columns_keep_their_dtypes(tmp_path: Path, index: str) -> None:
    before = frame(index=INDICES[index])
    dataset = ld.write_dataset(before, tmp_path / "t.lance")
    plain = before if "range" in index else before.reset_index(drop=True)
    check(dataset.to_pandas(columns=["s", "i"]), plain[["s", "i"]])
    check(dataset.get_fragments()[0].to_pandas(columns=["u"]), plain[["u"]])
    check(dataset.to_pandas(columns={"n": "i", "u": "u"}), plain[["i", "u"]].rename(columns={"i": "n"}))
    computed = dataset.to_pandas(columns={"i": "f", "s": "f + 1", "b": "i"})
    check(computed, plain[["f", "i"]].assign(s=plain["f"] + 1)[["f", "s", "i"]].set_axis(["i", "s", "b"], axis=1))


@pytest.mark.parametrize("index", INDICES)
def test_reordered_rows_keep_only_stored_index_labels(tmp_path: Path, index: str) -> None:
    before = frame(index=INDICES[index])
    dataset = ld.write_dataset(before, tmp_path / "t.lance")
    loses_labels = index == "default" or "range" in index
    expected = before.iloc[[2, 0, 1]]
    check(dataset.take([2, 0, 1]).to_pandas(), expected.reset_index(drop=True) if loses_labels else expected)
    ordered = dataset.to_table(order_by=[ld.ColumnOrdering("f", ascending=False)]).to_pandas()
    expected = before.iloc[[2, 1, 0]]
    check(ordered, expected.reset_index(drop=True) if loses_labels else expected)
    few = dataset.to_pandas(filter="f > 2")
    check(few, before.iloc[1:].reset_index(drop=True) if loses_labels else before.iloc[1:])


def test_range_labels_extend_only_over_the_original_rows(tmp_path: Path) -> None:
    before = frame(index=pd.RangeIndex(5, 8))
    dataset = ld.write_dataset(before, tmp_path / "t.lance")
    assert dataset.to_pandas().index.tolist() == [5, 6, 7]
    dataset.delete("f < 2")
    dataset = ld.write_dataset(before[:1], tmp_path / "t.lance", mode="append")
    found = dataset.to_pandas()
    assert found.index.tolist() == [0, 1, 2]
    assert found["f"].tolist() == [2.5, 3.5, 1.5]
    updated = ld.write_dataset(before, tmp_path / "u.lance")
    updated.update({"s": "'new'"}, where="f < 2")
    assert updated.to_pandas().index.tolist() == [0, 1, 2]


def test_search_results_keep_their_dtypes(tmp_path: Path) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0, 0, 1, 1, 2, 2], pa.float32()), 2)
    table = pa.Table.from_pandas(frame(index=pd.RangeIndex(5, 8))).append_column("v", vectors)
    dataset = ld.write_dataset(table, tmp_path / "t.lance")
    found = dataset.to_table(nearest={"column": "v", "q": [2, 2], "k": 3}).to_pandas()
    assert found["i"].tolist()[0] == BIG
    assert found["i"].dtype == "Int64"
    assert found.index.tolist() == [0, 1, 2]
    assert found["_distance"].tolist() == [0, 2, 8]
    searched = dataset.search([2, 2]).select(["u"]).limit(2).to_pandas()
    assert searched["u"].dtype == "UInt64"


CHANGES: dict[str, tuple[Callable[[ld.LanceDataset], Any], Callable[[pd.DataFrame], pd.DataFrame]]] = {
    "rename": (lambda d: d.alter_columns({"path": "i", "name": "j"}), lambda f: f.rename(columns={"i": "j"})),
    "swap": (
        lambda d: d.alter_columns({"path": "i", "name": "s"}, {"path": "s", "name": "i"}),
        lambda f: f.rename(columns={"i": "s", "s": "i"}),
    ),
    "drop": (lambda d: d.drop_columns(["i", "c"]), lambda f: f.drop(columns=["i", "c"])),
    "drop and add": (
        lambda d: (d.drop_columns(["i"]), d.add_columns({"i": "s"})),
        lambda f: f.drop(columns=["i"]).assign(i=pa.table({"i": ["a", None, "c"]}).to_pandas()["i"]),
    ),
    "cast": (
        lambda d: (d.delete("f > 3"), d.alter_columns({"path": "i", "data_type": pa.int16()})),
        lambda f: f.iloc[:2].assign(i=f["i"].iloc[:2].astype("Int16")),
    ),
    "cast times": (
        lambda d: d.alter_columns({"path": "z", "data_type": pa.timestamp("ms", "UTC")}),
        lambda f: f.assign(z=f["z"].dt.tz_convert("UTC").dt.as_unit("ms")),
    ),
    "add a frame": (
        lambda d: d.add_columns(pd.DataFrame({"n": pd.array([None, BIG, 1], dtype="Int64")})),
        lambda f: f.assign(n=pd.array([None, BIG, 1], dtype="Int64")),
    ),
    "merge a frame": (
        lambda d: d.merge(pd.DataFrame({"f": [1.5, 3.5], "n": pd.array([BIG, None], dtype="Int64")}), "f"),
        lambda f: f.assign(n=pd.array([BIG, None, None], dtype="Int64")),
    ),
    "append": (lambda d: d.insert(frame(index=None)), lambda f: pd.concat([f, f])),
    "update": (lambda d: d.update({"f": "f"}), lambda f: f),
    "compact": (lambda d: (d.insert(frame()), d.optimize.compact_files()), lambda f: pd.concat([f, f])),
}


@pytest.mark.parametrize("change", CHANGES)
def test_column_changes_keep_the_dtypes_of_other_columns(tmp_path: Path, change: str) -> None:
    dataset = ld.write_dataset(frame(), tmp_path / "t.lance")
    do, expected = CHANGES[change]
    do(dataset)
    found = ld.dataset(tmp_path / "t.lance").to_pandas()
    check(found, expected(frame()).reset_index(drop=True))
    names = {entry["field_name"] for entry in json.loads(dataset.schema.metadata[b"pandas"])["columns"]}
    assert names <= set(dataset.schema.names)
    assert_frame_equal(lance.dataset(tmp_path / "t.lance").to_table().to_pandas(), found, check_categorical=False)


def test_sql_statements_keep_the_dtypes(tmp_path: Path) -> None:
    ld.write_dataset(frame(index=INDICES["named"]), tmp_path / "t.lance")
    with ld.connect(tmp_path) as connection:
        connection.execute("INSERT INTO lance.t (i, f, k) VALUES (9007199254740995, 9, 40)")
        connection.execute("UPDATE lance.t SET u = 18446744073709551615 WHERE f = 9")
        connection.execute("MERGE INTO lance.t USING (SELECT 10 AS k) s ON t.k = s.k WHEN MATCHED THEN DELETE")
        connection.execute("ALTER TABLE lance.t RENAME COLUMN i TO j")
        connection.execute("ALTER TABLE lance.t DROP COLUMN s")
        connection.execute("OPTIMIZE lance.t")
    found = ld.dataset(tmp_path / "t.lance").to_pandas().sort_index()
    assert found["j"].tolist() == [pd.NA, BIG, BIG + 2]
    assert found["u"].tolist() == [2**64 - 1, 3, 2**64 - 1]
    assert found.index.tolist() == [20, 30, 40]
    assert found.index.name == "k"
    assert list(found.columns) == ["j", "u", "b", "f", "z", "c"]


def test_renamed_and_dropped_row_labels_are_handled(tmp_path: Path) -> None:
    dataset = ld.write_dataset(frame(index=INDICES["levels"]), tmp_path / "t.lance")
    dataset.alter_columns({"path": "two", "name": "second"})
    assert dataset.to_pandas().index.names == ["one", "second"]
    dataset.drop_columns(["one"])
    found = dataset.to_pandas()
    assert found.index.tolist() == ["a", "b", "a"]
    dataset.drop_columns(["second"])
    assert dataset.to_pandas().index.tolist() == [0, 1, 2]
    assert dataset.to_pandas()["i"].tolist()[2] == BIG


def test_overwriting_replaces_the_metadata(tmp_path: Path) -> None:
    ld.write_dataset(frame(), tmp_path / "t.lance")
    dataset = ld.write_dataset(pa.table({"i": ["a"]}), tmp_path / "t.lance", mode="overwrite")
    assert not dataset.schema.metadata
    assert dataset.to_pandas()["i"].tolist() == ["a"]
    dataset = ld.write_dataset(frame(), tmp_path / "t.lance", mode="overwrite")
    check(dataset.to_pandas(), frame())


def test_stale_pandas_metadata_is_ignored(tmp_path: Path) -> None:
    dataset = lance.write_dataset(frame(), tmp_path / "t.lance")
    dataset.drop_columns(["i", "b", "z"])
    dataset.add_columns({"i": "'text'", "b": "f", "z": "f"})
    found = ld.dataset(tmp_path / "t.lance").to_pandas()
    assert found["i"].tolist() == ["text"] * 3
    assert found["b"].tolist() == found["z"].tolist() == [1.5, 2.5, 3.5]


@pytest.mark.parametrize("text", ["", "{}", "[]", "1", '{"columns": 7, "index_columns": []}', '{"columns": [{}]}'])
def test_broken_pandas_metadata_is_ignored(tmp_path: Path, text: str) -> None:
    table = pa.table({"i": [1]}).replace_schema_metadata({"pandas": text, "other": "kept"})
    dataset = ld.write_dataset(table, tmp_path / "t.lance")
    assert dataset.schema.metadata == {b"other": b"kept"}
    assert dataset.to_pandas()["i"].tolist() == [1]
    lance.write_dataset(table, tmp_path / "p.lance")
    assert ld.dataset(tmp_path / "p.lance").to_pandas()["i"].tolist() == [1]


def test_arrow_backed_pandas_types_round_trip(tmp_path: Path) -> None:
    before = pd.DataFrame(
        {
            "i": pd.array([1, None, BIG], dtype="int64[pyarrow]"),
            "t": pd.array([1000, None, 3000], dtype="timestamp[ns][pyarrow]"),
            "d": pd.array([True, None, False], dtype="bool[pyarrow]"),
        }
    )
    dataset = ld.write_dataset(before, tmp_path / "t.lance")
    assert_frame_equal(dataset.to_pandas(), before)
    dataset.alter_columns({"path": "t", "data_type": pa.timestamp("us")})
    assert str(dataset.to_pandas()["t"].dtype) == "timestamp[us][pyarrow]"
