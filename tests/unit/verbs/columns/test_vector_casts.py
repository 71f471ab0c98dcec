"""Casts between lists and vectors by `alter_columns`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import DataMismatchError, InvalidInputError, ReferencedError

ROWS = [[1.0, 2.0], None, [3.0, 4.0], [5.0, 6.0], None, [7.0, 8.0]]
VECTOR = pa.list_(pa.float32(), 2)


def table_of(folder: Path, values: list[Any], type_: pa.DataType, **settings: Any) -> ld.LanceDataset:
    rows = pa.table({"id": list(range(len(values))), "v": pa.array(values, type_)})
    return ld.write_dataset(rows, folder / "t.lance", **settings)


@pytest.mark.parametrize(
    "source",
    [
        pa.list_(pa.float32()),
        pa.large_list(pa.float32()),
        pa.list_(pa.float64()),
        pa.list_(pa.float16()),
        pa.list_(pa.int64()),
        pa.list_(pa.int8()),
    ],
    ids=str,
)
@pytest.mark.parametrize("item", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_lists_of_equal_length_become_vectors(source: pa.DataType, item: pa.DataType, tmp_path: Path) -> None:
    values = [None if v is None else [source.value_type.to_pandas_dtype()(x) for x in v] for v in ROWS]
    ds = table_of(tmp_path, values, source, max_rows_per_file=4)
    ds.alter_columns({"path": "v", "data_type": pa.list_(item, 2)})
    assert ds.schema.field("v").type == pa.list_(item, 2)
    assert ds.to_table()["v"].to_pylist() == ROWS
    assert ds.search([7.0, 8.0], k=1, columns=["id"])["id"].to_pylist() == [5]


def test_lists_of_decimals_become_vectors(tmp_path: Path) -> None:
    from decimal import Decimal

    ds = table_of(tmp_path, [[Decimal("1.5"), Decimal("2.5")]], pa.list_(pa.decimal128(3, 1)))
    ds.alter_columns({"path": "v", "data_type": VECTOR})
    assert ds.to_table()["v"].to_pylist() == [[1.5, 2.5]]


@pytest.mark.parametrize("target", [pa.list_(pa.float32()), pa.large_list(pa.float32()), pa.list_(pa.float64())])
def test_vectors_become_lists(target: pa.DataType, tmp_path: Path) -> None:
    ds = table_of(tmp_path, ROWS, VECTOR, max_rows_per_file=4)
    ds.delete("id = 0")
    ds.alter_columns({"path": "v", "data_type": target})
    assert ds.schema.field("v").type == target
    assert ds.to_table()["v"].to_pylist() == ROWS[1:]
    ds.alter_columns({"path": "v", "data_type": VECTOR})
    assert ds.to_table()["v"].to_pylist() == ROWS[1:]


def test_the_error_names_the_first_row_with_a_different_length(tmp_path: Path) -> None:
    ds = table_of(tmp_path, [*ROWS, [1.0, 2.0, 3.0], []], pa.list_(pa.float32()), max_rows_per_file=3)
    with pytest.raises(DataMismatchError, match=r"column 'v', row 6: .*expected 2, found 3"):
        ds.alter_columns({"path": "v", "data_type": VECTOR})
    assert ds.version == 1
    ds.delete("id = 0")
    with pytest.raises(DataMismatchError, match=r"column 'v', row 5: .*expected 2, found 3"):
        ds.alter_columns({"path": "v", "data_type": VECTOR})
    ds.delete("id >= 6")
    ds.alter_columns({"path": "v", "data_type": VECTOR})
    assert ds.to_table()["v"].to_pylist() == ROWS[1:]


def test_deleted_rows_may_have_any_length(tmp_path: Path) -> None:
    ds = table_of(tmp_path, [[1.0], [1.0, 2.0], [3.0]], pa.list_(pa.float32()))
    ds.delete("id <> 1")
    ds.alter_columns({"path": "v", "data_type": VECTOR})
    assert ds.to_table()["v"].to_pylist() == [[1.0, 2.0]]


def test_vectors_cannot_be_cast_to_another_length(tmp_path: Path) -> None:
    ds = table_of(tmp_path, ROWS, VECTOR)
    with pytest.raises(InvalidInputError, match="column 'v' cannot be cast"):
        ds.alter_columns({"path": "v", "data_type": pa.list_(pa.float32(), 3)})


def test_an_empty_table_can_be_cast(tmp_path: Path) -> None:
    ds = table_of(tmp_path, [], pa.list_(pa.float64()))
    ds.alter_columns({"path": "v", "data_type": VECTOR})
    assert ds.schema.field("v").type == VECTOR


@pytest.mark.parametrize("nullable", [True, False])
def test_lists_in_structs_become_vectors_and_null_structs_are_kept(nullable: bool, tmp_path: Path) -> None:
    inner = pa.field("v", pa.list_(pa.float64()), nullable)
    values = [{"v": [1.0, 2.0], "n": 1}, None, {"v": [3.0, 4.0], "n": 3}]
    type_ = pa.struct([inner, pa.field("n", pa.int64())])
    ds = ld.write_dataset(pa.table({"s": pa.array(values, type_)}), tmp_path / "t.lance")
    ds.alter_columns({"path": "s.v", "data_type": VECTOR})
    assert ds.schema.field("s").type.field("v").type == VECTOR
    assert ds.to_table()["s"].to_pylist() == values
    ds.insert([{"s": {"v": [1.0, 2.0], "n": 5}}])


def test_an_error_in_a_struct_names_the_path_and_the_row(tmp_path: Path) -> None:
    values = [{"v": [1.0, 2.0]}, {"v": [3.0]}]
    ds = ld.write_dataset(pa.table({"my s": values}), tmp_path / "t.lance")
    with pytest.raises(DataMismatchError, match=r"column 'my s\.v', row 1: .*expected 2, found 1"):
        ds.alter_columns({"path": "my s.v", "data_type": VECTOR})


def test_lists_of_lists_become_lists_of_vectors(tmp_path: Path) -> None:
    values = [[[1.0, 2.0], [3.0, 4.0]], None, [], [[5.0, 6.0]]]
    ds = table_of(tmp_path, values, pa.list_(pa.list_(pa.float32())))
    ds.alter_columns({"path": "v", "data_type": pa.list_(VECTOR)})
    assert ds.schema.field("v").type == pa.list_(VECTOR)
    assert ds.to_table()["v"].to_pylist() == values
    ds.alter_columns({"path": "v", "data_type": pa.list_(pa.list_(pa.float32()))})
    assert ds.to_table()["v"].to_pylist() == values
    ds.alter_columns({"path": "v.item", "data_type": VECTOR})
    assert ds.to_table()["v"].to_pylist() == values


def test_an_error_in_nested_lists_names_the_table_row(tmp_path: Path) -> None:
    values = [[[1.0, 2.0], [3.0, 4.0]], [], [[5.0, 6.0], [7.0]]]
    ds = table_of(tmp_path, values, pa.list_(pa.list_(pa.float32())))
    for change in ({"path": "v", "data_type": pa.list_(VECTOR)}, {"path": "v.item", "data_type": VECTOR}):
        with pytest.raises(DataMismatchError, match=r"row 2: .*expected 2, found 1"):
            ds.alter_columns(change)


def test_an_indexed_column_is_not_cast(tmp_path: Path) -> None:
    ds = table_of(tmp_path, [[1.0, 2.0]] * 300, VECTOR)
    ds.create_index("v", "IVF_FLAT", num_partitions=1)
    with pytest.raises(ReferencedError):
        ds.alter_columns({"path": "v", "data_type": pa.list_(pa.float32())})


def test_other_list_casts_are_unchanged(tmp_path: Path) -> None:
    ds = table_of(tmp_path, [[1, 2], None], pa.list_(pa.int64()))
    ds.alter_columns({"path": "v", "data_type": pa.list_(pa.int16())})
    assert ds.schema.field("v").type == pa.list_(pa.int16())
    with pytest.raises(InvalidInputError, match="cannot be cast"):
        ds.alter_columns({"path": "v", "data_type": pa.list_(pa.float32())})
    with pytest.raises(InvalidInputError, match="cannot be cast"):
        ds.alter_columns({"path": "v", "data_type": pa.list_(pa.string(), 2)})


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_lists_are_cast_in_every_file_version(version: str, tmp_path: Path) -> None:
    ds = table_of(tmp_path, ROWS, pa.list_(pa.float64()), data_storage_version=version)
    ds.alter_columns({"path": "v", "data_type": VECTOR})
    assert ds.to_table()["v"].to_pylist() == ROWS


def test_nested_lists_in_deleted_rows_may_have_any_length(tmp_path: Path) -> None:
    values = [[[1.0], [1.0, 2.0]], [[1.0, 2.0], [3.0, 4.0]], [[5.0]], [[5.0, 6.0]]]
    ds = table_of(tmp_path, values, pa.list_(pa.list_(pa.float32())))
    ds.delete("id IN (0, 2)")
    ds.alter_columns({"path": "v.item", "data_type": VECTOR})
    assert ds.to_table()["v"].to_pylist() == [values[1], values[3]]
    ds.insert([{"id": 9, "v": [[7.0, 8.0]]}])
    assert ds.to_table()["v"].to_pylist() == [values[1], values[3], [[7.0, 8.0]]]


def test_an_error_in_nested_lists_does_not_count_deleted_rows(tmp_path: Path) -> None:
    values = [[[1.0]], [[1.0, 2.0]], [[1.0]], [[1.0, 2.0]], [[3.0]]]
    ds = table_of(tmp_path, values, pa.list_(pa.list_(pa.float32())), max_rows_per_file=3)
    ds.delete("id IN (0, 2)")
    with pytest.raises(DataMismatchError, match=r"row 2: .*expected 2, found 1"):
        ds.alter_columns({"path": "v.item", "data_type": VECTOR})
