from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

from lance_duck.errors import InvalidInputError
from lance_duck.file.nested import check_form
from lance_duck.wire.schema import Field

BLOB = {"lance-encoding:blob": "true"}


def field(logical_type: str, metadata: Mapping[str, str] | None = None) -> Field:
    return Field(1, "a", -1, logical_type, True, metadata or {})


@pytest.mark.parametrize(
    ("kind", "stored", "wanted"),
    [
        ("string", pa.string(), pa.string_view()),
        ("large_string", pa.large_string(), pa.string()),
        ("string", pa.string(), pa.dictionary(pa.int32(), pa.string_view())),
        ("dict:string:int8:false", pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.string())),
        ("dict:string:int8:false", pa.dictionary(pa.int8(), pa.string()), pa.string_view()),
        ("binary", pa.binary(), pa.binary_view()),
        ("json", pa.string(), pa.large_binary()),
        ("decimal:128:9:2", pa.decimal128(9, 2), pa.decimal32(9, 2)),
        ("halffloat", pa.float16(), pa.float32()),
        ("fixed_size_list:halffloat:4", pa.list_(pa.float16(), 4), pa.list_(pa.float32(), 4)),
        ("int32", pa.int32(), pa.int32()),
    ],
)
def test_arrow_forms_hold_the_same_values(kind: str, stored: pa.DataType, wanted: pa.DataType) -> None:
    check_form(field(kind), stored, wanted)


def test_the_bytes_of_a_blob() -> None:
    description = pa.struct([("position", pa.uint64()), ("size", pa.uint64())])
    check_form(field("large_binary", BLOB), description, pa.large_binary())


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (pa.int32(), pa.int64()),
        (pa.string(), pa.binary()),
        (pa.decimal128(9, 2), pa.decimal256(9, 2)),
        (pa.binary(4), pa.float32()),
        (pa.list_(pa.float16(), 4), pa.list_(pa.float32(), 5)),
        (pa.int32(), pa.dictionary(pa.int32(), pa.string())),
    ],
)
def test_other_types_are_rejected(stored: pa.DataType, wanted: pa.DataType) -> None:
    with pytest.raises(InvalidInputError):
        check_form(field("int32"), stored, wanted)
