"""Embedders: functions of the user that make vectors, and the table metadata that names them.

The schema metadata `embedding_functions` is LanceDB's: a JSON list of {name, model, source_column, vector_column}. A
name in a file never loads code: only functions that the user registered in this process are called.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arguments import checked_call
from lance_duck.arrow.types import number_dtype, storage_type
from lance_duck.errors import CorruptError, InvalidInputError, WrongTypeError
from lance_duck.wire.schema import EMBEDDING_FUNCTIONS, Schema

_KEYS: Final = ("name", "model", "source_column", "vector_column")
_AT_ONCE: Final = 1024
"""Maximum number of values that an embedder gets at once."""

_T = TypeVar("_T")
_REGISTERED: Final[dict[str, Any]] = {}


@overload
def register_embedder(name: str) -> Callable[[_T], _T]: ...


@overload
def register_embedder(name: str, embedder: _T) -> _T: ...


@checked_call
def register_embedder(name: str, embedder: Any = None) -> Any:
    """Register a function that makes vectors, for tables whose metadata names it.

    `ds.search("text")` then calls it for the text, and writes call it for rows without vectors. See
    `LanceDataset.set_embedding_function`. Registering a name again replaces the function.

    Args:
        name: Name of the function in the metadata, for LanceDB's functions for example "openai".
        embedder: A function that takes a list of texts, and returns one vector per text, as a list of lists or an array
            (texts, dimensions). Or an object with `compute_query_embeddings(text)` and
            `compute_source_embeddings(texts)`, such as an embedding function of LanceDB. Or the class of such an
            object, which is created with the model's arguments from the metadata. Without it, returns a decorator.

    Returns:
        The embedder, or a decorator.

    Raises:
        WrongTypeError: The name is not a string, or the embedder cannot be called.
    """
    if not isinstance(name, str):
        found, remedy = type(name).__name__, 'register_embedder("name", function), or @register_embedder("name")'
        raise WrongTypeError("name", where="register_embedder", expected="a string", found=found, remedy=remedy)
    if embedder is None:
        return lambda function: register_embedder(name, function)
    if not callable(embedder) and not hasattr(embedder, "compute_query_embeddings"):
        expected = "a function of a list of texts, or an object with compute_query_embeddings"
        raise WrongTypeError("embedder", where="register_embedder", expected=expected, found=type(embedder).__name__)
    _REGISTERED[name] = embedder
    return embedder


@dataclass(frozen=True, eq=False)
class EmbeddingFunction:
    """An entry of the metadata.

    Attributes:
        name: Name of the function.
        model: Arguments of the model.
        source_column: Column that the vectors are made of.
        vector_column: Column of the vectors.
    """

    name: str
    model: Mapping[str, Any]
    source_column: str
    vector_column: str

    @property
    def is_registered(self) -> bool:
        """Whether the user registered the function."""
        return self.name in _REGISTERED

    def query_vector(self, text: Any, type_: pa.DataType) -> TextVector:
        """Return the vector of a query.

        Raises:
            InvalidInputError: The function is not registered, or its result is not a vector of the column's type.
        """
        type_ = self.vector_type(type_)
        embedder = self.embedder()
        by_method = getattr(embedder, "compute_query_embeddings", None)
        vectors, present = self._vectors(embedder([text]) if by_method is None else by_method(text), 1, type_)
        if not present[0]:
            raise InvalidInputError("no vector for the query", where=str(self), found="None")
        vector = np.ascontiguousarray(vectors[0]).view(TextVector)
        vector.text, vector.column = text, self.vector_column
        return vector

    def column(self, values: pa.Array, type_: pa.DataType) -> pa.Array:
        """Return the vectors of values, null where a value is null or the embedder returns None.

        Args:
            values: Values of the source column.
            type_: See `vector_type`.

        Raises:
            InvalidInputError: See `query_vector`.
        """
        embedder = self.embedder()
        compute = getattr(embedder, "compute_source_embeddings", embedder)
        vectors = np.zeros((len(values), type_.list_size), number_dtype(type_.value_type))
        mask = np.ones(len(values), bool)
        rows = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        for start in range(0, len(rows), _AT_ONCE):
            part = rows[start : start + _AT_ONCE]
            made, present = self._vectors(compute(values.take(pa.array(part)).to_pylist()), len(part), type_)
            vectors[part], mask[part] = made, ~present
        items = pa.array(vectors.reshape(-1), type_.value_type)
        return pa.FixedSizeListArray.from_arrays(items, type=type_, mask=pa.array(mask))

    def vector_type(self, type_: pa.DataType) -> pa.DataType:
        """Return the storage type of the vector column.

        Raises:
            InvalidInputError: The column does not hold vectors of floating-point numbers.
        """
        vector = storage_type(type_)
        if not pa.types.is_fixed_size_list(vector) or not pa.types.is_floating(vector.value_type):
            expected = "a fixed-size list of floating-point numbers"
            raise InvalidInputError("type of the vector column", where=str(self), expected=expected, found=type_)
        return pa.list_(vector.value_type, vector.list_size)

    def embedder(self) -> Any:
        """Return the registered function or object.

        Raises:
            InvalidInputError: The function is not registered.
        """
        if not self.is_registered:
            raise InvalidInputError(
                "not registered",
                where=str(self),
                expected=f"a function for the model {json.dumps(dict(self.model))}",
                remedy=f"lance_duck.register_embedder({self.name!r}, function), or pass vectors",
            )
        embedder = _REGISTERED[self.name]
        return getattr(embedder, "create", embedder)(**self.model) if isinstance(embedder, type) else embedder

    def _vectors(self, result: Any, count: int, type_: pa.DataType) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return the result of an embedder as a matrix, and a mask of its vectors that are not None."""
        found: object = len(result) if hasattr(result, "__len__") else type(result).__name__
        if found != count:
            raise InvalidInputError("result of the embedder", where=str(self), expected=f"{count} vectors", found=found)
        vectors = np.zeros((count, type_.list_size), number_dtype(type_.value_type))
        present = np.ones(count, bool)
        for place, each in enumerate(result):
            if each is None:
                present[place] = False
                continue
            row = _numbers(each)
            if row is None or row.shape != (type_.list_size,):
                found = f"{type(each).__name__}" if row is None else f"an array of shape {row.shape}"
                expected = f"vectors of {type_.list_size} numbers"
                raise InvalidInputError("result of the embedder", where=str(self), expected=expected, found=found)
            with np.errstate(over="ignore"):
                vectors[place] = row
        if not np.isfinite(vectors).all():
            found = "NaN or infinity"
            raise InvalidInputError("result of the embedder", where=str(self), expected="finite numbers", found=found)
        return vectors, present

    def __str__(self) -> str:
        return f"embedding function {self.name!r} of column {self.vector_column!r}"


