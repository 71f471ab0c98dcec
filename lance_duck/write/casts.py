"""Casts from a batch's column types to a table's column types. Casts never change a value.

A cast is determined once for a pair of types, and then runs on each array. The casts:

    null                             anything
    integers, floats                 integers and floats, exactly; items of vectors are rounded, also from decimals
    integers, decimals               decimals that represent each value exactly
    decimals                         integers, exactly
    strings and views of any kind    each other; JSON; UUIDs, and UUIDs to strings
    binary and views of any kind     each other; fixed_size_binary, if all values have its length
    date, time, timestamp, duration  the same kind in a different unit, exactly; time zones are not added or removed
    dictionaries, run ends           their values; values can also be cast to a dictionary
    lists of any kind                each other; vectors, if all lists have the vectors' length
    struct, map                      structs and maps; their fields are matched by name and cast
    binary                           a blob; JSON, in Lance's binary form
    booleans                         arrow.bool8, booleans of one byte
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_duck import lazy
from lance_duck.arrow.limits import OVERFLOW, array_limit, check_count, check_limit
from lance_duck.arrow.listed import offsets_of
from lance_duck.arrow.types import decoded_dictionary, is_any_list, is_bytes, is_text
from lance_duck.errors import DataMismatchError, InvalidInputError
from lance_duck.wire.schema import Field
from lance_duck.write.enums import checked_enum, has_enum
from lance_duck.write.options import Jsonb
from lance_duck.write.plain_casts import (
    Cast,
    blob_cast,
    cast_values,
    decoded_values,
    dictionary_cast,
    fits,
    mismatch,
    with_row,
)
from lance_duck.write.uuids import UUID, texts_from_uuids, uuids_from_texts

_BOOL8 = "arrow.bool8"

if TYPE_CHECKING:
    from lance_duck.encoding.arrow import jsonb as binary_json
else:
    binary_json = lazy.modules(globals(), "lance_duck.encoding.arrow", "jsonb")


_JSONB_CASTS: Final[dict[Jsonb, Callable[[str], Cast]]] = {
    Jsonb.TEXT: lambda where: lambda array: binary_json.jsonb_texts(array, where),
    Jsonb.CHECKED: lambda where: lambda array: binary_json.checked_jsonb(array, where),
    Jsonb.TRUSTED: lambda _: lambda array: array.cast(pa.large_binary()),
}


def find_cast(source: pa.DataType, field: Field, where: str, jsonb: Jsonb = Jsonb.TEXT) -> Cast | None:
    """Return the function that casts arrays of a type to a field's storage type, or None if no cast is needed.

    Args:
        source: Type of the arrays.
        field: Field of the table.
        where: Name of the column, for messages.
        jsonb: How to treat JSON in binary form.

    Raises:
        InvalidInputError: The types cannot be cast. The returned function raises it for values that do not fit.
    """
    target = field.storage_type
    is_same = source == target and (not field.children or _same_names(source, field))
    if is_same and (jsonb is Jsonb.TRUSTED or not has_enum(field)):
        return None
    if _is_uuid(source) and is_text(field.storage_type):
        return _after(texts_from_uuids, find_cast(pa.large_string(), field, where, jsonb))
    if is_text(source) and field.extension_name == UUID:
        return lambda array: _uuid_values(array, where)
    if pa.types.is_boolean(source) and field.extension_name == _BOOL8:
        return lambda array: array.cast(pa.int8())
    if isinstance(source, pa.BaseExtensionType):
        inner = find_cast(source.storage_type, field, where, jsonb)
        return lambda array: array.storage if inner is None else inner(array.storage)
    if pa.types.is_null(source) and not pa.types.is_null(target):
        return lambda array: pa.nulls(len(array), target)
    if field.blob_version == 2 and not pa.types.is_struct(source):
        return blob_cast(source, field, where)
    if is_same and pa.types.is_dictionary(target):
        return checked_enum(lambda array: array, field, where)
    if pa.types.is_dictionary(target):
        return checked_enum(dictionary_cast(source, target, where), field, where)
    if pa.types.is_dictionary(source):
        return _after(decoded_values, find_cast(decoded_dictionary(pa.nulls(0, source)).type, field, where, jsonb))
    if pa.types.is_run_end_encoded(source):
        return _after(_runs, find_cast(source.value_type, field, where, jsonb))
    if field.is_json and (is_bytes(source) or pa.types.is_fixed_size_binary(source)):
        return _JSONB_CASTS[jsonb](where)
    if pa.types.is_struct(target) and pa.types.is_struct(source):
        return _struct_cast(source, field, where, jsonb)
    if pa.types.is_map(target) and pa.types.is_map(source):
        return _map_cast(source, field, where, jsonb)
    if is_any_list(target) and is_any_list(source):
        return _list_cast(source, field, where, jsonb)
    if fits(source, target):
        return lambda array: cast_values(array, target, where)
    raise mismatch(source, target, where)


def _runs(array: pa.Array) -> pa.Array:
    try:
        return check_limit(pc.run_end_decode(array))
    except OVERFLOW as error:
        raise array_limit(error) from error


def _is_uuid(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType) and kind.extension_name == UUID


def _uuid_values(texts: pa.Array, where: str) -> pa.Array:
    try:
        return uuids_from_texts(texts).storage
    except InvalidInputError as error:
        raise InvalidInputError(error.what, where=where, expected=error.expected, found=error.found) from error


def _after(first: Cast, then: Cast | None) -> Cast:
    return first if then is None else lambda array: then(first(array))


def _same_names(source: pa.DataType, field: Field) -> bool:
    """Return whether the struct field names in two equal types are the same. Arrow ignores names inside lists."""
    if pa.types.is_struct(source):
        return all(
            source.field(i).name == c.name and _same_names(source.field(i).type, c)
            for i, c in enumerate(field.children)
        )
    if pa.types.is_map(source):
        key, value = field.children[0].children
        return _same_names(source.key_type, key) and _same_names(source.item_type, value)
    if is_any_list(source) and field.children:
        return _same_names(source.value_type, field.children[0])
    return True


def _struct_cast(source: pa.StructType, field: Field, where: str, jsonb: Jsonb) -> Cast:
    target = field.storage_type
    places = match_names([f.name for f in source], field.children, where)
    casts = [
        None if place is None else find_cast(source.field(place).type, child, f"{where}.{child.name}", jsonb)
        for place, child in zip(places, field.children, strict=True)
    ]

    def cast(array: pa.Array) -> pa.Array:
        columns = []
        # The members of a null struct may have any value, including a list of the wrong length.
        members = array.flatten() if array.null_count else None
        for place, inner, child in zip(places, casts, field.children, strict=True):
            if place is None:
                columns.append(pa.nulls(len(array), child.storage_type))
            elif inner is None:
                columns.append(array.field(place))
            else:
                columns.append(inner(array.field(place) if members is None else members[place]))
        mask = array.is_null() if array.null_count else None
        if not columns:
            return array
        fields = [member.with_type(column.type) for member, column in zip(target, columns, strict=True)]
        return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)

    return cast


def match_names(names: list[str], fields: tuple[Field, ...], where: str | None) -> list[int | None]:
    """Return the index in `names` of each field's name. A nullable field that is missing has the index None.

    Raises:
        InvalidInputError: A name is repeated or unknown, or a non-nullable field is missing.
    """
    at = where or "data"
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise DataMismatchError("duplicate column names", where=at, found=", ".join(twice))
    extra = [name for name in names if name not in {f.name for f in fields}]
    if extra:
        raise DataMismatchError(
            "the data has columns that the table does not have",
            where=at,
            expected=", ".join(f.name for f in fields) or "none",
            found=", ".join(extra),
            remedy="drop them from the data, or add them to the table with add_columns",
        )
    missing = [f.name for f in fields if f.name not in set(names) and not f.nullable]
    if missing:
        raise DataMismatchError("non-nullable columns are missing from the data", where=at, expected=", ".join(missing))
    place = {name: i for i, name in enumerate(names)}
    return [place.get(f.name) for f in fields]


def _map_cast(source: pa.MapType, field: Field, where: str, jsonb: Jsonb) -> Cast:
    key, value = field.children[0].children
    key_cast = find_cast(source.key_type, key, f"{where}.key", jsonb)
    value_cast = find_cast(source.item_type, value, f"{where}.value", jsonb)

    def cast(array: pa.Array) -> pa.Array:
        offsets, start, stop = _offsets(array)
        keys, items = array.keys.slice(start, stop - start), array.items.slice(start, stop - start)
        keys = keys if key_cast is None else _run_below(key_cast, keys, offsets)
        items = items if value_cast is None else _run_below(value_cast, items, offsets)
        mask = array.is_null() if array.null_count else None
        kind = pa.map_(keys.type, pa.field("value", items.type, value.nullable))
        return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, items, type=kind, mask=mask)

    return cast


def _list_cast(source: pa.DataType, field: Field, where: str, jsonb: Jsonb) -> Cast:
    target = field.storage_type
    inner = _item_cast(source.value_type, field, where, jsonb)
    vectors = pa.types.is_fixed_size_list(target)

    def cast(array: pa.Array) -> pa.Array:
        if pa.types.is_list_view(array.type) or pa.types.is_large_list_view(array.type):
            array = _in_order(array)
        if vectors:
            return _to_vectors(array, target, inner, where)
        if pa.types.is_fixed_size_list(array.type):
            array = array.cast(pa.large_list(array.type.value_field))
        offsets, start, stop = _offsets(array)
        items = array.values.slice(start, stop - start)
        items = items if inner is None else _run_below(inner, items, offsets)
        mask = array.is_null() if array.null_count else None
        item = pa.field("item", items.type, target.value_field.nullable)
        if pa.types.is_large_list(target):
            return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), items, pa.large_list(item), mask=mask)
        check_count(len(items), where)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items, pa.list_(item), mask=mask)

    return cast


def _item_cast(source: pa.DataType, field: Field, where: str, jsonb: Jsonb) -> Cast | None:
    """Return the cast from list items to a field's items, or None if it is not needed."""
    if field.children:
        return find_cast(source, field.children[0], f"{where}.{field.children[0].name}", jsonb)
    item = field.storage_type.value_type
    if isinstance(source, pa.BaseExtensionType):
        return _after(lambda items: items.storage, _item_cast(source.storage_type, field, where, jsonb))
    if source == item:
        return None
    if pa.types.is_floating(item) and (pa.types.is_floating(source) or pa.types.is_decimal(source)):
        return lambda items: _rounded(items, item)
    as_field = Field(-1, "item", -1, field.logical_type.partition(":")[2].rpartition(":")[0], True)
    return find_cast(source, as_field, f"{where}.item")


