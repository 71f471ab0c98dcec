"""`vector_columns`: its forms, and batches whose lists become vectors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import (
    DataMismatchError,
    InvalidInputError,
    LanceDuckError,
    UnknownColumnError,
    WrongTypeError,
)
from lance_duck.write.vectors import (
    VectorForm,
    check_vectors,
    parse_vector_columns,
    vectors_by_name,
    with_vectors,
)

LISTS = [[1.0, 2.0], None, [3.0, 4.0]]
VECTOR = pa.list_(pa.float32(), 2)


@pytest.mark.parametrize(
    ("value", "forms"),
    [
        (None, {}),
        ([], {}),
        (["v", "w"], {"v": VectorForm(), "w": VectorForm()}),
        ("v", {"v": VectorForm()}),
        ("v, w:8", {"v": VectorForm(), "w": VectorForm(8)}),
        ("v:float16[8]", {"v": VectorForm(8, pa.float16())}),
        ("a:b", {"a:b": VectorForm()}),
        ({"v": 8, "w": None}, {"v": VectorForm(8), "w": VectorForm()}),
        ({"v": "float64[8]"}, {"v": VectorForm(8, pa.float64())}),
        ({"v": "8"}, {"v": VectorForm(8)}),
        ({"v": np.int64(8)}, {"v": VectorForm(8)}),
        ({"v": 0}, {"v": VectorForm(0)}),
    ],
    ids=str,
)
def test_vector_columns_accepts_several_forms(value: Any, forms: dict[str, VectorForm]) -> None:
    assert parse_vector_columns(value) == forms


@pytest.mark.parametrize(
    "value",
    [3, [3], {3: 4}, [""], {"v": -1}, {"v": 1.5}, {"v": True}, {"v": "int8[4]"}, {"v": 2**31}, ["v", "v"], b"v"],
    ids=str,
)
def test_invalid_vector_column_forms_are_rejected(value: Any) -> None:
    with pytest.raises(InvalidInputError, match="vector_columns"):
        parse_vector_columns(value)


@pytest.mark.parametrize("text", ["8", "0", "float16[8]", "float64[3]"])
def test_a_vector_form_round_trips_through_its_string(text: str) -> None:
    assert str(VectorForm.of(text, "v")) == text


@pytest.mark.parametrize(
    ("source", "form", "target"),
    [
        (pa.list_(pa.float64()), "2", pa.list_(pa.float64(), 2)),
        (pa.large_list(pa.float16()), "2", pa.list_(pa.float16(), 2)),
        (pa.list_view(pa.float32()), "2", VECTOR),
        (pa.list_(pa.int32()), "2", VECTOR),
        (pa.list_(pa.uint8()), "2", pa.list_(pa.uint8(), 2)),
        (pa.list_(pa.decimal128(3, 1)), "2", VECTOR),
        (pa.list_(pa.uint8()), "float32[2]", VECTOR),
        (VECTOR, "float16[2]", pa.list_(pa.float16(), 2)),
        (pa.null(), "2", VECTOR),
        (pa.list_(pa.float64()), "0", pa.list_(pa.float64())),
    ],
    ids=str,
)
def test_lists_are_mapped_to_vector_types(source: pa.DataType, form: str, target: pa.DataType) -> None:
    assert VectorForm.of(form, "v").type_of(source, "v") == target


@pytest.mark.parametrize("source", [pa.list_(pa.string()), pa.float32(), pa.list_(pa.list_(pa.float32())), pa.string()])
def test_other_types_cannot_become_vectors(source: pa.DataType) -> None:
    with pytest.raises(WrongTypeError, match="column 'v': the column cannot be stored as vectors"):
        VectorForm(2).type_of(source, "v")


def test_batches_are_buffered_until_the_length_is_found() -> None:
    read: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for i, values in enumerate([[], [None, None], LISTS, [[5.0, 6.0]]]):
            read.append(i)
            yield pa.record_batch({"v": pa.array(values, pa.list_(pa.float32()))})

    schema = pa.schema({"v": pa.list_(pa.float32())})
    reader, columns = with_vectors(pa.RecordBatchReader.from_batches(schema, batches()), parse_vector_columns(["v"]))
    assert columns.field("v").type == VECTOR
    assert read == [0, 1, 2]
    assert reader.read_all()["v"].to_pylist() == [None, None, *LISTS, [5.0, 6.0]]


def test_a_given_length_needs_no_reading() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        raise AssertionError("read")
        yield

    reader = pa.RecordBatchReader.from_batches(pa.schema({"v": pa.list_(pa.float32())}), batches())
    assert with_vectors(reader, parse_vector_columns({"v": 2}))[1].field("v").type == VECTOR


@pytest.mark.parametrize(
    ("values", "found"), [([None], "only nulls"), ([], "only nulls"), ([[], [1.0]], "an empty list first")]
)
def test_an_unknown_vector_length_is_rejected_with_a_remedy(values: list[Any], found: str) -> None:
    reader = pa.table({"v": pa.array(values, pa.list_(pa.float32()))}).to_reader()
    with pytest.raises(
        InvalidInputError,
        match=rf"column 'v': the vector length cannot be determined: found {found}; pass vector_columns",
    ):
        with_vectors(reader, parse_vector_columns(["v"]))


@pytest.mark.parametrize("values", [[1, 2], ["a", None], [["a"]], [None, {"v": 1}]])
@pytest.mark.parametrize("columns", [["v"], {"v": 2}])
def test_columns_without_number_lists_are_rejected_by_type(values: list[Any], columns: Any) -> None:
    array = pa.array(values)
    reader = pa.table({"v": array}).to_reader()
    with pytest.raises(WrongTypeError) as raised:
        with_vectors(reader, parse_vector_columns(columns))
    expected = f"column 'v': the column cannot be stored as vectors: expected lists of numbers, found {array.type}"
    assert str(raised.value) == expected


def test_struct_fields_are_named_by_path(tmp_path: Path) -> None:
    values = [{"v": [1.0, 2.0], "n": 1}, None, {"v": [3.0, 4.0], "n": 2}]
    ds = ld.write_dataset(pa.table({"s": values}), tmp_path / "t.lance", vector_columns=["s.v"])
    assert ds.schema.field("s").type.field("v").type == pa.list_(pa.float64(), 2)
    assert ds.to_table()["s"].to_pylist() == values


@pytest.mark.parametrize("nullable", [True, False])
def test_a_null_struct_may_hold_a_list_of_another_length(nullable: bool, tmp_path: Path) -> None:
    lists = pa.array([[1.0, 2.0], [], [3.0, 4.0]], pa.list_(pa.float32()))
    structs = pa.StructArray.from_arrays(
        [lists], fields=[pa.field("v", lists.type, nullable)], mask=pa.array([False, True, False])
    )
    ds = ld.write_dataset(pa.table({"s": structs}), tmp_path / "t.lance", vector_columns={"s.v": 2})
    assert ds.to_table()["s"].to_pylist() == [{"v": [1.0, 2.0]}, None, {"v": [3.0, 4.0]}]


def test_unknown_columns_are_rejected_by_name() -> None:
    for name in ("w", "v.x", "s.w"):
        reader = pa.table({"v": LISTS, "s": [{"v": [1.0]}] * 3}).to_reader()
        with pytest.raises(UnknownColumnError, match=name):
            with_vectors(reader, parse_vector_columns([name]))


@pytest.mark.parametrize(
    ("said", "error"),
    [
        *(("v:2", None), ("v", None), ("v:3", InvalidInputError), ("l:0", None), ("l:2", InvalidInputError)),
        *(("l", InvalidInputError), ("w", UnknownColumnError)),
    ],
)
def test_the_columns_of_a_table_are_only_checked(said: str, error: type[LanceDuckError] | None) -> None:
    schema = pa.schema({"v": VECTOR, "l": pa.list_(pa.float32())})
    if error is None:
        check_vectors(parse_vector_columns(said), schema)
    else:
        with pytest.raises(error):
            check_vectors(parse_vector_columns(said), schema)


def test_lists_with_different_lengths_are_rejected_and_leave_no_table(tmp_path: Path) -> None:
    rows = pa.table({"v": pa.chunked_array([pa.array([[1.0, 2.0]] * 3), pa.array([None, [1.0]])])})
    with pytest.raises(DataMismatchError, match=r"column 'v', row 4: .*expected 2, found 1"):
        ld.write_dataset(rows, tmp_path / "t.lance", vector_columns=["v"])
    assert not (tmp_path / "t.lance").exists()


def test_an_append_casts_lists_to_the_vectors_of_the_table(tmp_path: Path) -> None:
    ds = ld.write_dataset({"v": LISTS}, tmp_path / "t.lance", vector_columns={"v": "float32[2]"})
    ds.insert([{"v": [5.0, 6.0]}])
    ds.insert({"v": [[7.0, 8.0]]}, vector_columns=["v"])
    assert ds.schema.field("v").type == VECTOR
    assert ds.to_table()["v"].to_pylist() == [*LISTS, [5.0, 6.0], [7.0, 8.0]]
    with pytest.raises(DataMismatchError, match=r"column 'v', row 1: .*expected 2, found 3"):
        ds.insert([{"v": [5.0, 6.0]}, {"v": [1.0, 2.0, 3.0]}])
    with pytest.raises(InvalidInputError, match="do not have the length of the table's column"):
        ds.insert({"v": LISTS}, vector_columns={"v": 3})


def test_append_and_overwrite_accept_vector_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    assert ld.write_dataset({"v": LISTS}, path, mode="append", vector_columns={"v": 2}).schema.field(
        "v"
    ).type == pa.list_(pa.float64(), 2)
    ds = ld.write_dataset({"w": LISTS}, path, mode="overwrite", vector_columns="w:float16[2]")
    assert ds.schema.field("w").type == pa.list_(pa.float16(), 2)


@pytest.mark.parametrize(
    ("name", "type_", "target"),
    [
        ("vector", pa.list_(pa.float64()), VECTOR),
        ("Vector", pa.list_(pa.int64()), VECTOR),
        ("text_embedding", pa.large_list(pa.float32()), VECTOR),
        ("image_vectors", pa.list_(pa.float16()), VECTOR),
        ("vector_ids", pa.list_(pa.int64()), None),
        ("v", pa.list_(pa.float32()), None),
        ("vector", pa.list_(pa.string()), None),
        ("vector", pa.list_(pa.float64(), 2), None),
    ],
    ids=str,
)
def test_columns_named_like_vectors_become_vectors(name: str, type_: pa.DataType, target: pa.DataType | None) -> None:
    values = [["1", "2"]] if pa.types.is_string(type_.value_type) else [[1, 2]]
    items = [[np.float16(x) for x in v] for v in values] if type_.value_type == pa.float16() else values
    table = pa.table({name: pa.array(items, type_)})
    reader, forms = vectors_by_name(table.to_reader())
    assert list(forms) == ([] if target is None else [name])
    assert with_vectors(reader, forms)[1].field(name).type == (target or type_)


def test_a_vector_column_without_values_stays_a_list() -> None:
    table = pa.table({"vector": pa.array([None, []], pa.list_(pa.float32()))})
    for rows in (table, table.slice(0, 1), table.slice(0, 0)):
        assert vectors_by_name(rows.to_reader())[1] == {}