class TextVector(np.ndarray[Any, Any]):
    """The vector of a text.

    Attributes:
        text: The text.
        column: Name of the vector column whose embedder made it.
    """

    text: Any
    column: str


def embedding_functions(metadata: Mapping[str, str]) -> tuple[EmbeddingFunction, ...]:
    """Return the entries of a table's metadata, or nothing if the table does not have any.

    Raises:
        CorruptError: The metadata is not a list of entries.
    """
    text = metadata.get(EMBEDDING_FUNCTIONS)
    if text is None:
        return ()
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptError("not JSON", where=f"schema metadata {EMBEDDING_FUNCTIONS!r}", found=str(error)) from error
    if not isinstance(entries, list) or not all(map(_is_entry, entries)):
        raise CorruptError(
            "not a list of embedding functions",
            where=f"schema metadata {EMBEDDING_FUNCTIONS!r}",
            expected=f"objects with {', '.join(_KEYS)}",
            found=text[:80],
        )
    return tuple(
        EmbeddingFunction(entry["name"], entry.get("model") or {}, entry["source_column"], entry["vector_column"])
        for entry in entries
    )


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("model") or {}, dict)
        and all(isinstance(entry.get(key), str) for key in _KEYS if key != "model")
    )


def metadata_with(
    functions: Sequence[EmbeddingFunction], vector_column: str, changed: EmbeddingFunction | None
) -> str | None:
    """Return the metadata with another entry for a vector column, as LanceDB writes it. None if no entry remains."""
    kept = [each for each in functions if each.vector_column != vector_column]
    entries = [{key: getattr(each, key) for key in _KEYS} for each in (*kept, *((changed,) if changed else ()))]
    return json.dumps(entries, indent=2) if entries else None


def with_embeddings(reader: pa.RecordBatchReader, table: Schema) -> pa.RecordBatchReader:
    """Return rows with the vector columns that they lack, if the table's metadata names embedders for them.

    Args:
        reader: The rows.
        table: Schema of the table.

    Raises:
        CorruptError: The metadata is damaged.
        InvalidInputError: A function is not registered, or a column does not hold vectors.
    """
    names = reader.schema.names
    if EMBEDDING_FUNCTIONS not in table.metadata or set(table.names) <= set(names):
        return reader
    types = {field.name: field.arrow_type for field in table.fields}
    made = [
        each
        for each in embedding_functions(table.metadata)
        if each.vector_column in types and each.vector_column not in names and names.count(each.source_column) == 1
    ]
    if not made:
        return reader
    for each in made:
        each.embedder()  # raises before rows are read
    fields = [pa.field(each.vector_column, each.vector_type(types[each.vector_column])) for each in made]
    schema = pa.schema([*reader.schema, *fields], reader.schema.metadata)
    return pa.RecordBatchReader.from_batches(schema, _filled(reader, made, schema))


def _filled(
    reader: pa.RecordBatchReader, functions: Sequence[EmbeddingFunction], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        made = [
            each.column(batch.column(each.source_column), schema.field(each.vector_column).type) for each in functions
        ]
        yield pa.RecordBatch.from_arrays([*batch.columns, *made], schema=schema)


def _numbers(vector: Any) -> NDArray[Any] | None:
    """Return a vector as an array of numbers, or None if it is not one."""
    try:
        row = np.asarray(vector)
    except (TypeError, ValueError):
        return None
    return row if row.dtype.kind in "fiu" else None
