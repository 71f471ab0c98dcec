"""The rows that an index is built from: values with row ids or addresses, and row counts of fragments."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_duck import lazy
from lance_duck.arguments import did_you_mean, known_names
from lance_duck.arrow.listed import values_below
from lance_duck.errors import InvalidInputError, UnknownColumnError
from lance_duck.index.build import builds_by_row_id
from lance_duck.index.catalog import field_path
from lance_duck.index.files import INDEX_BLOCK_BYTES
from lance_duck.index.inverted.kind import INVERTED
from lance_duck.index.kind import ROW, VALUE, IndexKind
from lance_duck.index.registry import json_path_kind
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.projection import ROW_ADDRESS, ROW_ID
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.store import local_path
from lance_duck.verbs.costs import TEXT_BATCH_BYTES
from lance_duck.wire.below_lists import found_field, listed_field
from lance_duck.wire.column_path import split_path
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.schema import Field, Schema

if TYPE_CHECKING:
    from lance_duck.verbs.indexes import json_values
else:
    json_values = lazy.modules(globals(), "lance_duck.verbs.indexes", "json_values")


def column_path(schema: Schema, column: str) -> str:
    """Return the dotted path of a column, with upper and lower case as in the schema.

    Args:
        schema: Columns of the table.
        column: Path of the column. An exact match is preferred, then the first match that differs only in case.

    Raises:
        UnknownColumnError: The column does not exist.
    """
    field = next((f for f in schema.fields if f.name == column), None) or _found(schema.fields, split_path(column))
    path = None if field is None else field_path(schema, field.id)
    if path is None:
        raise UnknownColumnError(
            f"column {column!r} is not in the schema",
            expected=known_names(schema.names),
            remedy=did_you_mean(column, schema.names),
        )
    return path


def index_rows(
    snapshot: Snapshot, path: str, kind: IndexKind, fragments: Iterable[int], known: pa.DataType | None = None
) -> pa.RecordBatchReader:
    """Stream the live rows of fragments for an index.

    Args:
        snapshot: The version.
        path: Dotted path of the column.
        kind: Kind of the index.
        fragments: Ids of the fragments. Rows are streamed in ascending address order.
        known: Type of the values that a JSON index already has, or None if it has none.

    Returns:
        Columns `VALUE`, with the column's storage type and decoded dictionaries, and `ROW` (uint64), the stable row id
        or address that new segments of this kind use. For a struct field inside lists, `VALUE` holds lists. For a JSON
        index, it holds the values at its path: see `json_values`.
    """
    name = ROW_ID if builds_by_row_id(snapshot, kind) else ROW_ADDRESS
    column = listed_field(snapshot.schema, snapshot.schema.by_path(path))
    type_ = column.type if column.below else value_type(snapshot.schema.by_path(path))
    schema = pa.schema([pa.field(VALUE, type_), pa.field(ROW, pa.uint64(), nullable=False)])
    options = ScanOptions(columns=[column.path, name], fragments=sorted(fragments), batch_size_bytes=INDEX_BLOCK_BYTES)
    if kind is INVERTED:
        # Text analysis is multi-threaded and much slower than reading. A single reader thread reuses
        # its memory. Several reader threads would each retain memory that the analysis threads release.
        is_local = local_path(snapshot.uri) is not None
        options = replace(options, batch_size_bytes=TEXT_BATCH_BYTES, use_threads=not is_local)
    table = TableScan(snapshot)
    rows = table.reader(table.plan(options), options)
    over_path = json_path_kind(kind)
    if over_path is not None:
        return json_values.json_values(rows, over_path, known, snapshot.uri)
    return pa.RecordBatchReader.from_batches(schema, _renamed(rows, schema, column.below))


def checked_fragments(snapshot: Snapshot, fragments: Iterable[int]) -> list[int]:
    """Return the sorted fragment ids. Raises InvalidInputError if one does not exist."""
    ids = sorted({getattr(f, "fragment_id", f) for f in fragments})
    present = snapshot.fragments.id_set
    for fragment_id in ids:
        if fragment_id not in present:
            raise InvalidInputError(f"no fragment {fragment_id}", where=snapshot.uri)
    return ids


def value_type(field: Field) -> pa.DataType:
    """Return the value type that an index over a field is built from."""
    type_ = field.storage_type
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def rows_of(snapshot: Snapshot, fragments: Iterable[int]) -> int:
    """Return the total live row count of the fragments that exist."""
    numbers = np.fromiter(fragments, np.int64)
    ids, rows = np.array(snapshot.fragments.ids(), np.int64), np.array(snapshot.row_counts(), np.int64)
    return int(rows[np.isin(ids, numbers)].sum())


def runs_of(snapshot: Snapshot, fragments: Iterable[int], count: int) -> list[tuple[int, ...]]:
    """Split fragments into at most `count` non-empty runs of neighbours. The runs have similar live row counts."""
    ids = np.array(sorted(fragments), np.int64)
    if not len(ids):
        return []
    of = dict(zip(snapshot.fragments.ids(), snapshot.row_counts(), strict=True))
    ends = np.cumsum([of.get(i, 0) + 1 for i in ids.tolist()])  # fragments without rows count as one row
    place = np.minimum((ends - 1) * max(count, 1) // ends[-1], count - 1)
    cuts = np.flatnonzero(np.diff(place)) + 1
    return [tuple(run.tolist()) for run in np.split(ids, cuts)]


def has_moved_rows(snapshot: Snapshot, fragment: Fragment) -> bool:
    """Return whether a fragment with stable row ids may contain rows that moved or changed."""
    created, updated = snapshot.created_at(fragment), snapshot.last_updated_at(fragment)
    if created is None or updated is None:
        return True
    rows = snapshot.physical_rows(fragment)
    return not np.array_equal(created.slice(0, rows), updated.slice(0, rows))


def _renamed(
    reader: pa.RecordBatchReader, schema: pa.Schema, below: Sequence[str]
) -> Generator[pa.RecordBatch, None, None]:
    type_ = schema.field(VALUE).type
    with reader:
        for batch in reader:
            yield pa.RecordBatch.from_arrays(
                [_stored(values_below(batch.column(0), below), type_), batch.column(1)], schema=schema
            )


def _stored(values: pa.Array, type_: pa.DataType) -> pa.Array:
    return values if values.type == type_ else values.cast(type_)


def _found(fields: Iterable[Field], names: list[str]) -> Field | None:
    """Return the field at a path of names. Each name matches exactly if possible, otherwise case-insensitively."""
    return found_field(list(fields), names, _meant)


def _meant(fields: Sequence[Field], name: str) -> Field | None:
    exact = next((f for f in fields if f.name == name), None)
    return exact or next((f for f in fields if f.name.lower() == name.lower()), None)
