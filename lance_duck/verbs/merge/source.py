"""The source of a merge. It is read once for all attempts, and kept in memory or, if large, in a temporary file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck import lazy
from lance_duck.encoding.arrow.gather import combined, take_rows
from lance_duck.errors import DataMismatchError, LanceDuckError, StoreError
from lance_duck.file.write.contract import num_bytes
from lance_duck.store import delete_temporary
from lance_duck.verbs.costs import BYTES_AT_ONCE, JOINED_SOURCE_BYTES, ROWS_AT_ONCE
from lance_duck.verbs.rows.keys import KeyIndex
from lance_duck.wire.schema import EMBEDDING_FUNCTIONS, Field, Schema
from lance_duck.write.coerce import coerce
from lance_duck.write.inputs import reading

if TYPE_CHECKING:
    from lance_duck import embedders
else:
    embedders = lazy.modules(globals(), "lance_duck", "embedders")

IN_MEMORY: Final = 128 << 20
"""Maximum source size kept in memory, in bytes. Larger sources are written to a temporary file."""


class MergeSource:
    """Rows to merge into a table, cast to its column types.

    Attributes:
        table: The rows.
        schema: The table columns that the rows have.
        missing: The table columns that the rows lack.
        partial: Structs with missing fields in the rows.

    Args:
        data: Data in any form that a write accepts.
        schema: Schema of the table.
        on: Key columns. The data must contain them.
        arrow_schema: Schema for data that does not include one.
        memory_limit: Memory limit for the rows, in bytes. Defaults to `IN_MEMORY`, and `BYTES_AT_ONCE` per batch.

    Raises:
        InvalidInputError: The data has an unknown column, lacks a key, or has values that do not fit.
    """

    def __init__(
        self,
        data: Any,
        schema: Schema,
        on: Sequence[str],
        arrow_schema: pa.Schema | None = None,
        memory_limit: int | None = None,
    ) -> None:
        self._kept_bytes = IN_MEMORY if memory_limit is None else min(IN_MEMORY, memory_limit // 4)
        self._picked_bytes = BYTES_AT_ONCE if memory_limit is None else min(BYTES_AT_ONCE, memory_limit // 4)
        with reading(data, arrow_schema) as given:
            reader = embedders.with_embeddings(given, schema) if EMBEDDING_FUNCTIONS in schema.metadata else given
            self._found = reader.schema
            _check_names(reader.schema.names, schema, on)
            self._on = tuple(on)
            self._take(schema)
            self._file: _Spill | None = None
            self.table = self._keep(coerce(reader, self.schema))

    def fit(self, schema: Schema) -> None:
        """Cast the rows to the schema of a newer table version.

        Raises:
            InvalidInputError: A source column was dropped, or its values do not fit the new type.
        """
        self._take(schema)
        target = _arrow(self.schema)
        if not self.table.schema.equals(target):
            self.table = pa.Table.from_batches(coerce(self.table.to_batches(), self.schema), target)
            self.__dict__.pop("keys", None)

    def _take(self, schema: Schema) -> None:
        names = self._found.names
        _check_names(names, schema, self._on)
        self.schema = Schema(tuple(f for f in schema.fields if f.name in names), schema.metadata)
        self.missing: tuple[Field, ...] = tuple(f for f in schema.fields if f.name not in names)
        self.partial: tuple[Field, ...] = tuple(
            field for field in self.schema.fields if lacks_members(field, self._found.field(field.name).type)
        )

    @property
    def is_whole(self) -> bool:
        """Whether the rows have all columns and all their struct fields."""
        return not self.missing and not self.partial

    def completed(self, field: Field, values: pa.Array, old_values: pa.Array) -> pa.Array:
        """Fill in the missing fields of a struct column from the table's rows.

        Args:
            field: One of `partial`.
            values: The column in the source rows.
            old_values: The column in the table rows, with the table's type.
        """
        return _completed(field, self._found.field(field.name).type, values, old_values)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def keys(self) -> KeyIndex:
        """The keys of the rows."""
        return KeyIndex(self.table.select(list(self._on)).columns, self._on)

    def key_columns(self, rows: NDArray[np.int64]) -> pa.Table:
        """Return the key columns of some rows."""
        return take_rows(self.table.select(list(self._on)), rows)

    def key_text(self, row: int) -> str:
        """Return the key of a row, formatted for error messages."""
        values = self.table.select(list(self._on)).slice(row, 1).to_pylist()[0]
        return ", ".join(f"{name} = {value!r}" for name, value in values.items())

    @cached_property
    def rows_at_once(self) -> int:
        """Number of rows taken per batch. Wide rows use smaller batches. The minimum is 1."""
        each = int(self.table.nbytes) // max(1, len(self))
        return max(1, min(ROWS_AT_ONCE, self._picked_bytes // max(1, each)))

    def rows(self, rows: NDArray[np.int64]) -> pa.Table:
        """Return rows by row number, in any order."""
        if len(rows) and int(rows[-1]) - int(rows[0]) == len(rows) - 1 and bool(np.all(np.diff(rows) == 1)):
            return self.table.slice(int(rows[0]), len(rows))
        return take_rows(self.table, rows)

    def close(self) -> None:
        """Delete the temporary file."""
        if self._file is not None:
            self._file.delete()

    def _keep(self, batches: Iterable[pa.RecordBatch]) -> pa.Table:
        pending: list[pa.RecordBatch] = []
        size = 0
        batches = iter(batches)
        for batch in batches:
            pending.append(batch)
            size += num_bytes(batch)
            if size > self._kept_bytes:
                self._file = _Spill()
                return self._file.keep(_chain(pending, batches))
        table = pa.Table.from_batches(pending, _arrow(self.schema))
        return combined(table) if size <= JOINED_SOURCE_BYTES else table


class _Spill:
    """A temporary Arrow file."""

    def __init__(self) -> None:
        handle, self._path = tempfile.mkstemp(prefix="lance_duck-merge-", suffix=".arrow")
        os.close(handle)

    def keep(self, batches: Iterator[pa.RecordBatch]) -> pa.Table:
        """Write the batches and map them into memory."""
        try:
            first = next(batches)
            with pa.OSFile(self._path, "wb") as sink, pa.ipc.new_file(sink, first.schema) as file:
                file.write_batch(first)
                for batch in batches:
                    file.write_batch(batch)
            with pa.memory_map(self._path) as source:
                return pa.ipc.open_file(source).read_all()
        except LanceDuckError:
            self.delete()
            raise
        except OSError as error:
            self.delete()
            raise StoreError(
                "the source of a merge cannot be written to a temporary file", where=self._path, found=error
            ) from error
        except BaseException:
            self.delete()
            raise

    def delete(self) -> None:
        """Delete the file. Memory mapped from it stays readable."""
        delete_temporary(self._path)


def _arrow(schema: Schema) -> pa.Schema:
    return pa.schema([(f.name, f.storage_type) for f in schema.fields])


def lacks_members(field: Field, type_: pa.DataType) -> bool:
    """Return whether a struct type lacks fields of the table's struct. Structs inside lists are ignored."""
    if not _has_members(field, type_):
        return False
    names = [type_.field(i).name for i in range(type_.num_fields)]
    return any(
        child.name not in names or lacks_members(child, type_.field(child.name).type) for child in field.children
    )


