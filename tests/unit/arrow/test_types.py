from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lance_duck.arrow import types

TYPES = {
    "string": pa.string(),
    "large_string": pa.large_string(),
    "string_view": pa.string_view(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "binary_view": pa.binary_view(),
    "fixed_size_binary": pa.binary(3),
    "list": pa.list_(pa.int8()),
    "large_list": pa.large_list(pa.int8()),
    "fixed_size_list": pa.list_(pa.int8(), 2),
    "map": pa.map_(pa.string(), pa.int8()),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "float16": pa.float16(),
    "decimal": pa.decimal128(5, 2),
    "bool": pa.bool_(),
    "timestamp": pa.timestamp("us"),
    "timestamp, UTC": pa.timestamp("us", "UTC"),
    "dictionary of strings": pa.dictionary(pa.int8(), pa.string()),
    "dictionary of numbers": pa.dictionary(pa.int8(), pa.int64()),
    "extension": pa.uuid(),
}


@pytest.mark.parametrize(
    ("predicate", "names"),
    [
        (types.is_text, {"string", "large_string", "string_view"}),
        (types.is_bytes, {"binary", "large_binary", "binary_view"}),
        (types.is_binary, {"binary", "large_binary", "binary_view", "fixed_size_binary"}),
        (types.is_view, {"string_view", "binary_view"}),
        (types.has_offsets, {"string", "large_string", "binary", "large_binary"}),
        (types.has_wide_offsets, {"large_string", "large_binary"}),
        (types.is_list, {"list", "large_list", "fixed_size_list"}),
        (types.is_number, {"int64", "uint8", "float16"}),
        (types.is_instant, {"timestamp, UTC"}),
        (types.is_naive, {"timestamp"}),
        (types.holds_texts, {"string", "large_string", "string_view", "dictionary of strings"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_type_predicates_match_only_their_types(predicate: Callable[[pa.DataType], bool], names: set[str]) -> None:
    assert {name for name, type_ in TYPES.items() if predicate(type_)} == names


def test_extension_values_equal_their_storage_values() -> None:
    storage = pa.array([bytes(16), None], pa.binary(16))
    array = types.with_type(storage, pa.uuid())
    assert array.type == pa.uuid()
    assert array.storage.equals(storage)
    assert types.storage_type(pa.uuid()) == pa.binary(16)
    assert types.with_type(storage, pa.binary(16)) is storage
    assert types.storage_type(pa.int8()) == pa.int8()


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_integer_types_have_numpy_dtypes(name: str) -> None:
    assert types.number_dtype(pa.type_for_alias(name)).name == name


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_float_types_have_numpy_dtypes(name: str) -> None:
    assert types.number_dtype(pa.type_for_alias(name)).name == name


def test_to_pandas_dtype_is_never_called() -> None:
    package = Path(types.__file__).parents[1]
    asked = [path.name for path in package.rglob("*.py") if ".to_pandas_dtype(" in path.read_text(encoding="utf-8")]
    assert not asked
