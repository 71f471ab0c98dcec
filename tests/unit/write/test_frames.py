"""Frames of polars and pandas, dictionaries and views: written with the same values, or refused by column."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, UnsupportedError

ENUM = pl.Enum(["a", "b", "c"])
CATEGORICAL = pl.Categorical()
SERIES = {
    "categorical": pl.Series(["c", None, "a", "c"], dtype=CATEGORICAL),
    "enum": pl.Series(["c", None, "a", "c"], dtype=ENUM),
    "struct": pl.Series([{"e": "c"}, None, {"e": None}, {"e": "a"}], dtype=pl.Struct({"e": ENUM})),
    "list": pl.Series([["c"], None, [], ["b", "c"]], dtype=pl.List(CATEGORICAL)),
    "list of enums": pl.Series([["c"], None, [], ["b", "c"]], dtype=pl.List(ENUM)),
    "deep": pl.Series([[{"d": [["c"]]}], None, [], [None]], dtype=pl.List(pl.Struct({"d": pl.List(pl.List(ENUM))}))),
}


@pytest.mark.parametrize("is_lazy", [False, True], ids=["eager", "lazy"])
@pytest.mark.parametrize("series", SERIES.values(), ids=SERIES)
def test_polars_categories_round_trip(tmp_path: Path, series: pl.Series, is_lazy: bool) -> None:
    frame = pl.DataFrame({"id": range(4), "x": series})
    written = ld.write_dataset(frame.lazy() if is_lazy else frame, tmp_path / "t.lance")
    written = ld.write_dataset(frame[1:3], tmp_path / "t.lance", mode="append")
    found = pl.from_arrow(written.to_table())
    assert isinstance(found, pl.DataFrame)
    assert found.schema == frame.schema
    assert found["x"].to_list() == series.to_list() + series[1:3].to_list()


def test_polars_categories_can_be_appended_to_string_columns(tmp_path: Path) -> None:
    ld.write_dataset(pa.table({"x": ["z"]}), tmp_path / "t.lance")
    frame = pl.DataFrame({"x": SERIES["enum"]})
    assert ld.write_dataset(frame, tmp_path / "t.lance", mode="append").to_table()["x"].to_pylist() == [
        *("z", "c", None, "a", "c")
    ]


def test_categories_of_polars_become_new_columns_and_merge(tmp_path: Path) -> None:
    dataset = ld.write_dataset(pa.table({"id": [1, 2]}), tmp_path / "t.lance")
    dataset.add_columns(pl.DataFrame({"e": pl.Series(["c", "a"], dtype=ENUM)}))
    dataset.merge(pl.DataFrame({"id": [2], "f": pl.Series(["b"], dtype=CATEGORICAL)}), "id")
    new = pl.DataFrame({"id": [2, 3], "e": SERIES["enum"][:2], "f": SERIES["categorical"][2:]})
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(new)
    assert dataset.to_table().sort_by("id").to_pylist() == [
        {"id": 1, "e": "c", "f": None},
        {"id": 2, "e": "c", "f": "a"},
        {"id": 3, "e": None, "f": "c"},
    ]


def wrapped(values: list[str], nesting: str, enum: pl.Enum) -> pl.Series:
    """Values of an enum, in structs or lists."""
    match nesting:
        case "struct":
            return pl.Series([{"e": value} for value in values], dtype=pl.Struct({"e": enum}))
        case "list":
            return pl.Series([[value] for value in values], dtype=pl.List(enum))
    return pl.Series(values, dtype=enum)


@pytest.mark.parametrize("is_arrow", [False, True], ids=["polars", "arrow"])
@pytest.mark.parametrize("nesting", ["flat", "struct", "list"])
def test_values_missing_in_a_polars_enum_are_rejected(tmp_path: Path, nesting: str, is_arrow: bool) -> None:
    def rows(ids: list[int], values: list[str], enum: pl.Enum) -> pl.DataFrame | pa.Table:
        frame = pl.DataFrame({"id": ids, "x": wrapped(values, nesting, enum)})
        return frame.to_arrow() if is_arrow else frame

    dataset = ld.write_dataset(rows([1, 2], ["c", "a"], ENUM), tmp_path / "t.lance")
    other = rows([2, 3], ["b", "new"], pl.Enum(["new", "b"]))
    message = r"column 'x'[.a-z]*, row 1: the polars Enum .*: expected a, b, c, found new; cast the column"
    with pytest.raises(InvalidInputError, match=message):
        ld.write_dataset(other, tmp_path / "t.lance", mode="append")
    with pytest.raises(InvalidInputError, match=message):
        dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(other)
    dataset.insert(rows([3], ["b"], pl.Enum(["new", "b"])))
    dataset.optimize.compact_files()
    found = pl.from_arrow(dataset.to_table())
    assert isinstance(found, pl.DataFrame)
    assert found["x"].to_list() == wrapped(["c", "a", "b"], nesting, ENUM).to_list()


def test_sql_and_updates_accept_only_values_of_a_polars_enum(tmp_path: Path) -> None:
    dataset = ld.write_dataset(pl.DataFrame({"id": [1, 2, 3, 4], "x": SERIES["enum"]}), tmp_path / "t.lance")
    with pytest.raises(InvalidInputError, match=r"column 'x', row 0: .* expected a, b, c, found z"):
        dataset.update({"x": "'z'"}, where="id = 2")
    with ld.connect(tmp_path) as connection:
        for statement in (
            "INSERT INTO lance.t VALUES (5, 'z')",
            "UPDATE lance.t SET x = 'z' WHERE id = 1",
            "MERGE INTO lance.t USING (SELECT 1 AS id, 'z' AS x) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = s.x",
        ):
            with pytest.raises(InvalidInputError, match=r"column 'x'.*expected a, b, c, found z"):
                connection.execute(statement)
        connection.execute("UPDATE lance.t SET x = 'b' WHERE id = 2")
        connection.execute("ALTER TABLE lance.t ALTER COLUMN x TYPE VARCHAR")
        connection.execute("INSERT INTO lance.t VALUES (5, 'z')")
        assert connection.execute("SELECT x FROM lance.t ORDER BY id").fetchall() == [(x,) for x in "cbacz"]
    found = pl.from_arrow(ld.dataset(tmp_path / "t.lance").to_table())
    assert isinstance(found, pl.DataFrame)
    assert sorted(found["x"]) == ["a", "b", "c", "c", "z"]


def test_existing_values_outside_a_polars_enum_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = ld.write_dataset(pl.DataFrame({"id": [1, 2], "x": SERIES["enum"][2:]}), tmp_path / "t.lance")
    others = pa.table({"id": [3], "x": pa.array(["z"]).dictionary_encode().cast(dataset.schema.field("x").type)})
    with monkeypatch.context() as patch:
        patch.setattr("lance_duck.write.enums.enum_values", lambda _: None)
        dataset = ld.write_dataset(others, tmp_path / "t.lance", mode="append")
    dataset.update({"id": "id + 1"})
    dataset.optimize.compact_files()
    assert dataset.to_table().to_pydict() == {"id": [2, 3, 4], "x": ["a", "c", "z"]}


@pytest.mark.parametrize(
    "type_",
    [
        *(pl.Object, pl.Int128, pl.UInt128, pl.List(pl.Int128)),
        *(pl.Struct({"a": pl.UInt128}), pl.Array(pl.List(pl.Struct({"a": pl.Int128})), 2)),
    ],
    ids=str,
)
@pytest.mark.parametrize("is_lazy", [False, True], ids=["eager", "lazy"])
def test_types_that_polars_cannot_export_are_rejected_by_column(tmp_path: Path, type_: object, is_lazy: bool) -> None:
    frame = pl.DataFrame({"id": [1, 2], "wide one": pl.Series([None, None], dtype=type_)})
    with pytest.raises(
        UnsupportedError, match=r"column 'wide one': Lance cannot store polars type .*(Object|Int128).*"
    ):
        ld.write_dataset(frame.lazy() if is_lazy else frame, tmp_path / "t.lance")
    dataset = ld.write_dataset(pa.table({"id": [1, 2]}), tmp_path / "t.lance")
    with pytest.raises(UnsupportedError, match="column 'wide one': Lance cannot store"):
        dataset.add_columns(lambda batch: frame.select("wide one").head(len(batch)))


def entries(values: list[object], type_: pa.DataType) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([1, None, 0, 1], pa.int8()), pa.array(values, type_))


VIEWS = {
    "string_view": entries(["a", "b"], pa.string_view()),
    "binary_view": entries([b"a", b"b"], pa.binary_view()),
    "null entry": entries([None, "b"], pa.string_view()),
    "list_view": pa.array([["a"], None, [], ["b", "c"]], pa.list_view(pa.string_view())),
    "large_list_view": pa.array([[b"a"], None, [], [b"b", None]], pa.large_list_view(pa.binary_view())),
}


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("array", VIEWS.values(), ids=VIEWS)
def test_dictionaries_of_views_and_list_views_are_written(tmp_path: Path, array: pa.Array, version: str) -> None:
    nested = {
        "x": array,
        "s": pa.StructArray.from_arrays([array], ["v"]),
        "l": pa.ListArray.from_arrays(pa.array([0, 1, 3, 3, 4], pa.int32()), array),
    }
    if version == "2.2":
        nested["m"] = pa.MapArray.from_arrays(pa.array([0, 1, 3, 3, 4], pa.int32()), pa.array(range(4)), array)
    table = pa.table(nested)
    found = ld.write_dataset(table, tmp_path / "t.lance", data_storage_version=version).to_table()
    assert found.to_pylist() == table.to_pylist()
    sliced = ld.write_dataset(table.slice(1, 2), tmp_path / "s.lance", data_storage_version=version).to_table()
    assert sliced.to_pylist() == table.slice(1, 2).to_pylist()


@pytest.mark.parametrize(
    "type_",
    [
        pa.run_end_encoded(pa.int32(), pa.string()),
        pa.struct([("y", pa.run_end_encoded(pa.int32(), pa.string()))]),
        pa.dictionary(pa.int8(), pa.list_view(pa.int8())),
        pa.list_(pa.string_view(), 2),
        pa.list_(pa.dictionary(pa.int8(), pa.string()), 2),
    ],
    ids=str,
)
def test_types_missing_in_lance_are_rejected_by_column(tmp_path: Path, type_: pa.DataType) -> None:
    rows = pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int8()), ("x", type_)]), [])
    with pytest.raises(UnsupportedError, match=r"column 'x(\.y)?': Lance cannot store"):
        ld.write_dataset(rows, tmp_path / "t.lance")


HUGE = {
    "rows": [{"id": 1, "n": 2**70}],
    "columns": {"id": [1], "n": [2**70]},
    "numpy": {"id": [1], "n": np.array([2**70], object)},
    "pandas": pd.DataFrame({"id": [1], "n": [2**70]}),
    "mixed pandas": pd.DataFrame({"id": [1, 2], "n": [1, "a"]}),
    "mixed rows": [{"id": 1, "n": "a"}, {"id": 1, "n": 1}],
    "objects": pd.DataFrame({"id": [1], "n": [object()]}),
    "complex": {"id": [1], "n": np.array([1j])},
}


@pytest.mark.parametrize("data", HUGE.values(), ids=HUGE)
def test_values_that_arrow_cannot_hold_are_rejected_by_column(tmp_path: Path, data: object) -> None:
    with pytest.raises(InvalidInputError, match="column 'n': Arrow cannot represent these values"):
        ld.write_dataset(data, tmp_path / "t.lance")


def test_values_that_do_not_match_a_schema_are_rejected_by_column(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int8()), ("n", pa.int64())])
    batch = pa.record_batch({"id": [1], "n": [float("inf")]})
    for data in ([{"id": 1, "n": 2**70}], {"id": [1], "n": [2**70]}, pd.DataFrame({"id": [1], "n": ["a"]}), [batch]):
        with pytest.raises(InvalidInputError, match="column 'n': Arrow cannot represent these values: expected int64"):
            ld.write_dataset(data, tmp_path / "t.lance", schema=schema)


@pytest.mark.parametrize("nest", [lambda a: a, lambda a: pa.StructArray.from_arrays([a], ["s"])], ids=["top", "struct"])
def test_broken_arrays_are_rejected_by_column(tmp_path: Path, nest: object) -> None:
    offsets = pa.py_buffer(np.array([0, 1], np.int32))
    array = nest(pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff")]))  # type: ignore[operator]
    with pytest.raises(
        InvalidInputError, match=r"column 'b', batch from row 0 on: the batch is invalid: found .*Invalid UTF8"
    ):
        ld.write_dataset(pa.record_batch({"a": pa.array([1]), "b": array}), tmp_path / "t.lance")
