"""Indexed columns of a version, from the manifest alone."""

from __future__ import annotations

import pyarrow as pa

from lance_duck.index.catalog import catalog
from lance_duck.index.query import Among
from lance_duck.scan.costs import INDEXED_SHARE
from lance_duck.snapshot import Snapshot


def indexed_columns(snapshot: Snapshot) -> frozenset[str]:
    """Return the top-level columns whose index answers equality for most rows; computed once for a snapshot."""
    return snapshot.derived("indexed columns", lambda: _indexed(snapshot))


def _indexed(snapshot: Snapshot) -> frozenset[str]:
    rows = {fragment.id: fragment.num_rows for fragment in snapshot.fragments}
    least = sum(rows.values()) * INDEXED_SHARE
    tops = {field.id: field for field in snapshot.schema.fields}
    names = set()
    for index in catalog(snapshot):
        field = tops.get(index.segments[0].field.id) if index.segments else None
        if field is None or not index.answers(Among(pa.nulls(0, index.segments[0].type))):
            continue
        if sum(rows[int(i)] for i in index.fragments) >= least:
            names.add(field.name)
    return frozenset(names)
