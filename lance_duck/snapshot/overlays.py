"""Overlays of a fragment: reads their values, and finds index segments that do not include them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.distinct import difference_of, distinct
from lance_duck.errors import CorruptError
from lance_duck.file.column import ColumnReader
from lance_duck.file.overlays import OverlaidColumn, OverlayLayer, units_of
from lance_duck.rows import roaring_values
from lance_duck.snapshot.snapshot import Snapshot
from lance_duck.wire.files.overlay import Overlay
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.limits import ROW_OFFSETS
from lance_duck.wire.schema import Field


def with_overlays(snapshot: Snapshot, fragment: Fragment, field: Field, column: ColumnReader) -> ColumnReader:
    """Return a reader of a top-level column that includes overlay values.

    Args:
        snapshot: The version.
        fragment: The fragment.
        field: The column.
        column: Reader of the fragment's own values.

    Raises:
        CorruptError: An overlay is inconsistent.
        UnsupportedError: A blob has values in an overlay.
    """
    if not fragment.overlays:
        return column
    all_layers = ((unit, list(_layers(snapshot, fragment, unit.field))) for unit in units_of(field))
    layers = [(unit, own) for unit, own in all_layers if own]
    return OverlaidColumn(field, column, layers) if layers else column


def without_overlaid(
    snapshot: Snapshot, field_ids: set[int], version: int, fragments: NDArray[np.uint32]
) -> NDArray[np.uint32]:
    """Exclude fragments with overlays newer than an index segment.

    Args:
        snapshot: The version.
        field_ids: Fields of the segment and their descendants.
        version: Version that the segment was built on.
        fragments: Ids of the covered fragments. Ids of missing fragments are kept.
    """
    stale = [
        fragment_id
        for fragment_id, overlays in snapshot.derived("overlaid fragments", lambda: _overlaid(snapshot)).items()
        if any(o.committed_version > version and not field_ids.isdisjoint(o.file.fields) for o in overlays)
    ]
    return difference_of(fragments, np.array(stale, np.uint32)) if stale else fragments


def overlaid_rows(snapshot: Snapshot, overlay: Overlay, num_rows: int) -> NDArray[np.int64]:
    """Return the ascending offsets of the rows for which an overlay has a value in any field.

    Raises:
        CorruptError: A bitmap is corrupt.
    """
    where = f"{snapshot.uri}: {overlay.file.path}"
    offsets = [roaring_values(bitmap, where, ROW_OFFSETS) for bitmap in overlay.bitmaps]
    rows = distinct(np.concatenate(offsets))
    return rows[: np.searchsorted(rows, num_rows)].astype(np.int64)


def _overlaid(snapshot: Snapshot) -> dict[int, tuple[Overlay, ...]]:
    return {fragment.id: fragment.overlays for fragment in snapshot.fragments if fragment.overlays}


def _layers(snapshot: Snapshot, fragment: Fragment, field: Field) -> Iterator[OverlayLayer]:
    num_rows = snapshot.physical_rows(fragment)
    for overlay in fragment.overlays:
        bitmaps = {bitmap for each in field.walk() if (bitmap := overlay.bitmap_of(each.id)) is not None}
        if not bitmaps:
            continue
        where = f"{snapshot.uri}: {overlay.file.path}"
        if len(bitmaps) > 1:
            raise CorruptError(
                "an overlay has different rows for the parts of one field", where=where, found=field.name
            )
        values = roaring_values(bitmaps.pop(), where, ROW_OFFSETS)
        offsets = values[: np.searchsorted(values, num_rows)].astype(np.int64)
        file = snapshot.data_file(overlay.file)
        columns = {each.id: overlay.file.column_of(each.id) for each in field.walk()}
        places = {i: (file, column) for i, column in columns.items() if column is not None}
        yield OverlayLayer(places.get, offsets, len(values))
