"""The structure of tables, structs, lists and maps that lose their last stored field.

Files do not store structs, lists and maps directly. The nulls of structs, and the lengths and nulls of lists and maps,
are stored as levels of the fields inside them. A field that was added as null is not stored in any file. If only such
fields remain, one of them must be written. Otherwise, its parents would become null in every row. A table also keeps a
column in files, because readers reject a fragment without data files. A map is always written whole, because a file
with its values also needs its keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from itertools import chain

import pyarrow as pa

from lance_duck.commit.operations import Merge, Operation
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.columns.files import ColumnFiles, LiveRows, with_fields_of, with_file
from lance_duck.verbs.columns.schema_change import only, path_of
from lance_duck.wire.column_path import quoted_name
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.schema import Field, Schema


def structure_bearers(snapshot: Snapshot, schema: Schema) -> dict[Fragment, Set[int]]:
    """Return the fields to write so that all fields above them keep their structure.

    Args:
        snapshot: The version before fields are dropped.
        schema: The remaining fields.

    Returns:
        Ids of the leaf fields and maps to write, for each fragment that must store some of them.
    """
    before, after = (Field(-1, "", -1, "struct", False, {}, each.fields) for each in (snapshot.schema, schema))
    found: dict[Fragment, Set[int]] = {}
    known: dict[Set[int], Set[int]] = {}
    for fragment in snapshot.fragments:
        stored = frozenset(field_id for file in fragment.files for field_id in file.fields)
        if stored not in known:
            known[stored] = {_written_with(schema, leaf) for leaf in _bearers(before, after, stored)}
        if known[stored]:
            found[fragment] = known[stored]
    return found


def drop_with_structure(
    snapshot: Snapshot, schema: Schema, bearers: Mapping[Fragment, Set[int]]
) -> tuple[ColumnFiles, Callable[[], Operation]]:
    """Return the files of structure fields, and a function that writes these files and builds the operation.

    Args:
        snapshot: The version before fields are dropped.
        schema: The remaining fields.
        bearers: The result of `structure_bearers`.
    """
    files = ColumnFiles(snapshot, schema, snapshot.data_storage_version)
    table = TableScan(snapshot)

    def make() -> Operation:
        fragments = []
        for fragment in snapshot.fragments:
            changed = fragment
            if fragment in bearers:
                part = only(schema, set(bearers[fragment]))
                file = files.write_all(fragment, part, _structure(table, fragment, part))
                changed = with_fields_of(fragment, file, {field.id for field in part.walk() if not field.children})
            fragments.append(with_file(changed, None, schema))
        # Concurrently appended rows may lack the field. Their writers must write them again.
        return Merge(tuple(fragments), schema, preserves_nullability=False)

    return files, make


def _bearers(old: Field, new: Field, stored: Set[int]) -> set[int]:
    """Return the fields to write below a field. Empty if a file still stores the structure, or no file ever did."""
    if not new.children or not _is_stored(old, stored):
        return set()
    before = {child.id: child for child in old.children}
    found = set(chain.from_iterable(_bearers(before[child.id], child, stored) for child in new.children))
    return found if found or _is_stored(new, stored) else {_first_leaf(new).id}


def _written_with(schema: Schema, leaf: int) -> int:
    """Return the id of the outermost map around a leaf field, or the id of the field itself."""
    return next((field.id for field in path_of(schema, leaf) if field.logical_type == "map"), leaf)


def _is_stored(field: Field, stored: Set[int]) -> bool:
    return any(below.id in stored for below in field.walk())


def _first_leaf(field: Field) -> Field:
    """Return the shallowest leaf field below a field."""
    level = [field]
    while all(each.children for each in level):
        level = [child for each in level for child in each.children]
    return next(each for each in level if not each.children)


def _structure(table: TableScan, fragment: Fragment, part: Schema) -> Iterator[pa.RecordBatch]:
    """Yield all rows of a fragment, with the structure that is stored now.

    Includes deleted rows, because all files that store fields of a list must store the same list lengths.
    """
    before = table.snapshot.schema
    olds = [before.by_id(field.id) for field in part.fields]
    rows = LiveRows(table, [quoted_name(field.name) for field in olds], deleted=True)
    for batch in rows.of(fragment):
        pairs = zip(batch.columns, olds, part.fields, strict=True)
        yield pa.RecordBatch.from_arrays([_shrunk(*each) for each in pairs], schema=part.arrow)


def _shrunk(array: pa.Array, old: Field, new: Field) -> pa.Array:
    """Return an array without the dropped fields."""
    arrow = new.to_arrow().type
    if not new.children:
        return pa.nulls(len(array), arrow) if array.null_count == len(array) else array
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_struct(array.type):
        places = {child.id: place for place, child in enumerate(old.children)}
        children = [_shrunk(array.field(places[c.id]), old.children[places[c.id]], c) for c in new.children]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(arrow), mask=mask)
    # `buffers()` and `values` ignore the offset of a sliced array.
    (child,) = new.children
    values = _shrunk(array.values, old.children[0], child)
    buffers = array.buffers()[: 1 if pa.types.is_fixed_size_list(arrow) else 2]
    return pa.Array.from_buffers(arrow, len(array), buffers, offset=array.offset, children=[values])
