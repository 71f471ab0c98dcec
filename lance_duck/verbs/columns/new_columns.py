"""Sources of values for new columns: SQL, a function, a stream, a join, or nulls."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.arguments import unknown_column
from lance_duck.encoding.arrow.dictionaries import concatenate, holds_dictionaries
from lance_duck.encoding.arrow.gather import combined
from lance_duck.errors import (
    CorruptError,
    DataMismatchError,
    InvalidInputError,
    LanceDuckError,
    UnsupportedError,
)
from lance_duck.scan.predicate.ordering import comparable, one_zero_one_nan
from lance_duck.scan.table_scan import TableScan
from lance_duck.verbs.columns.files import LiveRows
from lance_duck.verbs.columns.schema_change import check_new_names, declares_nothing
from lance_duck.verbs.columns.udf import BatchUDF, BatchUDFCheckpoint, as_batch
from lance_duck.wire import paths
from lance_duck.wire.fragment import DataFile, Fragment
from lance_duck.write.inputs import reading, to_reader

_NULL: Final = re.compile(r"null|null\s*::\s*[\w\s(),]+|cast\s*\(\s*null\s+as\s+[\w\s(),]+\)", re.IGNORECASE)
"""Pattern of expressions that are null in every row."""


class NewColumns(Protocol):
    """A source of values for new columns."""

    @property
    def repeatable(self) -> bool:
        """Whether the values can be computed again for a newer table version."""

    def schema(self, table: TableScan) -> pa.Schema:
        """Return the new columns. Raises InvalidInputError if they cannot be computed for this table."""

    def keeps(self, key: str) -> bool:
        """Return whether the new columns keep a field metadata key of the schema."""

    def batches(self, table: TableScan, fragment: Fragment) -> Iterable[pa.RecordBatch] | None:
        """Return the values for a fragment's live rows, or None if all are null."""

    def kept(self, table: TableScan, fragment: Fragment) -> DataFile | None:
        """Return a fragment's file from the checkpoint of an earlier, failed change, or None."""

    def keep(self, fragment: Fragment, file: DataFile) -> bool:
        """Checkpoint a fragment's file. Returns whether it is kept if the change fails."""

    def finish(self) -> None:
        """Finish after the last fragment. Raises InvalidInputError if values are left over."""

    def committed(self) -> None:
        """Delete checkpoints after the commit."""


class _Plain:
    """Base class of repeatable sources without checkpoints. Field metadata that declares a key is not kept."""

    repeatable = True

    def keeps(self, key: str) -> bool:
        return declares_nothing(key)

    def kept(self, table: TableScan, fragment: Fragment) -> DataFile | None:
        return None

    def keep(self, fragment: Fragment, file: DataFile) -> bool:
        return False

    def finish(self) -> None:
        return

    def committed(self) -> None:
        return


@dataclass
class NullColumns(_Plain):
    """New columns that are null. Only the schema changes."""

    arrow: pa.Schema

    def schema(self, table: TableScan) -> pa.Schema:
        """See `NewColumns`."""
        for field in self.arrow:
            if not field.nullable:
                raise InvalidInputError(
                    "new columns without values must be nullable",
                    where=field.name,
                    found="a field that is not nullable",
                )
        return self.arrow

    def keeps(self, key: str) -> bool:
        """Always True: the caller chose this metadata for the new columns."""
        return True

    def batches(self, table: TableScan, fragment: Fragment) -> None:
        """See `NewColumns`."""
        return


class SqlColumns(_Plain):
    """New columns from SQL expressions on the table's columns.

    Args:
        expressions: SQL expressions by new column name.
        batch_size: Number of rows per computed batch.
    """

    _rows: LiveRows

    def __init__(self, expressions: Mapping[str, str], batch_size: int | None = None) -> None:
        self._expressions = expressions
        self._batch_size = batch_size

    def schema(self, table: TableScan) -> pa.Schema:
        """See `NewColumns`."""
        for name, text in self._expressions.items():
            if not isinstance(name, str) or not isinstance(text, str):
                raise InvalidInputError(
                    "expressions must be SQL strings by column name", where="add_columns", found=f"{name!r}: {text!r}"
                )
        self._rows = LiveRows(table, self._expressions, self._batch_size)
        schema = self._rows.schema.remove_metadata()
        for name, type_ in zip(schema.names, schema.types, strict=True):
            is_column = self._expressions[name] in table.snapshot.schema.names
            if holds_dictionaries(type_) and not is_column:  # DuckDB returns dictionaries only for ENUMs
                raise UnsupportedError(
                    "Lance cannot store DuckDB type ENUM",
                    where=f"column {name!r}",
                    remedy="cast it in the expression, for example to VARCHAR",
                )
        return schema

    def keeps(self, key: str) -> bool:
        """Always False: metadata in the result describes the column that an expression reads, not the new column."""
        return False

    def batches(self, table: TableScan, fragment: Fragment) -> Iterable[pa.RecordBatch] | None:
        """See `NewColumns`."""
        if all(_NULL.fullmatch(text.strip()) for text in self._expressions.values()):
            return None
        batches: Iterable[pa.RecordBatch] = self._rows.of(fragment)
        return batches


