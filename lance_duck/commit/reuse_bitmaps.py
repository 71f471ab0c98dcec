"""Fragment bitmaps translated by a fragment reuse index."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lance_duck.arrow.distinct import intersection_of
from lance_duck.commit.index_coverage import SYSTEM, Segments, bitmap_fragments
from lance_duck.errors import LanceDuckError
from lance_duck.index.reuse import reuse_of
from lance_duck.rows import roaring_bytes
from lance_duck.snapshot import Snapshot
from lance_duck.wire.pb import table_pb2


def remapped_segments(snapshot: Snapshot, segments: Sequence[table_pb2.IndexMetadata]) -> Segments:
    """Return segments with bitmaps of the fragments that hold their rows now, which changes of a fragment must find.

    Where the fragment reuse index cannot be read, fragments that no longer exist leave the bitmap for good.
    """
    try:
        reuse = reuse_of(snapshot)
    except LanceDuckError:
        reuse = None
    present = np.array(sorted(snapshot.fragments.ids()), np.uint32)
    result = []
    for segment in segments:
        ids = None if segment.name in SYSTEM else bitmap_fragments(segment)
        if ids is not None:
            now = intersection_of(ids, present) if reuse is None else reuse.coverage(ids)
            if not np.array_equal(ids, now):
                copied = table_pb2.IndexMetadata()
                copied.CopyFrom(segment)
                copied.fragment_bitmap = roaring_bytes(now)
                segment = copied
        result.append(segment)
    return result
