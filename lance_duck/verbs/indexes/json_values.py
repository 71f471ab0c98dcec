"""The values at a path of JSON documents, for an index. All values must have one type.

The first value that is not null determines the type, as in pylance. Later integers also count as double. Values are
read by the same DuckDB functions that filters call, so that an index and a scan agree about them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.errors import NotIndexableError
from lance_duck.index.json_kind import JsonKind
from lance_duck.index.json_path import JsonPath, shown_path
from lance_duck.index.kind import ROW, VALUE
from lance_duck.scan.evaluator.expressions import evaluate_sql
from lance_duck.scan.identifiers import literal

_TEXT, _WHOLE, _FRACTION, _TRUTH = "a string", "an integer", "a number with a fraction", "true or false"
_KINDS: Final = {
    "VARCHAR": _TEXT,
    "BIGINT": _WHOLE,
    "UBIGINT": _WHOLE,
    "HUGEINT": _FRACTION,
    "DOUBLE": _FRACTION,
    "BOOLEAN": _TRUTH,
    "ARRAY": "an array",
    "OBJECT": "an object",
    "NULL": None,
}
"""What DuckDB's `json_type` calls a value, in words."""
_TYPES: Final = {_TEXT: pa.string(), _WHOLE: pa.int64(), _FRACTION: pa.float64(), _TRUTH: pa.bool_()}
_FITS: Final = {
    pa.string(): (_TEXT,),
    pa.int64(): (_WHOLE,),
    pa.float64(): (_WHOLE, _FRACTION),
    pa.bool_(): (_TRUTH,),
}
_DOCUMENT: Final = "j"
_BATCH: Final = f'json_type("{_DOCUMENT}", {{path}}) AS kind, json_extract_string("{_DOCUMENT}", {{path}}) AS value'
_HUGE: Final = (
    "CASE WHEN kind IN ('BIGINT', 'UBIGINT') AND TRY_CAST(value AS BIGINT) IS NULL THEN 'HUGEINT' ELSE kind END AS kind"
)


def json_values(
    documents: pa.RecordBatchReader, kind: JsonKind, known: pa.DataType | None, where: str
) -> pa.RecordBatchReader:
    """Return the values at the path of an index.

    Args:
        documents: Columns of JSON documents, and of row ids or addresses (uint64).
        kind: Kind of the index.
        known: Type of the values that the index already has, or None if it has none.
        where: URI of the table, for messages.

    Returns:
        Columns `VALUE` (bool, int64, double or string) and `ROW`. Values are strings if all are null.

    Raises:
        NotIndexableError: A value is an array, an object, or of a different type than the values before it. Reading the
            result may also raise it.
    """
    batches = _read(documents, kind.path)
    type_ = known
    leading = []
    if type_ is None:
        for names, kinds, texts in batches:
            leading.append((names, kinds, texts))
            first = next((each for each in pc.unique(kinds).to_pylist() if _KINDS.get(each, each)), None)
            if first is not None:
                type_ = _type_of_first(kinds, names, kind, where)
                break
    schema = pa.schema([pa.field(VALUE, type_ or pa.string()), pa.field(ROW, pa.uint64(), nullable=False)])

    def converted() -> Generator[pa.RecordBatch, None, None]:
        with documents:
            while leading:
                yield _converted(*leading.pop(0), schema, kind, where)
            for names, kinds, texts in batches:
                yield _converted(names, kinds, texts, schema, kind, where)

    return pa.RecordBatchReader.from_batches(schema, converted())


def _read(documents: pa.RecordBatchReader, path: JsonPath) -> Iterator[tuple[pa.Array, pa.Array, pa.Array]]:
    """Yield the row, the DuckDB type and the text of each value, in batches."""
    select = _BATCH.format(path=literal(shown_path(path)))
    for batch in documents:
        table = evaluate_sql(select, {_DOCUMENT: batch.column(0)}, batch.num_rows, text=shown_path(path))
        texts = table["value"].combine_chunks().cast(pa.string())
        kinds = evaluate_sql(_HUGE, {"kind": table["kind"].combine_chunks(), "value": texts}, batch.num_rows)
        yield batch.column(1), kinds["kind"].combine_chunks(), texts


def _type_of_first(kinds: pa.Array, names: pa.Array, kind: JsonKind, where: str) -> pa.DataType:
    place = next(i for i, each in enumerate(kinds.to_pylist()) if _KINDS.get(each, each))
    word = _KINDS.get(kinds[place].as_py(), kinds[place].as_py())
    if word not in _TYPES:
        raise _misfit(kind, "a string, a number or a boolean", word, names[place], where)
    type_ = _TYPES[word]
    if not kind.target.supports(type_):
        raise NotIndexableError(
            f"a JSON index of kind {kind.target.name} does not support the values at {kind.text!r}",
            where=where,
            found=f"{word}, in row {names[place]}",
        )
    return type_


def _converted(
    names: pa.Array, kinds: pa.Array, texts: pa.Array, schema: pa.Schema, kind: JsonKind, where: str
) -> pa.RecordBatch:
    type_ = schema.field(VALUE).type
    for word in pc.unique(kinds).to_pylist():
        if _KINDS.get(word, word) not in (None, *_FITS[type_]):
            place = pc.index(kinds, word).as_py()
            raise _misfit(kind, _FITS[type_][-1], _KINDS.get(word, word), names[place], where)
    if pa.types.is_string(type_):
        values = texts
    elif pa.types.is_floating(type_):
        values = evaluate_sql("CAST(value AS DOUBLE) AS value", {"value": texts}, len(texts))["value"].combine_chunks()
    else:
        values = texts.cast(type_)
    return pa.RecordBatch.from_arrays([values, names], schema=schema)


def _misfit(kind: JsonKind, expected: str, found: object, row: pa.Scalar, where: str) -> NotIndexableError:
    return NotIndexableError(
        f"a JSON index needs values of one type at {kind.text!r}",
        where=where,
        expected=expected,
        found=f"{found}, in the row with _rowid {row}",
        remedy="index another path, or filter without an index",
    )