def _rounded(items: pa.Array, kind: pa.DataType) -> pa.Array:
    return (items.cast(pa.float64()) if pa.types.is_decimal(items.type) else items).cast(kind)


def _offsets(array: pa.Array) -> tuple[np.ndarray, int, int]:
    """Return the offsets of lists or maps, relative to the first item, and the start and stop of their items."""
    offsets = offsets_of(array)
    start, stop = int(offsets[0]), int(offsets[-1])
    return offsets - start, start, stop


def _in_order(array: pa.Array) -> pa.Array:
    """Convert an array of list views to an array of lists."""
    lengths = pc.list_value_length(array).fill_null(0).to_numpy()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    mask = array.is_null() if array.null_count else None
    return pa.LargeListArray.from_arrays(pa.array(offsets), array.flatten(), mask=mask)


def _run_below(cast: Cast, items: pa.Array, offsets: np.ndarray) -> pa.Array:
    """Cast the items of lists. Error messages name the row of the list."""
    try:
        return cast(items)
    except InvalidInputError as error:
        raise with_row(error, lambda item: row_of_item(offsets, item)) from error


def row_of_item(offsets: np.ndarray, item: int) -> int:
    """Return the index of the list that contains an item, given the list offsets."""
    return int(np.searchsorted(offsets, item, "right")) - 1


