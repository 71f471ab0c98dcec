"""Blob files outside of data files: sidecars, and the files in `_blobs/` that a table manages.

External files are not checked, because they do not belong to the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.errors import CorruptError, LanceDuckError, NotFoundError
from lance_duck.file.blobs.places import DEDICATED, MANAGED, PACKED, BlobPlace
from lance_duck.file.reader import LanceFile
from lance_duck.maintenance.validation.problems import Problem
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.store.checked import DigestedSource
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.schema import Field

_KEYS = ["kind", "blob_id", "blob_uri"]


def blob_problems(snapshot: Snapshot, fragment: Fragment) -> Iterator[Problem]:
    """Yield problems of blob files of a fragment that are missing or truncated.

    Only columns outside structs are checked. The check reads blob descriptions and file sizes, not blobs.
    """
    for field in snapshot.schema.fields:
        data_file = next((file for file in fragment.files if field.id in file.fields), None)
        if field.blob_version != 2 or data_file is None:
            continue
        content = snapshot.data_file(data_file)
        for kind, blob_id, uri, end in _files(snapshot, fragment, field):
            try:
                BlobPlace(content, kind, 0, end, blob_id, uri).extent()
            except LanceDuckError as error:
                yield Problem(f"fragment {fragment.id}: blobs of {field.name!r}", str(error))


def lost_blobs(file: LanceFile, descriptions: pa.StructArray) -> NDArray[np.bool_]:
    """Return whether each blob is lost, because its sidecar is missing or damaged at the blob's offset.

    Args:
        file: The data file.
        descriptions: Blob descriptions, as returned by a scan.
    """
    lost = np.zeros(len(descriptions), np.bool_)
    if file.beside is None or not len(descriptions):
        return lost
    places = pa.Table.from_struct_array(descriptions)
    kinds, ids, position = (_numbers(places, name) for name in ("kind", "blob_id", "position"))
    end = _numbers(_with_ends(places), "end")
    in_sidecars = np.isin(kinds, [PACKED, DEDICATED]) & descriptions.is_valid().to_numpy(zero_copy_only=False)
    for blob_id in np.unique(ids[in_sidecars]).tolist():
        rows = in_sidecars & (ids == blob_id)
        try:
            source = file.beside.sidecar(blob_id)
            damage = source.damaged() if isinstance(source, DigestedSource) else []
        except (CorruptError, NotFoundError):
            damage = [(0, 1 << 63)]
        for offset, size in damage:
            lost |= rows & (position < offset + size) & (end > offset)
    return lost


def _files(snapshot: Snapshot, fragment: Fragment, field: Field) -> Iterator[tuple[Any, ...]]:
    """Yield the kind, id and name of each blob file, and the byte offset at which its last blob ends."""
    table = TableScan(snapshot)
    options = ScanOptions(columns=[field.name], fragments=[fragment.id], use_threads=False)
    ends = []
    for batch in table.reader(table.plan(options), options):
        places = pa.Table.from_struct_array(batch.column(0).drop_null())
        beside = places.filter(pc.is_in(places["kind"], pa.array([PACKED, DEDICATED, MANAGED], pa.uint8())))
        ends.append(_with_ends(beside).group_by(_KEYS).aggregate([("end", "max")]))
    if ends:
        found = pa.concat_tables(ends).group_by(_KEYS).aggregate([("end_max", "max")])
        yield from zip(*(found[name].to_pylist() for name in (*_KEYS, "end_max_max")), strict=True)


def _with_ends(places: pa.Table) -> pa.Table:
    """Return the file keys of blob descriptions, and the end of each blob, capped at the largest uint64."""
    position, size = _numbers(places, "position"), _numbers(places, "size")
    end = position + size
    end[end < position] = np.iinfo(np.uint64).max
    return places.select(_KEYS).append_column("end", pa.array(end))


def _numbers(places: pa.Table, name: str) -> NDArray[Any]:
    numbers: NDArray[Any] = places[name].combine_chunks().fill_null(0).to_numpy(zero_copy_only=False)
    return numbers
