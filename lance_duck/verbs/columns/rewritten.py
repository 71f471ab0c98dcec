"""Columns that get new values and new fields: other types, and fields inside lists and maps.

One Merge replaces the fields. A column keeps its position, its name and its metadata. If only structs surround the new
fields, the files of a fragment store these fields alone. Lists, maps and packed structs are written whole, because the
fields of one list must agree on its length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa

from lance_duck.commit.operations import Merge, Operation
from lance_duck.errors import DataMismatchError, InvalidInputError
from lance_duck.snapshot import Snapshot, mem_wal
from lance_duck.verbs.columns.alteration import with_attributes
from lance_duck.verbs.columns.files import ColumnFiles, with_fields_of, with_file
from lance_duck.verbs.columns.methods import commit_files, refuse_indexed
from lance_duck.verbs.columns.schema_change import next_field_id, only, path_of, replace_fields
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.schema import BLOB_KEY, Field, Schema
from lance_duck.wire.schema_write import is_primary_key, refuse_mixed_lists, schema_from_arrow


@dataclass(frozen=True)
class ColumnRewrite:
    """The fields of one column that get new values.

    Attributes:
        schema: The whole schema after the change.
        new: Ids of the new fields.
        part: The fields to write: the new fields with their ancestors, or the whole column.
    """

    schema: Schema
    new: Set[int]
    part: Schema


def retyped_field(snapshot: Snapshot, field: Field, type_: pa.DataType) -> ColumnRewrite:
    """Plan a new type for a column or field. Fields inside it with the same names keep their metadata.

    Args:
        snapshot: The version that is changed.
        field: The column or field.
        type_: Its new type.

    Raises:
        ReferencedError: An index covers the field.
        InvalidInputError: The field is a primary key, and the type cannot be a key.
        UnsupportedError: The table cannot store the type.
    """
    refuse_indexed(snapshot, (field.id,))
    is_blob = field.blob_version and (pa.types.is_binary(type_) or pa.types.is_large_binary(type_))
    made = _made(snapshot, pa.field("column", type_, metadata={BLOB_KEY: "true"} if is_blob else None))
    new = with_attributes(made, field)
    if is_primary_key(new) and new.children:
        raise InvalidInputError("a primary key column cannot get a nested type", where=field.name, found=type_)
    schema = replace_fields(snapshot.schema, lambda each: new if each.id == field.id else None)
    return _rewrite(schema, new)


def added_field(snapshot: Snapshot, parent: Field | None, field: pa.Field) -> ColumnRewrite:
    """Plan a new column, or a new field of a struct.

    Args:
        snapshot: The version that is changed.
        parent: The struct, or None for a column.
        field: The new column or field.

    Raises:
        UnsupportedError: The table cannot store the type.
    """
    new = _made(snapshot, field)
    if parent is None:
        schema = replace(snapshot.schema, fields=(*snapshot.schema.fields, new))
        return _rewrite(schema, new)
    new = replace(new, parent_id=parent.id)
    grown = replace(parent, children=(*parent.children, new))
    schema = replace_fields(snapshot.schema, lambda each: grown if each.id == parent.id else None)
    return _rewrite(schema, new)


def rewrite_column(
    snapshot: Snapshot, plan: ColumnRewrite, rows: Iterator[pa.RecordBatch], properties: Mapping[str, str] | None = None
) -> Snapshot:
    """Write the values of a column, and commit them.

    Args:
        snapshot: The version that is changed.
        plan: The new fields.
        rows: Values of `ColumnRewrite.part` and row addresses of all live rows. The rows of a fragment are ascending
            and not interrupted by other fragments.
        properties: Properties of the transaction.

    Raises:
        InvalidInputError: A value does not fit its column.
        RetryableError: Another change was committed first.
    """
    mem_wal.refuse_values(snapshot)
    files = ColumnFiles(snapshot, plan.part, snapshot.data_storage_version)
    moved = {field.id for field in plan.part.walk()} - plan.new if _is_whole(plan) else set()

    def make() -> Operation:
        written: dict[int, Fragment] = {}
        source = _RowsByFragment(rows)
        while (fragment_id := source.fragment_id) is not None:
            fragment = snapshot.fragment(fragment_id)
            file = files.write(fragment, source.of(fragment_id, snapshot.num_rows(fragment)))
            assert file is not None  # the fragment has live rows
            written[fragment_id] = with_fields_of(fragment, file, moved)
        fragments = []
        for fragment in snapshot.fragments:
            if fragment.id not in written and snapshot.num_rows(fragment):
                raise DataMismatchError("the new values do not have all rows", where=f"fragment {fragment.id}")
            fragments.append(with_file(written.get(fragment.id, fragment), None, plan.schema))
        # Concurrently appended rows only have the old fields. Their writers must write them again.
        return Merge(tuple(fragments), plan.schema, preserves_nullability=False)

    return commit_files(snapshot, files, make, dict(properties) if properties else None)


class _RowsByFragment:
    """Splits a stream of values and row addresses into fragments."""

    def __init__(self, rows: Iterator[pa.RecordBatch]) -> None:
        self._rows = rows
        self._left: pa.RecordBatch | None = None

    @property
    def fragment_id(self) -> int | None:
        """The fragment of the next row, or None at the end."""
        if self._left is None or not self._left.num_rows:
            self._left = next((batch for batch in self._rows if batch.num_rows), None)
        return None if self._left is None else self._left.column(1)[0].as_py() >> 32

    def of(self, fragment_id: int, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the values of a fragment with this many live rows."""
        last = -1
        while rows and self.fragment_id == fragment_id:
            assert self._left is not None
            batch, self._left = self._left.slice(0, rows), self._left.slice(rows)
            addresses = np.asarray(batch.column(1)).astype(np.int64)
            if not (np.diff(addresses, prepend=last) > 0).all() or int(addresses[-1]) >> 32 != fragment_id:
                raise DataMismatchError("the new values are not in row order", where=f"fragment {fragment_id}")
            last, rows = int(addresses[-1]), rows - batch.num_rows
            yield batch.select([0])


def _made(snapshot: Snapshot, field: pa.Field) -> Field:
    (made,) = schema_from_arrow(
        pa.schema([field.with_name("column")]), snapshot.data_storage_version, next_field_id(snapshot)
    ).fields
    return replace(made, name=field.name)


def _rewrite(schema: Schema, field: Field) -> ColumnRewrite:
    new = {each.id for each in field.walk()}
    path = path_of(schema, field.id)
    column, *_ = path
    refuse_mixed_lists(column)
    is_loose = all(each.logical_type == "struct" and not each.is_packed for each in path[:-1])
    part = only(schema, {field.id}) if is_loose else Schema((column,))
    return ColumnRewrite(schema, new, part)


def _is_whole(plan: ColumnRewrite) -> bool:
    """Return whether existing fields are written in addition to the new ones."""
    leaves = chain.from_iterable(field.walk() for field in plan.part.fields)
    return any(not field.children and field.id not in plan.new for field in leaves)
