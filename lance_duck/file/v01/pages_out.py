"""Converts arrays to pages of 0.1 files; `file.v01.pages` describes the layout.

Pages do not store validity. Values that would read back differently are therefore rejected. In nullable string and
binary fields, a null is written as an empty value, and empty values are rejected. Nulls in other fields are rejected.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.arrow.listed import offsets_of
from lance_duck.arrow.types import is_bytes, is_text, number_dtype
from lance_duck.errors import UnsupportedError
from lance_duck.file.v01.container import is_texts
from lance_duck.file.write.stored import stored_array, stored_type
from lance_duck.store import Buffer
from lance_duck.wire.schema import Field

Page = tuple[int, int, int]
"""A page: id of its field, position in the file, and length in the page table."""

_OFFSET: Final = np.dtype("<i8")
_REMEDY: Final = "write data_storage_version='2.2'"


class Pages:
    """The pages of batches, as bytes to append to a file.

    Args:
        position: Position of the bytes in the file.
        dictionaries: Dictionary values of each field, by field id. Missing dictionaries are added.
    """

    def __init__(self, position: int, dictionaries: MutableMapping[int, pa.Array]) -> None:
        self.buffers: list[Buffer] = []
        self.entries: list[Page] = []
        self._position = position
        self._dictionaries = dictionaries

    def add(self, f: Field, arrays: Sequence[pa.Array], path: str) -> None:
        """Add the pages of a field and all fields below it, for one batch.

        Args:
            f: Field of the schema.
            arrays: Values of the rows, in one or more arrays.
            path: Name of the field, for error messages.

        Raises:
            UnsupportedError: A null or an empty value would be read back as a different value.
        """
        if f.logical_type == "struct":
            _refuse_nulls(arrays, path)
            for i, child in enumerate(f.children):
                self.add(child, [array.field(i) for array in arrays], f"{path}.{child.name}")
        elif f.is_list:
            self._add_lists(f, arrays, path)
        else:
            self._add_leaf(f, arrays, path)

    def _add_lists(self, f: Field, arrays: Sequence[pa.Array], path: str) -> None:
        _refuse_nulls(arrays, path)
        dtype = np.dtype("<i8" if f.logical_type.startswith("large") else "<i4")
        offsets, items, end = [np.zeros(1, np.int64)], [], 0
        for array in arrays:
            own = offsets_of(array).astype(np.int64)
            offsets.append(own[1:] - own[0] + end)
            end += int(own[-1] - own[0])
            items.append(array.values.slice(own[0], own[-1] - own[0]))
        most = np.iinfo(dtype).max
        if end > most:
            raise UnsupportedError(
                "too many list items for a data file of version 0.1",
                where=f"column {path!r}",
                expected=f"at most {most}",
                found=end,
                remedy="write smaller batches (max_rows_per_group)",
            )
        ends = np.concatenate(offsets)
        self._put(f.id, len(ends), ends.astype(dtype))
        self.add(f.children[0], items, f"{path}.{f.children[0].name}")

    def _add_leaf(self, f: Field, arrays: Sequence[pa.Array], path: str) -> None:
        count = sum(map(len, arrays))
        if f.is_dictionary:
            self._put(f.id, count, *(self._places(f, array, path) for array in arrays))
            return
        stored = [stored_array(array, f, stored_type(f), path) for array in arrays]
        if is_texts(f):
            self._add_texts(f, stored, path)
        elif pa.types.is_null(stored[0].type):
            self._put(f.id, count)
        else:
            self._put(f.id, count, *_fixed(stored, path))

    def _add_texts(self, f: Field, arrays: Sequence[pa.Array], path: str) -> None:
        offsets, at = [np.array([self._position])], self._position
        for array in arrays:
            own, data = _texts(array, path, nullable=f.nullable)
            self._append(data)
            offsets.append(own[1:] - own[0] + at)
            at = int(offsets[-1][-1]) if len(own) > 1 else at
        ends = np.concatenate(offsets)
        self._put(f.id, len(ends) - 1, ends.astype(_OFFSET))

    def _places(self, f: Field, array: pa.DictionaryArray, path: str) -> Buffer:
        """Return the dictionary indices of values. The first values of a field define its dictionary."""
        while isinstance(array, pa.ExtensionArray):
            array = array.storage
        values = self._dictionaries.get(f.id)
        if values is None:
            values = self._dictionaries[f.id] = first_dictionary(array, nullable=f.nullable)
        empty = _empty(values.type) if f.nullable else None
        items = array.dictionary
        if empty is not None and pc.index(items, empty).as_py() >= 0:
            _refuse_empty(items.take(pc.unique(array.indices).drop_null()), path)
        places = pc.index_in(items, value_set=values).take(array.indices)
        if places.null_count and empty is not None and (absent := pc.index(values, empty).as_py()) >= 0:
            places = pc.if_else(items.take(array.indices).is_null(), pa.scalar(absent, places.type), places)
        if places.null_count:
            raise _not_in_dictionary(array[pc.index(places.is_null(), True).as_py()].as_py(), path)
        dtype = number_dtype(array.type.index_type)
        most = np.iinfo(dtype).max
        if len(values) - 1 > most:
            raise UnsupportedError(
                "the dictionary has more values than its index type can address",
                where=f"column {path!r}",
                expected=f"at most {most + 1}",
                found=len(values),
            )
        return places.to_numpy(zero_copy_only=False).astype(dtype.newbyteorder("<"))

    def _put(self, field_id: int, length: int, *data: Buffer) -> None:
        self.entries.append((field_id, self._position, length))
        for buffer in data:
            self._append(buffer)

    def _append(self, data: Buffer) -> None:
        size = memoryview(data).nbytes
        if size:
            self.buffers.append(data)
            self._position += size


def first_dictionary(array: pa.DictionaryArray, *, nullable: bool) -> pa.Array:
    """Return the dictionary that the first rows of a column define: their distinct values, without null.

    If some rows are null and values have variable length, the dictionary also contains the empty value, which readers
    treat as null.
    """
    values = pc.unique(array.dictionary).drop_null()
    empty = _empty(values.type) if nullable and (array.null_count or array.dictionary.null_count) else None
    if empty is not None:
        values = pc.unique(pa.concat_arrays([values, pa.array([empty.as_py()], values.type)]))
    return values


def _empty(type_: pa.DataType) -> pa.Scalar | None:
    """Return the empty value of a type, which readers treat as null. Returns None for a fixed-width type."""
    if is_text(type_):
        return pa.scalar("", type_)
    return pa.scalar(b"", type_) if is_bytes(type_) else None


def _fixed(arrays: Sequence[pa.Array], path: str) -> Iterator[Buffer]:
    """Yield the bytes of fixed-width values."""
    _refuse_nulls(arrays, path)
    while pa.types.is_fixed_size_list(arrays[0].type):
        arrays = [stored_items(array) for array in arrays]
        _refuse_nulls(arrays, path)
    if pa.types.is_boolean(arrays[0].type):
        flags = [array.to_numpy(zero_copy_only=False) for array in arrays]
        yield np.packbits(np.concatenate(flags), bitorder="little")
        return
    width = arrays[0].type.bit_width // 8
    for array in arrays:
        if len(array):
            yield memoryview(array.buffers()[1])[array.offset * width : (array.offset + len(array)) * width]


def stored_items(array: pa.Array) -> pa.Array:
    """Return the items of fixed-size lists without nulls, in the items' storage type."""
    items = array.flatten()
    while isinstance(items, pa.ExtensionArray):
        items = items.storage
    return items


