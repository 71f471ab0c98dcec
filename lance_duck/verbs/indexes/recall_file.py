"""The recall of settings of searches, measured on a new vector segment, and stored with it."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from lance_duck.errors import LanceDuckError
from lance_duck.index.build import builds_by_row_id
from lance_duck.index.catalog import Segment
from lance_duck.index.kind import Details
from lance_duck.index.opened import segment_files
from lance_duck.index.vector.kind import VECTOR
from lance_duck.index.vector.layout import RECALL_FILE
from lance_duck.scan.nearest.covered import CoveredVectors
from lance_duck.scan.nearest.options import vector_column
from lance_duck.scan.nearest.settings.segment_curves import measured_at_build
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.indexes.describe import fragment_ids
from lance_duck.wire.index import IndexMetadata, index_from_proto


def with_recall(snapshot: Snapshot, path: str, metadata: IndexMetadata) -> IndexMetadata:
    """Measure the recall of a segment, write it beside the segment, and return the metadata with that file listed.

    The metadata is returned unchanged if nothing can be measured: searches work without the file, so no failure is an
    error.

    Args:
        snapshot: Version that the segment was built from.
        path: Dotted path of the column.
        metadata: Metadata of the segment, which is not part of the table yet.
    """
    names = {name for name, _ in metadata.files}
    if metadata.details_type != VECTOR.type_url or not names or RECALL_FILE in names:
        return metadata
    with suppress(LanceDuckError):
        data = _measured(snapshot, path, metadata)
        if data is not None:
            snapshot.store.put(f"{metadata.directory}/{RECALL_FILE}", data)
            metadata.proto.files.add(path=RECALL_FILE, size_bytes=len(data))
            return index_from_proto(metadata.proto, snapshot.uri)
    return metadata


def _measured(snapshot: Snapshot, path: str, metadata: IndexMetadata) -> bytes | None:
    """Return the file; opens the segment without caching it, as it may never become part of the table."""
    field = snapshot.schema.by_path(path)
    column = vector_column(TableScan(snapshot), path)  # refuses several vectors a row, for which no recall is promised
    index = VECTOR.open(
        segment_files(snapshot, metadata), field.storage_type, Details(metadata.version, metadata.details)
    )
    present = snapshot.fragments.id_set
    fragments = np.array([i for i in sorted(fragment_ids(metadata)) if i in present], np.uint32)
    by_row_id = builds_by_row_id(snapshot, VECTOR)
    segment = Segment(metadata, VECTOR, field, path, field.storage_type, fragments, by_row_id)
    rows = CoveredVectors(snapshot, segment, index)
    return measured_at_build(TableScan(snapshot), column, segment, index, rows)
