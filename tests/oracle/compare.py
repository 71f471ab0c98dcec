"""Exact equality of Arrow data: types, nulls and values; NaN equals NaN, 0.0 does not equal -0.0."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

Column = pa.Array | pa.ChunkedArray


def assert_tables_same(expected: pa.Table, found: pa.Table) -> None:
    """Fail unless schema (metadata included), row count and every column are the same."""
    assert_schemas_same(expected.schema, found.schema)
    assert expected.num_rows == found.num_rows
    for name, left, right in zip(expected.column_names, expected.columns, found.columns, strict=True):
        try:
            assert_same(left, right)
        except AssertionError as error:
            raise AssertionError(f"column {name}: {error}") from None


def assert_schemas_same(expected: pa.Schema, found: pa.Schema) -> None:
    """Fail unless names, types, nullability and metadata are the same."""
    assert expected.names == found.names
    for left, right in zip(expected, found, strict=True):
        assert_fields_same(left, right)
    assert (expected.metadata or {}) == (found.metadata or {}), f"{expected.metadata} != {found.metadata}"


def assert_fields_same(expected: pa.Field, found: pa.Field) -> None:
    """Fail unless name, type, nullability and metadata are the same."""
    assert found.equals(expected), f"expected {expected}, found {found}"
    assert (expected.metadata or {}) == (found.metadata or {}), (
        f"{expected.name}: {expected.metadata} != {found.metadata}"
    )


def assert_same(expected: Column, found: Column) -> None:
    """Fail unless both hold the same values of the same type."""
    assert expected.type == found.type, f"expected type {expected.type}, found {found.type}"
    assert len(expected) == len(found), f"expected {len(expected)} rows, found {len(found)}"
    for start, left, right in _pairs(expected, found):
        place = first_difference(left, right)
        if place is not None:
            row = start + place
            raise AssertionError(f"row {row}: expected {_show(expected, row)}, found {_show(found, row)}")


def _show(column: Column, row: int) -> str:
    text = repr(column[row].as_py())
    return text if len(text) < 200 else text[:200] + "…"


def _pairs(expected: Column, found: Column) -> Iterator[tuple[int, pa.Array, pa.Array]]:
    """Yield (first row, left, right): slices on which neither side crosses a chunk."""
    left, right = (_chunks(c) for c in (expected, found))
    cuts = sorted({0, len(expected), *left, *right})
    for start, end in itertools.pairwise(cuts):
        yield start, _piece(left, start, end), _piece(right, start, end)


def _chunks(column: Column) -> dict[int, pa.Array]:
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    starts = np.cumsum([0, *(len(c) for c in chunks)])
    return {int(s): c for s, c in zip(starts, chunks, strict=False) if len(c)}


def _piece(chunks: dict[int, pa.Array], start: int, end: int) -> pa.Array:
    first = max(s for s in chunks if s <= start)
    return chunks[first].slice(start - first, end - start)


def first_difference(left: pa.Array, right: pa.Array) -> int | None:
    """Return the first row at which two arrays of one type differ, or None."""
    if _agree(left, right):
        return None
    if len(left) == 1:
        return 0
    half = len(left) // 2
    place = first_difference(left.slice(0, half), right.slice(0, half))
    if place is not None:
        return place
    later = first_difference(left.slice(half), right.slice(half))
    return half + (later or 0)


def _agree(left: pa.Array, right: pa.Array) -> bool:
    if not _has_float(left.type):
        return bool(left.equals(right)) or _parts_agree(left, right)
    return _parts_agree(left, right)


def _parts_agree(left: pa.Array, right: pa.Array) -> bool:
    type_ = left.type
    if len(left) != len(right) or type_ != right.type:
        return False
    if isinstance(type_, pa.BaseExtensionType):
        return _agree(left.storage, right.storage)
    if pa.types.is_dictionary(type_):
        return _agree(left.dictionary_decode(), right.dictionary_decode())
    valid = _mask(left)
    if not np.array_equal(valid, _mask(right)):
        return False
    if pa.types.is_floating(type_):
        return _floats_agree(left, right, valid)
    if pa.types.is_struct(type_):
        return all(_agree(a, b) for a, b in zip(left.flatten(), right.flatten(), strict=True))
    if pa.types.is_fixed_size_list(type_):
        return _agree(left.flatten(), right.flatten())
    if pa.types.is_map(type_):
        return all(_agree(a, b) for a, b in zip(_map_parts(left, valid), _map_parts(right, valid), strict=True))
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        sizes = [np.diff(np.asarray(a.offsets))[valid] for a in (left, right)]
        return np.array_equal(*sizes) and _agree(left.flatten(), right.flatten())
    return bool(left.equals(right))


def _map_parts(array: pa.MapArray, valid: np.ndarray) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return the sizes of the valid maps, and their keys and items."""
    offsets = np.asarray(array.offsets)
    sizes = np.diff(offsets)[valid]
    places = np.repeat(offsets[:-1][valid] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    return pa.array(sizes), array.keys.take(places), array.items.take(places)


def _mask(array: pa.Array) -> np.ndarray:
    return np.asarray(array.is_valid())


def _floats_agree(left: pa.Array, right: pa.Array, valid: np.ndarray) -> bool:
    bits, values = f"u{left.type.bit_width // 8}", f"f{left.type.bit_width // 8}"
    a, b = (
        np.frombuffer(x.buffers()[1] or b"", bits)[x.offset : x.offset + len(x)] if len(x) else np.empty(0, bits)
        for x in (left, right)
    )
    both_nan = np.isnan(a.view(values)) & np.isnan(b.view(values))
    return bool(((a == b) | both_nan | ~valid).all())


def _has_float(type_: pa.DataType) -> bool:
    if isinstance(type_, pa.BaseExtensionType):
        return _has_float(type_.storage_type)
    if pa.types.is_dictionary(type_):
        return _has_float(type_.value_type)
    children = [type_.field(i).type for i in range(type_.num_fields)]
    return pa.types.is_floating(type_) or any(_has_float(c) for c in children)
