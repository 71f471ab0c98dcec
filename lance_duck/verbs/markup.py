"""HTML by which a notebook shows a table and its indexes, from metadata alone."""

from __future__ import annotations

import html
from collections.abc import Iterator

from lance_duck.markup import facts_html, rows_html, size_text
from lance_duck.redact import shown
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.indexes.describe import INDEX_HEAD, describe_indices, index_cells
from lance_duck.verbs.layout_picture import layout_svg


def table_html(uri: str, snapshot: Snapshot) -> Iterator[str]:
    """Yield the HTML that describes a version: its figures, columns and indexes."""
    counts = snapshot.fragments.row_counts()
    rows = None if counts is None else sum(counts)
    files = [file for fragment in snapshot.fragments for file in fragment.files]
    deletions = sum(fragment.deletion_file is not None for fragment in snapshot.fragments)
    facts = {
        "version": f"{snapshot.version} of {snapshot.timestamp:%Y-%m-%d %H:%M:%S} UTC",
        "rows": "not in the metadata" if rows is None else f"{rows:,}",
        "fragments": f"{len(snapshot.fragments):,}" + (f", {deletions:,} with deleted rows" if deletions else ""),
        "data files": f"{len(files):,}, {size_text(sum(file.file_size or 0 for file in files))}",
    }
    yield f"<div><b>LanceDataset</b> {html.escape(shown(uri))}{facts_html(facts)}"
    fields = ((field.name, str(field.type)) for field in snapshot.schema.arrow)
    yield rows_html(("column", "type"), fields)
    described = describe_indices(snapshot)
    if described:
        cells = (index_cells(index, rows) for index in described)
        yield rows_html(INDEX_HEAD, cells)
    yield layout_svg(snapshot, described)
    yield "</div>"