class FunctionColumns(_Plain):
    """New columns from a function of table batches.

    Args:
        function: See `batch_udf`.
        read_columns: Columns passed to the function, optionally with `_rowid` and `_rowaddr`. None passes all columns.
        batch_size: Maximum number of rows per batch. None is unlimited.
    """

    _rows: LiveRows

    def __init__(self, function: BatchUDF, read_columns: Sequence[str] | None, batch_size: int | None) -> None:
        self._function = function
        self._columns = read_columns
        self._batch_size = batch_size
        self._schema = function.output_schema

    def schema(self, table: TableScan) -> pa.Schema:
        self._rows = LiveRows(table, self._columns, self._batch_size)
        if self._schema is None:
            self._schema = as_batch(self._function(self._sample(table)), None, None).schema
        return self._schema.remove_metadata()

    def keeps(self, key: str) -> bool:
        return self._function.output_schema is not None

    def batches(self, table: TableScan, fragment: Fragment) -> Iterator[pa.RecordBatch]:
        cache = self._function.cache
        for index, batch in enumerate(self._rows.of(fragment)):
            if cache is None:
                yield self._call(batch, self._schema)
                continue
            info = BatchUDFCheckpoint.BatchInfo(fragment.id, index)
            result = cache.get_batch(info)
            if result is None or result.num_rows != batch.num_rows:
                result = self._call(batch, self._schema)
                cache.insert_batch(info, result)
            yield result

    def kept(self, table: TableScan, fragment: Fragment) -> DataFile | None:
        cache = self._function.cache
        text = None if cache is None else cache.get_fragment(fragment.id)
        if text is None:
            return None
        file = _file_from_json(text, str(cache.path) if cache else "")
        try:
            data_file = table.snapshot.data_file(file)
        except LanceDuckError:
            return None
        return file if data_file.num_rows == table.snapshot.physical_rows(fragment) else None

    def keep(self, fragment: Fragment, file: DataFile) -> bool:
        if self._function.cache is None:
            return False
        self._function.cache.insert_fragment(fragment.id, json.dumps(asdict(file)))
        return True

    def committed(self) -> None:
        if self._function.cache is not None:
            self._function.cache.cleanup()

    def _call(self, batch: pa.RecordBatch, expected: pa.Schema) -> pa.RecordBatch:
        return as_batch(self._function(batch), batch.num_rows, expected)

    def _sample(self, table: TableScan) -> pa.RecordBatch:
        for fragment in table.snapshot.fragments:
            for batch in self._rows.of(fragment):
                if batch.num_rows:
                    return batch.slice(0, 1)
        raise InvalidInputError(
            "an empty table needs an output_schema", where="add_columns", remedy="pass output_schema to batch_udf"
        )


class StreamColumns(_Plain):
    """New columns from a stream, in scan order."""

    repeatable = False

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self._reader = reader
        self._left: pa.RecordBatch | None = None

    def schema(self, table: TableScan) -> pa.Schema:
        return self._reader.schema

    def batches(self, table: TableScan, fragment: Fragment) -> Iterator[pa.RecordBatch]:
        remaining = table.snapshot.num_rows(fragment)
        while remaining:
            batch = self._next()
            if batch is None:
                return
            piece = batch.slice(0, remaining)
            self._left = batch.slice(remaining)
            remaining -= piece.num_rows
            yield piece

    def finish(self) -> None:
        rest = self._next()
        if rest is not None:
            raise DataMismatchError("the new columns have more values than the table has rows", where="add_columns")

    def _next(self) -> pa.RecordBatch | None:
        source = chain([] if self._left is None else [self._left], self._reader)
        self._left = None
        return next((batch for batch in source if batch.num_rows), None)


