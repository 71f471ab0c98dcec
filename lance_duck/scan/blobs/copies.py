"""Rows with blobs in the form that writers accept: as bytes, or as references to external files.

Memory use is limited for any batch length and any total size of blobs.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.encoding.arrow.blocks import validity_buffer
from lance_duck.encoding.block import VariableWidth
from lance_duck.encoding.layouts.blob import read_extents
from lance_duck.encoding.write.blocks import valid_flags
from lance_duck.errors import CorruptError
from lance_duck.file.blobs.places import EXTERNAL, as_values, blob_places, inline_extents, read_places
from lance_duck.file.reader import LanceFile
from lance_duck.file.write.blob_options import BlobOptions
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.plan import ScanPlan
from lance_duck.scan.projection import ROW_ADDRESS
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.store import join_uri, run
from lance_duck.wire.schema import Field

MOST_BYTES: Final = 64 << 20
"""Maximum total blob size per batch, in bytes, unless a single row exceeds it. This limits memory."""

Int64s = NDArray[np.int64]


def kept_blobs(snapshot: Snapshot) -> BlobOptions:
    """Return the options for rewriting the blobs of a table. References to external files are kept."""
    bases = {i: snapshot.location.base_uri(b) for i, b in snapshot.base_paths.items() if not b.is_dataset_root}
    return BlobOptions(allow_outside_bases=True, bases=bases)


def written_batches(
    table: TableScan, options: ScanOptions, most_bytes: int = MOST_BYTES, binary_json: Container[str] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a scan, including blobs, in the table's storage types, for writers.

    Args:
        table: The table.
        options: Options of the scan. `blob_handling` is ignored.
        most_bytes: Maximum total blob size per batch, in bytes, unless a single row exceeds it.
        binary_json: Columns whose JSON is read in the stored binary form, unless the filter reads the column.

    Raises:
        FormatError: A file cannot be read.
        NotFoundError: A file with blobs is missing.
    """
    schema = table.snapshot.schema
    if not any(field.blob_version for field in schema.walk()):
        yield from table.reader(_plan(table, options, binary_json), options)
        return
    scan_options = replace(options, blob_handling="all_descriptions", with_row_address=True)
    fields = {field.name: field for field in schema.fields}
    hide = not options.with_row_address and ROW_ADDRESS not in (options.columns or ())
    for batch in table.reader(_plan(table, scan_options, binary_json), scan_options):
        names = [name for name in batch.schema.names if not (hide and name == ROW_ADDRESS)]
        for part, fragment_id in _parts(batch, fields, most_bytes):
            open_ = _opener(table.snapshot, fragment_id)
            columns = [
                _restored(part.column(name), fields[name], open_, table.snapshot)
                if name in fields
                else part.column(name)
                for name in names
            ]
            yield pa.RecordBatch.from_arrays(columns, names)


def _plan(table: TableScan, options: ScanOptions, binary_json: Container[str]) -> ScanPlan:
    """Return the plan of a scan whose batches may contain rows of several fragments."""
    plan = table.plan(options)
    filtered = () if plan.filter is None else {path[0] for path in plan.filter.paths()}
    types = {
        field.name: type_
        for field in table.snapshot.schema.fields
        if field.name in binary_json and field.name not in filtered and (type_ := field.binary_json_type()) is not None
    }
    return replace(table.plan(options, arrow_types=types) if types else plan, crosses_fragments=True)


Open = Callable[[int], LanceFile | None]


def _opener(snapshot: Snapshot, fragment_id: int) -> Open:
    """Return a function that takes a field id, and opens the fragment's data file with this field."""

    @cache
    def open_(field_id: int) -> LanceFile | None:
        files = (file for file in snapshot.fragment(fragment_id).files if field_id in file.fields)
        file = next(files, None)
        return None if file is None else snapshot.data_file(file)

    return open_


