"""Losses: the rows and other parts of a version that can no longer be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from os import cpu_count
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.errors import CorruptError, InvalidInputError, NotFoundError
from lance_duck.file.column import ColumnReader, open_column
from lance_duck.file.reader import LanceFile
from lance_duck.index.vector.layout import RECALL_FILE
from lance_duck.maintenance.validation.blobs import lost_blobs
from lance_duck.maintenance.validation.files import DAMAGED, check_segment
from lance_duck.snapshot import Snapshot
from lance_duck.snapshot.overlays import overlaid_rows, with_overlays
from lance_duck.store import run
from lance_duck.wire.files.overlay import Overlay
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.index import IndexMetadata
from lance_duck.wire.limits import ROW_OFFSETS
from lance_duck.wire.schema import Field, Schema
from lance_duck.wire.schema_write import with_item_names

_FEWEST: Final = 64
"""Ranges of at most this many rows are not halved further, because chunks of pages rarely have fewer rows."""

_UNREADABLE: Final = (CorruptError, NotFoundError)
"""Errors that indicate a loss. Other errors may be temporary, or disappear with a newer version of this package."""


@dataclass(frozen=True)
class Losses:
    """The parts of a version that cannot be read.

    Attributes:
        rows: Offsets of live rows with an unreadable value, by fragment: uint32, ascending.
        columns: Names of the columns with unreadable values, by fragment.
        deletions: Ids of the fragments with an unreadable deletion file, whose deleted rows are unknown.
        segments: Index segments with a damaged file.
        overlays: Overlays that cannot be opened, by fragment. The rows that they cover are lost.
        renamed: Names of the columns whose list items a repair renames. They are not losses.
    """

    rows: Mapping[int, NDArray[np.uint32]]
    columns: Mapping[int, tuple[str, ...]]
    deletions: tuple[int, ...]
    segments: tuple[IndexMetadata, ...]
    overlays: Mapping[int, tuple[Overlay, ...]]
    renamed: tuple[str, ...] = ()

    @property
    def num_rows(self) -> int:
        """Number of lost rows."""
        return sum(map(len, self.rows.values()))

    def __bool__(self) -> bool:
        return bool(self.rows or self.deletions or self.segments or self.overlays)


def find_losses(snapshot: Snapshot) -> Losses:
    """Read a version completely, and return the parts that cannot be read.

    Raises:
        InvalidInputError: Checksum verification is off for the table, or its manifest contradicts its files.
        UnsupportedError: A file cannot be read by this package, and may be intact.
        StoreError: The disk or the service failed.
    """
    if not snapshot.store.checksums:
        raise InvalidInputError(
            "checksum verification is disabled", where=snapshot.uri, remedy='remove the storage option "checksums"'
        )
    with ThreadPoolExecutor(cpu_count() or 1, thread_name_prefix="lance_duck-losses") as pool:
        lost = dict(zip(snapshot.fragments.ids(), pool.map(partial(_lost, snapshot), snapshot.fragments), strict=True))
        checks = list(pool.map(partial(check_segment, snapshot), snapshot.indices))
    return Losses(
        {number: one.rows for number, one in lost.items() if len(one.rows)},
        {number: one.columns for number, one in lost.items() if len(one.rows)},
        tuple(number for number, one in lost.items() if not one.deletions_known),
        tuple(
            segment
            for segment, files in zip(snapshot.indices, checks, strict=True)
            if any(file.checksums == DAMAGED and not file.file.endswith(RECALL_FILE) for file in files)
        ),
        {number: one.overlays for number, one in lost.items() if one.overlays},
        renamed_lists(snapshot.schema),
    )


def renamed_lists(schema: Schema) -> tuple[str, ...]:
    """Return the names of the columns with list items that have DuckDB's names, at any depth."""
    pairs = zip(schema.fields, with_item_names(schema).fields, strict=True)
    return tuple(before.name for before, after in pairs if before != after)


@dataclass(frozen=True, slots=True)
class _FragmentLosses:
    """The parts of a fragment that cannot be read."""

    rows: NDArray[np.uint32]
    columns: tuple[str, ...]
    deletions_known: bool
    overlays: tuple[Overlay, ...]