def _has_members(field: Field, type_: pa.DataType) -> bool:
    return field.logical_type == "struct" and not field.blob_version and bool(pa.types.is_struct(type_))


def _completed(field: Field, type_: pa.DataType, values: pa.Array, old_values: pa.Array) -> pa.Array:
    if not _has_members(field, type_):
        return values
    names = [type_.field(i).name for i in range(type_.num_fields)]
    members = []
    for i, child in enumerate(field.children):
        old = pc.struct_field(old_values, [i])
        if child.name in names:
            old = _completed(child, type_.field(child.name).type, pc.struct_field(values, [i]), old)
        members.append(old)
    mask = values.is_null() if values.null_count else None
    return pa.StructArray.from_arrays(members, fields=list(field.storage_type), mask=mask)


def _chain(batches: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    while batches:
        yield batches.pop(0)
    yield from rest


def _check_names(names: Sequence[str], schema: Schema, on: Sequence[str]) -> None:
    where = "source of a merge"
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataMismatchError("duplicate column names", where=where, found=", ".join(repeated))
    unknown = [name for name in names if name not in schema.names]
    if unknown:
        raise DataMismatchError(
            "the source has columns that the table does not have",
            where=where,
            expected=f"columns from {', '.join(schema.names)}",
            found=", ".join(unknown),
        )
    lost = [name for name in on if name not in names]
    if lost:
        raise DataMismatchError(
            "the source does not have the key columns", where=where, expected=", ".join(on), found=", ".join(names)
        )