def _texts(array: pa.Array, path: str, *, nullable: bool) -> tuple[np.ndarray, Buffer]:
    """Return the offsets and bytes of variable-length values. A null becomes an empty value."""
    if nullable:
        _refuse_empty(array, path)
    else:
        _refuse_nulls([array], path)
    if array.null_count:
        array = pc.fill_null(array, "" if is_text(array.type) else b"")
    wide = array.cast(pa.large_binary())
    _, offsets, data = wide.buffers()
    if offsets is None:
        return np.zeros(1, np.int64), b""
    own = np.frombuffer(offsets, np.int64, len(wide) + 1, wide.offset * _OFFSET.itemsize)
    return own, b"" if data is None else memoryview(data)[own[0] : own[-1]]


def _refuse_empty(array: pa.Array, path: str) -> None:
    if pc.any(pc.equal(pc.binary_length(array), 0)).as_py():
        raise UnsupportedError(
            "nullable columns in data files of version 0.1 cannot store empty values",
            where=f"column {path!r}",
            remedy=f"declare the column nullable=False, or write nulls, or {_REMEDY}",
        )


def _refuse_nulls(arrays: Sequence[pa.Array], path: str) -> None:
    if any(array.null_count for array in arrays):
        raise _null_refused(path)


def _not_in_dictionary(value: object, path: str) -> UnsupportedError:
    if value is None:
        return _null_refused(path)
    return UnsupportedError(
        "the dictionary of the column does not contain the value",
        where=f"column {path!r}",
        expected="values of the dictionary that all data files of version 0.1 share, made of the first rows",
        found=repr(value)[:80],
        remedy="write the column without a dictionary, or write data_storage_version='2.2'",
    )


def _null_refused(path: str) -> UnsupportedError:
    return UnsupportedError(
        "data files of version 0.1 cannot store nulls of this type",
        where=f"column {path!r}",
        expected="nulls only in strings, bytes and null columns",
        remedy=f"fill the nulls, or {_REMEDY}",
    )
