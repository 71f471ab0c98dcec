"""The indexed columns of a version. Only its manifest is read."""

from __future__ import annotations

import pyarrow as pa

from lance_duck.index.catalog import catalog
from lance_duck.index.query import Among
from lance_duck.snapshot import Snapshot


def indexed_columns(snapshot: Snapshot) -> frozenset[str]:
    """Return the top-level columns with an equality index. The result is computed once per snapshot."""
    return snapshot.derived("indexed columns", lambda: _indexed(snapshot))


def _indexed(snapshot: Snapshot) -> frozenset[str]:
    tops = {field.id: field for field in snapshot.schema.fields}
    names = set()
    for index in catalog(snapshot):
        field = tops.get(index.segments[0].field.id) if index.segments else None
        if field is not None and index.answers(Among(pa.nulls(0, index.segments[0].type))):
            names.add(field.name)
    return frozenset(names)
