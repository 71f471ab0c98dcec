"""The argument `vector_columns`: list columns to write as vectors. Vectors are fixed-size lists.

    {"v": 8}              vectors of 8 numbers, with the data's number type
    {"v": "float32[8]"}   vectors of 8 float32 numbers; also float16 and float64
    {"v": 0}              lists of any length
    ["v"], "v, w"         vectors with the length of the first value that is not null
    "v:8, w:float16[4]"   lengths and types in one string

A dotted path names a struct member. Integers and decimals become float32, except unsigned bytes, which stay bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.arguments import unknown_column
from lance_duck.arrow.types import MAX_INT32, is_any_list, is_any_number, storage_type
from lance_duck.errors import InvalidInputError, WrongTypeError
from lance_duck.wire.column_path import split_path

VectorColumns = Mapping[str, Any] | Sequence[str]
"""The argument `vector_columns`: see the module docstring."""

_ITEMS: Final = {"float16": pa.float16(), "float32": pa.float32(), "float64": pa.float64()}
_FORM: Final = re.compile(r"(\d{1,10})|(float16|float32|float64)\[(\d{1,10})\]")
_EXPECTED: Final = "a length, or as in float16[128]"


@dataclass(frozen=True)
class VectorForm:
    """The form of the vectors of a column.

    Attributes:
        size: Length of each vector. 0 means lists of any length. None means the length of the first value.
        item: Type of the numbers. None keeps the data's type.
    """

    size: int | None = None
    item: pa.DataType | None = None

    @classmethod
    def of(cls, value: object, column: str) -> Self:
        """Parse a length, a form such as "float16[128]", or None.

        Raises:
            InvalidInputError: The value does not have one of these forms.
        """
        if value is None:
            return cls()
        if isinstance(value, cls):
            return value
        match = None if isinstance(value, bool) else _FORM.fullmatch(str(value).strip().lower())
        size = 0 if match is None else int(match[1] or match[3])
        if match is None or size > MAX_INT32:
            raise InvalidInputError("vector_columns", where=f"column {column!r}", expected=_EXPECTED, found=repr(value))
        return cls(size, None if match[1] else _ITEMS[match[2]])

    def __str__(self) -> str:
        """Return the form as a string that `of` can parse. The size must be known."""
        item = next((name for name, type_ in _ITEMS.items() if type_ == self.item), None)
        return str(self.size) if item is None else f"{item}[{self.size}]"

    def type_of(self, source: pa.DataType, column: str) -> pa.DataType:
        """Return the vector type for a source type. The size must be known.

        Raises:
            WrongTypeError: The source is not a list of numbers.
            InvalidInputError: The source contains vectors of a different length.
        """
        assert self.size is not None
        source = storage_type(source)
        if pa.types.is_null(source):
            return pa.list_(self.item or pa.float32(), self.size) if self.size else source
        if not is_any_list(source) or not is_any_number(source.value_type):
            raise WrongTypeError(
                "the column cannot be stored as vectors",
                where=f"column {column!r}",
                expected="lists of numbers",
                found=source,
            )
        if self.size == 0:
            return source
        if pa.types.is_fixed_size_list(source) and source.list_size != self.size:
            raise InvalidInputError(
                "the vectors have the wrong length",
                where=f"column {column!r}",
                expected=self.size,
                found=source.list_size,
            )
        keeps = pa.types.is_floating(source.value_type) or source.value_type == pa.uint8()
        item = self.item or (source.value_type if keeps else pa.float32())
        return pa.list_(source.value_field.with_type(item).with_name("item"), self.size)


def parse_vector_columns(value: object) -> dict[str, VectorForm]:
    """Parse the argument `vector_columns`. None is the same as an empty mapping.

    Raises:
        InvalidInputError: The form of the argument is not supported, or it names a column twice.
    """
    if value is None:
        return {}
    if isinstance(value, Mapping):
        pairs: list[tuple[Any, Any]] = list(value.items())
    elif isinstance(value, str):
        pairs = [_pair(part) for part in value.split(",") if part.strip()]
    elif isinstance(value, Iterable):
        pairs = [(name, None) for name in value]
    else:
        pairs = [(value, None)]
    for name, _ in pairs:
        if not isinstance(name, str) or not name:
            raise WrongTypeError(
                "vector_columns", expected='names, or lengths by name: ["v"] or {"v": 128}', found=repr(value)
            )
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise InvalidInputError("vector_columns names a column twice", found=", ".join(names))
    return {name: VectorForm.of(form, name) for name, form in pairs}


def _pair(text: str) -> tuple[str, str | None]:
    name, colon, form = text.rpartition(":")
    if colon and _FORM.fullmatch(form.strip().lower()):
        return name.strip(), form
    return text.strip(), None


def with_vectors(
    reader: pa.RecordBatchReader, columns: Mapping[str, VectorForm]
) -> tuple[pa.RecordBatchReader, pa.Schema]:
    """Return a reader of the same batches, and their schema with vectors instead of lists.

    To determine unknown lengths, this function reads batches until each of these columns has a value that is not null.
    These batches stay in memory until they are written.

    Raises:
        UnknownColumnError: A column does not exist.
        WrongTypeError: A column does not contain lists of numbers.
        InvalidInputError: A column of unknown length contains only nulls, or a column contains vectors of a different
            length.
    """
    schema = reader.schema
    paths = {name: _path(schema, name) for name in columns}
    unknown = {name for name, form in columns.items() if form.size is None and not _is_vector(schema, paths[name])}
    read: list[pa.RecordBatch] = []
    sizes: dict[str, int] = {}
    for batch in _until(reader, lambda: not unknown - sizes.keys()):
        read.append(batch)
        for name in unknown - sizes.keys():
            size = first_length(values_at(batch, paths[name]))
            if size is not None:
                sizes[name] = size
    for name, form in columns.items():
        size = sizes.get(name, form.size)
        if name in unknown and not size:
            VectorForm(1).type_of(_type_at(schema, paths[name]), name)
            raise InvalidInputError(
                "the vector length cannot be determined",
                where=f"column {name!r}",
                found="only nulls" if size is None else "an empty list first",
                remedy=f'pass vector_columns={{"{name}": length}}',
            )
        if size is not None:
            schema = _replaced(schema, paths[name], VectorForm(size, form.item), name)
    if read:
        reader = pa.RecordBatchReader.from_batches(reader.schema, chain(read, reader))
    return reader, schema


def vectors_by_name(reader: pa.RecordBatchReader) -> tuple[pa.RecordBatchReader, dict[str, VectorForm]]:
    """Return a reader of the same batches, and the list columns that LanceDB would store as float32 vectors.

    These are lists of floats whose column name contains "vector" or "embedding", and lists of integers named "vector".
    The first value in the first non-empty batch determines the length. A column without a value in this batch stays a
    list.
    """
    names = [field.name for field in reader.schema if _is_named_vector(field)]
    names = [name for name in names if reader.schema.names.count(name) == 1]
    if not names:
        return reader, {}
    schema = reader.schema
    read: list[pa.RecordBatch] = []
    read.extend(_until(reader, lambda: any(batch.num_rows for batch in read)))
    sizes = {name: first_length(values_at(read[-1], (name,))) for name in names} if read else {}
    forms = {name: VectorForm(size, pa.float32()) for name, size in sizes.items() if size}
    return pa.RecordBatchReader.from_batches(schema, chain(read, reader)), forms


def _is_named_vector(field: pa.Field) -> bool:
    type_ = storage_type(field.type)
    if not is_any_list(type_) or pa.types.is_fixed_size_list(type_):
        return False
    name = field.name.lower()
    if pa.types.is_integer(type_.value_type):
        return bool(name == "vector")
    return bool(pa.types.is_floating(type_.value_type)) and ("vector" in name or "embedding" in name)


def check_vectors(columns: Mapping[str, VectorForm], schema: pa.Schema) -> None:
    """Check vector lengths against the columns of an existing table. The table's types take precedence.

    Raises:
        UnknownColumnError: A column does not exist.
        InvalidInputError: The table stores vectors of a different length in a column, or lists that are not vectors.
    """
    for name, form in columns.items():
        type_ = _type_at(schema, _path(schema, name))
        size = type_.list_size if pa.types.is_fixed_size_list(type_) else 0
        if size != form.size and not (form.size is None and size):
            raise InvalidInputError(
                "the vectors do not have the length of the table's column",
                where=f"column {name!r}",
                expected=type_,
                found="vector_columns" if form.size is None else f"vector_columns: {form.size}",
                remedy=None if size else "cast the table's column to vectors with alter_columns",
            )


def first_length(values: pa.Array) -> int | None:
    """Return the length of the first list that is not null, or None if all are null."""
    if not is_any_list(values.type):
        return None
    lengths = pc.list_value_length(values).drop_null()
    return lengths[0].as_py() if len(lengths) else None


def values_at(batch: pa.RecordBatch, path: Sequence[str]) -> pa.Array:
    """Return a column or a struct member, null if the struct is null. Extension arrays become their storage."""
    array = batch.column(path[0])
    for name in path[1:]:
        array = array.flatten()[array.type.get_field_index(name)]
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def _until(reader: pa.RecordBatchReader, is_done: Callable[[], bool]) -> Iterator[pa.RecordBatch]:
    """Yield batches until the function returns true. The function is called before each batch."""
    while not is_done():
        try:
            yield reader.read_next_batch()
        except StopIteration:
            return


def _path(schema: pa.Schema, name: str) -> tuple[str, ...]:
    """Return the path of a column or a struct member, as names."""
    path = (name,) if name in schema.names else tuple(split_path(name))
    fields: Any = schema
    for step in path:
        names = [field.name for field in fields]
        if names.count(step) != 1:
            raise unknown_column(name, schema.names, "vector_columns")
        type_ = fields.field(names.index(step)).type
        fields = type_ if pa.types.is_struct(type_) else ()
    return path


def _type_at(schema: pa.Schema, path: Sequence[str]) -> pa.DataType:
    type_ = schema.field(path[0]).type
    for step in path[1:]:
        type_ = type_.field(step).type
    return storage_type(type_)


def _is_vector(schema: pa.Schema, path: Sequence[str]) -> bool:
    return bool(pa.types.is_fixed_size_list(_type_at(schema, path)))


def _replaced(schema: pa.Schema, path: Sequence[str], form: VectorForm, name: str) -> pa.Schema:
    index = schema.get_field_index(path[0])
    return schema.set(index, _with_form(schema.field(index), path[1:], form, name))


def _with_form(field: pa.Field, path: Sequence[str], form: VectorForm, name: str) -> pa.Field:
    if not path:
        type_ = form.type_of(field.type, name)
        unchanged = type_ == storage_type(field.type)
        return field if unchanged else field.with_type(type_)
    members = [_with_form(f, path[1:], form, name) if f.name == path[0] else f for f in field.type]
    return field.with_type(pa.struct(members))