def _to_vectors(array: pa.Array, target: pa.FixedSizeListType, inner: Cast | None, where: str) -> pa.Array:
    size = target.list_size
    mask = array.is_null() if array.null_count else None
    if pa.types.is_fixed_size_list(array.type):
        if array.type.list_size != size and array.null_count < len(array):
            row = 0 if mask is None else pc.index(mask, False).as_py()
            raise _wrong_length(where, row, size, array.type.list_size)
        if array.type.list_size != size:
            none = array.values.slice(0, 0)
            item = pa.field("item", (none if inner is None else inner(none)).type, target.value_field.nullable)
            return pa.nulls(len(array), pa.list_(item, size))
        items = array.values.slice(array.offset * size, len(array) * size)
    else:
        items = _items_of_one_length(array, size, where)
    if inner is not None:
        items = _run_below(inner, items, np.arange(len(array) + 1) * size)
    item = pa.field("item", items.type, target.value_field.nullable)
    return pa.FixedSizeListArray.from_arrays(items, type=pa.list_(item, size), mask=mask)


def _items_of_one_length(array: pa.Array, size: int, where: str) -> pa.Array:
    """Return the items of lists that all have length `size`, with `size` nulls for each null list."""
    lengths = pc.list_value_length(array)
    wrong = pc.not_equal(lengths, size).fill_null(False)
    if pc.any(wrong, min_count=0).as_py():
        row = pc.index(wrong, True).as_py()
        raise _wrong_length(where, row, size, lengths[row])
    if not array.null_count:
        return array.flatten()
    starts = array.offsets.to_numpy()[:-1].astype(np.int64)
    places = starts[:, None] + np.arange(size)
    nulls = np.repeat(array.is_null().to_numpy(zero_copy_only=False), size)
    return array.values.take(pa.array(places.reshape(-1), mask=nulls))


def _wrong_length(where: str, row: int, size: int, length: object) -> DataMismatchError:
    return DataMismatchError(
        "the vector has the wrong length", where=f"{where}, row {row}", expected=size, found=length
    )