def _parts(batch: pa.RecordBatch, fields: dict[str, Field], most: int) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yield slices with at most `most` blob bytes, with their fragment ids. A single row may have more bytes."""
    if not batch.num_rows:
        return
    fragments = batch.column(ROW_ADDRESS).to_numpy() >> np.uint64(32)
    costs = np.zeros(batch.num_rows, np.int64)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name in fields:
            costs += _costs(column, fields[name])
    ends = np.cumsum(costs)
    edges = [0, *(np.flatnonzero(np.diff(fragments)) + 1).tolist(), batch.num_rows]
    for first, last in pairwise(edges):
        start = first
        while start < last:
            before = int(ends[start - 1]) if start else 0
            fit = int(np.searchsorted(ends, before + most, side="right"))
            stop = min(max(fit, start + 1), last)
            yield batch.slice(start, stop - start), int(fragments[start])
            start = stop


def _costs(array: pa.Array, field: Field) -> Int64s:
    """Return the total blob size of each row, in bytes."""
    array = _storage(array)
    nothing = np.zeros(len(array), np.int64)
    if field.blob_version:
        sizes = _numbers(array, "size")
        if field.blob_version == 2:
            sizes = np.where(_numbers(array, "kind") == EXTERNAL, 0, sizes)
        return sizes.astype(np.int64)
    if not any(below.blob_version for below in field.walk()):
        return nothing
    if pa.types.is_struct(array.type):
        return sum((_costs(array.field(i), child) for i, child in enumerate(field.children)), nothing)
    offsets, items = _items(array)
    ends = np.append(0, np.cumsum(_costs(items, field.children[0])))
    return np.diff(ends[offsets])


def _restored(array: pa.Array, field: Field, open_: Open, snapshot: Snapshot) -> pa.Array:
    """Replace the blob descriptions in an array by blobs in the form that writers accept."""
    if not any(below.blob_version for below in field.walk()):
        return array
    array = _storage(array)
    if field.blob_version:
        return _blobs(array, field, open_(field.id), snapshot)
    bitmap = validity_buffer(valid_flags(array))
    if pa.types.is_struct(array.type):
        children = [_restored(array.field(i), child, open_, snapshot) for i, child in enumerate(field.children)]
        kind = pa.struct([_named(child, member.type) for child, member in zip(field.children, children, strict=True)])
        return pa.Array.from_buffers(kind, len(array), [bitmap], children=children)
    offsets, items = _items(array)
    values = _restored(items, field.children[0], open_, snapshot)
    is_large = pa.types.is_large_list(array.type)
    kind = (pa.large_list if is_large else pa.list_)(_named(field.children[0], values.type))
    stored = pa.py_buffer(offsets.astype(np.int64 if is_large else np.int32))
    return pa.Array.from_buffers(kind, len(array), [bitmap, stored], children=[values])


def _blobs(array: pa.StructArray, field: Field, file: LanceFile | None, snapshot: Snapshot) -> pa.Array:
    if file is None:
        return pa.nulls(len(array), field.storage_type)
    if field.blob_version == 1:
        values, valid = _bytes(array, file)
        return _binary(values, valid).cast(field.storage_type)
    kinds = _numbers(array, "kind")
    is_external = (kinds == EXTERNAL) & np.asarray(array.is_valid())
    if not is_external.any():
        values, valid = _bytes(array, file)
        return _struct(field, {"data": _binary(values, valid)}, array)
    inside = array.filter(pa.array(~is_external))
    values, valid = _bytes(inside, file)
    places = pa.array(np.cumsum(~is_external) - 1, mask=is_external)
    members = {"data": _binary(values, valid).take(places), **_references(array, is_external, snapshot)}
    return _struct(field, members, array)


def _bytes(array: pa.StructArray, file: LanceFile) -> tuple[VariableWidth, NDArray[np.bool_]]:
    """Return the bytes of blobs in the table's files, and a mask of the rows that are not null."""
    extents = inline_extents(array) if array.type.num_fields > 2 else None
    if extents is not None:
        values = run(read_extents(*extents, file.source, file.source.path))
        return values, np.asarray(array.is_valid())
    places = blob_places(array, file)
    parts = run(read_places(places))
    valid = np.array([place is not None for place in places], np.bool_)
    if len(parts) == 1:
        return VariableWidth(np.array([0, len(parts[0])], np.int64), parts[0]), valid
    return as_values(parts), valid


def _references(array: pa.StructArray, is_external: NDArray[np.bool_], snapshot: Snapshot) -> dict[str, pa.Array]:
    """Return the URIs of external files, and the byte ranges of the blobs in these files."""
    bases = {i: snapshot.location.base_uri(base) for i, base in snapshot.base_paths.items()}
    ids = _numbers(array, "blob_id").tolist()
    uris: list[str | None] = [None] * len(array)
    for row in np.flatnonzero(is_external).tolist():
        name = array.field("blob_uri")[row].as_py()
        if ids[row] and ids[row] not in bases:
            raise CorruptError("the base path of an external blob does not exist", where=snapshot.uri, found=ids[row])
        uris[row] = join_uri(bases[ids[row]], name) if ids[row] else name
    sizes = _numbers(array, "size")
    whole = ~is_external | (sizes == 0)
    positions = pa.array(_numbers(array, "position"), pa.uint64(), mask=whole)
    return {"uri": pa.array(uris, pa.string()), "position": positions, "size": pa.array(sizes, pa.uint64(), mask=whole)}


def _struct(field: Field, members: dict[str, pa.Array], nulls: pa.StructArray) -> pa.StructArray:
    """Return structs of a field's storage type. Missing members are null. A row is null if it is null in `nulls`."""
    kind = field.storage_type
    children = [members.get(member.name, pa.nulls(len(nulls), member.type)) for member in kind]
    return pa.Array.from_buffers(kind, len(nulls), [validity_buffer(valid_flags(nulls))], children=children)


def _binary(values: VariableWidth, valid: NDArray[np.bool_]) -> pa.LargeBinaryArray:
    bitmap = None if valid.all() else validity_buffer(valid.view(np.uint8))
    offsets = pa.py_buffer(np.ascontiguousarray(values.offsets, np.int64))
    return pa.Array.from_buffers(pa.large_binary(), values.count, [bitmap, offsets, pa.py_buffer(values.data)])


def _items(array: pa.Array) -> tuple[Int64s, pa.Array]:
    """Return the offsets of lists, starting at 0, and their items."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    return np.append(0, np.cumsum(lengths, dtype=np.int64)), array.flatten()


def _numbers(array: pa.StructArray, name: str) -> NDArray[np.uint64]:
    """Return a member of blob descriptions. Nulls become 0."""
    values: NDArray[np.uint64] = array.field(name).fill_null(0).to_numpy(zero_copy_only=False)
    if array.null_count:
        values = np.where(np.asarray(array.is_valid()), values, values.dtype.type(0))
    return values


def _named(field: Field, kind: pa.DataType) -> pa.Field:
    return pa.field(field.name, kind, field.nullable)


def _storage(array: pa.Array) -> pa.Array:
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array