class JoinedColumns(_Plain):
    """New columns from other data, joined by key.

    Rows without a matching key get nulls. If several rows match, the last one wins.

    Args:
        data: The other data, in memory.
        left_on: Column of the table, `_rowid` or `_rowaddr`.
        right_on: Column of the data.
    """

    _rows: LiveRows

    def __init__(self, data: pa.Table, left_on: str, right_on: str) -> None:
        if right_on not in data.column_names:
            raise unknown_column(right_on, data.column_names, "data")
        repeated = [name for name, count in Counter(data.column_names).items() if count > 1]
        if repeated:
            raise InvalidInputError(
                "two columns have the same name", where="data", found=repeated[0], remedy="rename one"
            )
        data = combined(data)
        self._left_on = left_on
        self._key = concatenate(data.column(right_on).chunks)
        self._values = data.drop_columns([right_on])
        # If keys are equal, the last row wins. `index_in` finds the first one, so the keys are reversed.
        self._reversed = _equal_bits(self._key.take(pa.array(range(len(self._key) - 1, -1, -1), pa.int64())))

    def schema(self, table: TableScan) -> pa.Schema:
        """See `NewColumns`."""
        self.check_key(table)
        if not self._values.num_columns:
            raise InvalidInputError(
                "the data does not have columns to merge", where="data", expected="columns other than the key"
            )
        check_new_names(table.snapshot.schema, self._values.column_names)
        return self._values.schema

    def batches(self, table: TableScan, fragment: Fragment) -> Iterator[pa.RecordBatch]:
        """See `NewColumns`."""
        for batch in self._rows.of(fragment):
            yield self.taken(self.matches(batch.column(0)))

    def check_key(self, table: TableScan) -> None:
        """Raise InvalidInputError if the table lacks the key, or the key has a different type in the data."""
        self._rows = LiveRows(table, [self._left_on])
        key_type = self._rows.schema.field(0).type
        if key_type != self._key.type:
            raise InvalidInputError(
                "the key columns have different types",
                where=f"merge on {self._left_on!r}",
                expected=key_type,
                found=self._key.type,
            )

    def taken(self, rows: pa.Array) -> pa.RecordBatch:
        """Return the non-key columns of the data at these row numbers. A null number returns a row of nulls."""
        values = self._values.take(rows)
        arrays = [column.combine_chunks() for column in values.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=values.schema)

    def matches(self, keys: pa.Array) -> pa.Array:
        """Return the row number in the data for each key, or null for keys without a match."""
        try:
            positions = pc.index_in(_equal_bits(keys), self._reversed)
        except (pa.ArrowException, NotImplementedError) as error:
            raise InvalidInputError(f"keys of type {keys.type} cannot be compared", found=str(error)) from error
        return pc.subtract(len(self._key) - 1, positions)


def _equal_bits(keys: pa.Array) -> pa.Array:
    """Return keys in which equal floats have equal bits."""
    return one_zero_one_nan(comparable(keys)) if pa.types.is_floating(keys.type) else keys


def new_columns(
    transforms: Any,
    read_columns: Sequence[str] | None = None,
    reader_schema: pa.Schema | None = None,
    batch_size: int | None = None,
    *,
    opened: ExitStack,
) -> NewColumns:
    """Return the source of values for an argument of `add_columns`. If it reads a stream, `opened` closes it.

    Raises:
        InvalidInputError: The argument is not of a supported kind.
    """
    if isinstance(transforms, pa.Field):
        return NullColumns(pa.schema([transforms]))
    if isinstance(transforms, list | tuple) and transforms and all(isinstance(t, pa.Field) for t in transforms):
        return NullColumns(pa.schema(list(transforms)))
    if isinstance(transforms, pa.Schema):
        return NullColumns(transforms)
    if isinstance(transforms, BatchUDF):
        return FunctionColumns(transforms, read_columns, batch_size)
    if isinstance(transforms, dict):
        return SqlColumns(transforms, batch_size)
    if callable(transforms) and not hasattr(transforms, "__arrow_c_stream__"):
        return FunctionColumns(BatchUDF(transforms), read_columns, batch_size)
    return StreamColumns(to_reader(transforms, reader_schema, opened))


def joined_columns(data: Any, left_on: str, right_on: str | None, schema: pa.Schema | None) -> JoinedColumns:
    """Return the source of values for the arguments of `merge`."""
    with reading(data, schema) as reader:
        return JoinedColumns(reader.read_all(), left_on, left_on if right_on is None else right_on)


def _file_from_json(text: str, where: str) -> DataFile:
    try:
        raw: dict[str, Any] = json.loads(text)
        lists: dict[str, Callable[[Any], Any]] = dict.fromkeys(("fields", "column_indices", "file_version"), tuple)
        file = DataFile(**{name: lists.get(name, lambda value: value)(value) for name, value in raw.items()})
        paths.data_file(file.path)
        return file
    except (ValueError, TypeError) as error:
        raise CorruptError("a fragment in the checkpoint is corrupt", where=where, remedy="delete the file") from error


__all__ = [
    "JoinedColumns",
    "NewColumns",
    "NullColumns",
    "SqlColumns",
    "joined_columns",
    "new_columns",
]