def _lost(snapshot: Snapshot, fragment: Fragment) -> _FragmentLosses:
    total = snapshot.physical_rows(fragment)
    _check_rows(snapshot, fragment, total)
    try:
        deletions, is_known = snapshot.deletion_vector(fragment), True
    except _UNREADABLE:
        deletions, is_known = None, False
    lost = np.zeros(total, np.bool_)
    broken = tuple(o for o in fragment.overlays if not _opens(snapshot, replace(fragment, overlays=(o,)), total))
    for overlay in broken:
        lost[_covered(snapshot, overlay, total)] = True
    fragment = replace(fragment, overlays=tuple(o for o in fragment.overlays if o not in broken))
    names = []
    for field in snapshot.schema.fields:
        rows = _lost_values(snapshot, fragment, field, total)
        lost |= rows
        if rows.any() or any(each.id in overlay.file.fields for overlay in broken for each in field.walk()):
            names.append(field.name)
    if deletions is not None:
        lost[deletions.deleted] = False
    return _FragmentLosses(np.flatnonzero(lost).astype(np.uint32), tuple(names), is_known, broken)


def _check_rows(snapshot: Snapshot, fragment: Fragment, total: int) -> None:
    """Raise InvalidInputError if the row count of a data file contradicts the manifest. No rows are lost then."""
    for file in fragment.files:
        with suppress(*_UNREADABLE):
            rows = snapshot.data_file(file).num_rows
            if rows == total:
                continue
            raise InvalidInputError(
                f"wrong row count of fragment {fragment.id} in the manifest",
                where=snapshot.uri,
                expected=f"{rows}, as in {file.path}",
                found=total,
                remedy="restore an older version",
            )
    if total > ROW_OFFSETS:
        raise InvalidInputError(f"the row count of fragment {fragment.id} is unknown", where=snapshot.uri, found=total)


def _opens(snapshot: Snapshot, fragment: Fragment, num_rows: int) -> bool:
    """Return whether the overlays of a fragment can be opened, regardless of its data files."""
    try:
        for field in snapshot.schema.fields:
            with_overlays(snapshot, fragment, field, open_column(field, lambda _: None, num_rows))
    except _UNREADABLE:
        return False
    return True


def _covered(snapshot: Snapshot, overlay: Overlay, num_rows: int) -> NDArray[np.int64]:
    """Return the offsets of rows for which an overlay has a value, or all rows if unknown."""
    try:
        return overlaid_rows(snapshot, overlay, num_rows)
    except CorruptError:
        return np.arange(num_rows)


def _lost_values(snapshot: Snapshot, fragment: Fragment, field: Field, num_rows: int) -> NDArray[np.bool_]:
    """Return a mask of the rows of a fragment in which a column cannot be read."""
    lost = np.zeros(num_rows, np.bool_)
    places = {
        id_: (file, index)
        for file in reversed(fragment.files)
        for id_ in file.fields
        if (index := file.column_of(id_)) is not None
    }

    def locate(field_id: int) -> tuple[LanceFile, int] | None:
        place = places.get(field_id)
        return None if place is None else (snapshot.data_file(place[0]), place[1])

    if not fragment.overlays and not any(f.id in places for f in field.walk()):
        return lost
    try:
        reader = with_overlays(snapshot, fragment, field, open_column(field, locate, num_rows))
    except _UNREADABLE:
        return ~lost
    for start, stop in _unreadable(reader, 0, num_rows):
        lost[start:stop] = True
    if field.blob_version == 2:
        file, _ = locate(field.id) or (None, 0)
        sound = np.flatnonzero(~lost)
        if file is not None and len(sound):
            lost[sound] = lost_blobs(file, run(reader.read(sound)))
    return lost


def _unreadable(reader: ColumnReader, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the unreadable parts of a range of rows. Finds them by halving the range."""
    try:
        run(reader.read(slice(start, stop)))
    except _UNREADABLE:
        if stop - start <= _FEWEST:
            yield start, stop
            return
        middle = (start + stop) // 2
        yield from _unreadable(reader, start, middle)
        yield from _unreadable(reader, middle, stop)
