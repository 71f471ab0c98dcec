"""Converts any data that users pass to a stream of batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from inspect import signature
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads

from lance_duck.errors import InvalidInputError, LanceDuckError, UnsupportedError, WrongTypeError
from lance_duck.wire.schema import BLOB_KEY, Field
from lance_duck.wire.schema_write import schema_from_arrow
from lance_duck.write.relations import is_stopped, relation_reader

ROWS_AT_ONCE: Final = 8192
"""Batch size in rows, if the source does not determine it."""

_KINDS: Final = (
    "a pyarrow Table, RecordBatch, RecordBatchReader, Dataset or Scanner, batches with their schema, a list of dicts, "
    "a dict of arrays, a pandas or polars frame, a DuckDB relation, a table of this package, or anything with "
    "__arrow_c_stream__ or __arrow_c_array__"
)

_WIDE_REMEDY: Final = "cast it to Decimal(38, 0), Int64 or String"
_POLARS_REMEDIES: Final = {
    "Object": "convert it to a type of polars, for example with map_elements(..., return_dtype=...)",
    "Int128": _WIDE_REMEDY,
    "UInt128": _WIDE_REMEDY,
}
"""Remedies for types that polars cannot export to Arrow, or exports as memory addresses."""
_ERRORS: Final = (pa.ArrowException, TypeError, ValueError, KeyError, OverflowError)
"""Errors that conversions to Arrow raise."""


@contextmanager
def reading(data: Any, schema: pa.Schema | None = None) -> Iterator[pa.RecordBatchReader]:
    """Open data of any supported kind as a stream of batches: see `to_reader`.

    At the end, streams that this function opened are closed. A stream that the caller passed stays open.
    """
    with ExitStack() as opened:
        yield to_reader(data, schema, opened)


def to_reader(data: Any, schema: pa.Schema | None = None, opened: ExitStack | None = None) -> pa.RecordBatchReader:
    """Return data of any supported kind as a stream of batches. The data is read lazily if its kind allows it.

    Args:
        data: A pyarrow Table, RecordBatch, RecordBatchReader, Dataset or Scanner; an iterable of batches or a function
            without arguments that returns one; a list of dicts; a dict of arrays (2-dimensional numpy arrays are
            vectors); a pandas DataFrame, a polars DataFrame or LazyFrame; a DuckDB relation; anything with
            `__arrow_c_stream__` or `__arrow_c_array__`.
        schema: Schema of iterables. Default: schema of the first batch. Batches with equal column names are cast to
            its types. Python values, numpy arrays and pandas columns are converted to its types. Other Arrow data is
            not changed.
        opened: Stack that closes the streams opened here. Until then, a relation keeps DuckDB's connection busy.

    Raises:
        InvalidInputError: The kind of data is not supported, or values cannot be converted.
        UnsupportedError: A column of a DuckDB relation has a type that Lance does not support.
    """
    try:
        return _to_reader(data, schema, ExitStack() if opened is None else opened)
    except LanceDuckError:
        raise
    except _ERRORS as error:
        raise InvalidInputError("the data cannot be converted to Arrow", where="data", found=error) from error


def _to_reader(data: Any, schema: pa.Schema | None, opened: ExitStack) -> pa.RecordBatchReader:
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.Table):
        return data.to_reader()
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    if isinstance(data, pads.Scanner):
        return data.to_reader()
    if isinstance(data, pads.Dataset):
        return _from_dataset(data)
    module = type(data).__module__.partition(".")[0]
    convert = _BY_MODULE.get((module, type(data).__name__))
    if convert is not None:
        return convert(data, schema)
    if (module, type(data).__name__) in _RELATIONS:
        return _from_relation(data, opened)
    if isinstance(data, Mapping):
        return _from_columns(data, schema)
    if hasattr(data, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(data)
        opened.callback(reader.close)
        return reader
    if hasattr(data, "__arrow_c_array__"):
        return _to_reader(pa.record_batch(data), schema, opened)
    if callable(data):
        return _to_reader(data(), schema, opened)
    if isinstance(data, Iterable) and not isinstance(data, str | bytes):
        return _from_items(data, schema, opened)
    remedy = None
    if isinstance(data, str | os.PathLike):
        file = str(data)
        reader = next((name for ending, name in _READERS.items() if ending in file.lower()), "read_csv")
        remedy = f"read the file first: write_dataset(duckdb.{reader}({file!r}), uri)"
    raise WrongTypeError(
        "this type of data cannot be written", where="data", expected=_KINDS, found=type(data).__name__, remedy=remedy
    )


_READERS: Final = {".parquet": "read_parquet", ".json": "read_json", ".ndjson": "read_json", ".jsonl": "read_json"}
"""DuckDB's functions that read a file, by its ending."""


def _from_dataset(data: pads.Dataset) -> pa.RecordBatchReader:
    """Read a dataset as batches. Blobs of a Lance table are read as bytes, and their fields are marked as blobs."""
    if "nearest" not in signature(data.scanner).parameters:  # only scanners of Lance tables have this parameter
        return data.scanner().to_reader()
    fields = schema_from_arrow(data.schema).fields
    if not any(below.blob_version for f in fields for below in f.walk()):
        return data.scanner().to_reader()
    reader = data.scanner(blob_handling="all_binary").to_reader()
    marked = [_marked(arrow_field, f) for arrow_field, f in zip(reader.schema, fields, strict=True)]
    schema = pa.schema(marked, reader.schema.metadata)
    batches = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in reader)
    return pa.RecordBatchReader.from_batches(schema, batches)


def _marked(arrow_field: pa.Field, field: Field) -> pa.Field:
    """Return the Arrow field of a scan. Bytes that were stored as blobs are marked as blobs."""
    kind = arrow_field.type
    if field.blob_version:
        return arrow_field.with_metadata({**(arrow_field.metadata or {}), BLOB_KEY: "true"})
    if pa.types.is_struct(kind):
        return arrow_field.with_type(
            pa.struct([_marked(kind.field(i), child) for i, child in enumerate(field.children)])
        )
    if field.children and (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        make = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return arrow_field.with_type(make(_marked(kind.value_field, field.children[0])))
    return arrow_field


def _from_items(items: Iterable[Any], schema: pa.Schema | None, opened: ExitStack) -> pa.RecordBatchReader:
    """Read an iterable of batches, of tables, or of rows as dicts."""
    if isinstance(items, Sequence) and items and all(isinstance(item, Mapping) for item in items):
        return _from_rows(items, schema)
    rest = iter(items)
    first = next(rest, None)
    if first is None:
        if schema is None:
            raise InvalidInputError("an empty list of batches needs a schema", where="data", remedy="pass schema=")
        return pa.RecordBatchReader.from_batches(schema, [])
    if isinstance(first, Mapping):
        return _from_rows([first, *rest], schema)
    batches = _batches(chain([first], rest))
    opened.callback(batches.close)
    if schema is not None:
        return pa.RecordBatchReader.from_batches(schema, (_cast(batch, schema) for batch in batches))
    head = next(batches, None)
    schema = first.schema if head is None else head.schema
    return pa.RecordBatchReader.from_batches(schema, chain([] if head is None else [head], batches))


def _batches(items: Iterator[Any]) -> Generator[pa.RecordBatch, None, None]:
    for item in items:
        if isinstance(item, pa.RecordBatch):
            yield item
        elif isinstance(item, pa.Table):
            yield from item.to_batches()
        elif hasattr(item, "__arrow_c_stream__") or hasattr(item, "__arrow_c_array__"):
            with reading(item) as reader:
                yield from reader
        else:
            raise InvalidInputError(
                "the batches contain another object", where="data", expected="a RecordBatch", found=type(item).__name__
            )


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast a batch to a schema if only the types differ. Otherwise, return the batch unchanged."""
    if batch.schema.types == schema.types or batch.schema.names != schema.names:
        return batch
    return pa.RecordBatch.from_arrays(
        [_column(f.name, batch.column(place), f.type) for place, f in enumerate(schema)], schema=schema
    )


def _from_rows(rows: Sequence[Mapping[str, Any]], schema: pa.Schema | None) -> pa.RecordBatchReader:
    if not all(isinstance(row, Mapping) for row in rows):
        raise InvalidInputError("the list contains objects that are not rows", where="data", expected="dicts only")
    if schema is None:
        names = dict.fromkeys(name for row in rows for name in row)
        return _from_columns({name: [row.get(name) for row in rows] for name in names}, None)
    unknown = {name for row in rows for name in row} - set(schema.names)
    if unknown:
        raise InvalidInputError(
            "the data has columns that the schema does not have",
            where="data",
            expected=schema.names,
            found=sorted(unknown),
        )
    return _from_columns({name: [row.get(name) for row in rows] for name in schema.names}, schema)


def _from_columns(columns: Mapping[str, Any], schema: pa.Schema | None) -> pa.RecordBatchReader:
    if schema is None:
        return pa.table({name: _column(name, values, None) for name, values in columns.items()}).to_reader()
    unknown = set(columns) - set(schema.names)
    if unknown:
        raise InvalidInputError(
            "the data has columns that the schema does not have",
            where="data",
            expected=schema.names,
            found=sorted(unknown),
        )
    fields = [schema.field(name) for name in columns]
    arrays = [_column(f.name, columns[f.name], f.type) for f in fields]
    return pa.table(arrays, schema=pa.schema(fields, schema.metadata)).to_reader()


def _column(name: str, values: Any, arrow_type: pa.DataType | None) -> pa.Array | pa.ChunkedArray:
    """Convert the values of a column. If `arrow_type` is None, the type is inferred from the values."""
    try:
        if isinstance(values, np.ndarray) and values.ndim == 2:
            items = pa.array(np.ascontiguousarray(values).reshape(-1))
            vectors = pa.FixedSizeListArray.from_arrays(items, values.shape[1])
            return vectors if arrow_type is None else vectors.cast(arrow_type)
        if isinstance(values, pa.Array | pa.ChunkedArray):
            return values if arrow_type is None or values.type == arrow_type else values.cast(arrow_type)
        return pa.array(values, arrow_type)
    except _ERRORS as error:
        raise InvalidInputError(
            "Arrow cannot represent these values",
            where=f"column {name!r}",
            expected=arrow_type,
            found=error,
            remedy="convert them to one type that can hold them all, for example Decimal or str",
        ) from error


def _from_pandas(frame: Any, schema: pa.Schema | None) -> pa.RecordBatchReader:
    try:
        return pa.Table.from_pandas(frame, schema=schema).to_reader()
    except _ERRORS:
        for place, name in enumerate(frame.columns):  # only some of pyarrow's errors name the column
            types = {} if schema is None else dict(zip(schema.names, schema.types, strict=True))
            _column(str(name), frame.iloc[:, place], types.get(str(name)))
        raise


def _from_polars(frame: Any, schema: pa.Schema | None) -> pa.RecordBatchReader:
    """Return the batches of a polars frame. A LazyFrame is streamed if polars supports it.

    Raises:
        UnsupportedError: A column has a type that Arrow does not support.
    """
    for name, whole in frame.collect_schema().items():
        pending = [whole]
        while pending:
            type_ = pending.pop()
            remedy = _POLARS_REMEDIES.get(str(type_))
            if remedy is not None:
                inside = "" if type_ is whole else f" in {whole}"
                raise UnsupportedError(
                    f"Lance cannot store polars type {type_}{inside}", where=f"column {name!r}", remedy=remedy
                )
            inner = getattr(type_, "inner", None)
            pending += [field.dtype for field in getattr(type_, "fields", ())] if inner is None else [inner]
    if hasattr(frame, "collect_batches"):
        return _from_lazy(frame)
    return pa.RecordBatchReader.from_stream(frame.collect(engine="streaming") if hasattr(frame, "collect") else frame)


def _from_lazy(frame: Any) -> pa.RecordBatchReader:
    pieces = iter(frame.collect_batches(chunk_size=ROWS_AT_ONCE, maintain_order=True))
    empty = pa.RecordBatchReader.from_stream(frame.collect_schema().to_frame()).schema
    return pa.RecordBatchReader.from_batches(
        empty, (batch for piece in pieces for batch in pa.RecordBatchReader.from_stream(piece))
    )


def _from_relation(relation: Any, opened: ExitStack) -> pa.RecordBatchReader:
    """Run a DuckDB relation, and return its batches as a stream."""
    reader = relation_reader(relation, ROWS_AT_ONCE, opened)

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from reader
        except (OSError, RuntimeError, pa.ArrowException) as error:
            if is_stopped(error):
                raise KeyboardInterrupt from error
            if isinstance(error, LanceDuckError):
                raise
            raise InvalidInputError(
                "the rows of the DuckDB relation cannot be read", where="data", found=error
            ) from error

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


_BY_MODULE: Final[Mapping[tuple[str, str], Callable[[Any, pa.Schema | None], pa.RecordBatchReader]]] = {
    ("pandas", "DataFrame"): _from_pandas,
    ("polars", "DataFrame"): _from_polars,
    ("polars", "LazyFrame"): _from_polars,
}
_RELATIONS: Final = frozenset({("duckdb", "DuckDBPyRelation"), ("_duckdb", "DuckDBPyRelation")})
