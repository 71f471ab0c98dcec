"""HTML descriptions of a table and its indexes for notebooks, and an SVG of the layout, from metadata alone."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.markup import facts_html, rows_html, size_text
from lance_duck.redact import shown
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.indexes.describe import INDEX_HEAD, IndexDescription, describe_indices, index_cells

_WIDTH, _LABEL, _BOX, _BAR, _GAP = 640, 140, 26, 12, 5  # widths and heights, in pixels
_MOST_BOXES: Final = 200
_MOST_BARS: Final = 12
_LETTERS: Final = 20  # maximum length of a name
_ROWS, _DELETED, _COVERED, _BARE = "#5b8ff9", "#e8684a", "#5ad8a6", "#d9d9d9"


def table_html(uri: str, snapshot: Snapshot) -> Iterator[str]:
    """Yield the HTML that describes a version: its statistics, columns and indexes."""
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


def layout_svg(snapshot: Snapshot, indexes: Sequence[IndexDescription]) -> str:
    """Return the layout of a version as SVG.

    Each fragment is a box whose width is proportional to its row count. Deleted rows are red. Each index is a bar below
    the boxes, coloured over the fragments that it covers. If there are too many fragments, neighbours share a box.

    Returns:
        The SVG. Empty for a table without fragments, or if the metadata lacks row counts.
    """
    fragments = snapshot.fragments
    rows = np.array([fragment.physical_rows for fragment in fragments], np.int64)
    if fragments.row_counts() is None or not rows.sum():
        return ""
    deletions = np.array([fragment.num_deletions for fragment in fragments], np.int64)
    starts = np.unique(np.linspace(0, len(rows), _MOST_BOXES, endpoint=False).astype(np.int64))
    sizes = np.add.reduceat(rows, starts)
    scale = (_WIDTH - _LABEL) / sizes.sum()
    parts = [_label("fragments", _BOX / 2)]
    parts += _boxes(sizes, np.add.reduceat(deletions, starts), 0, _BOX, scale, (_ROWS, _DELETED))
    top = _BOX + _GAP
    ids = np.array(fragments.ids())
    for index in indexes[:_MOST_BARS]:
        coverage = sorted(set().union(*(segment.fragment_ids for segment in index.segments)))
        bare = np.add.reduceat(np.where(np.isin(ids, coverage), 0, rows), starts)
        parts.append(_label(index.name, top + _BAR / 2))
        parts += _boxes(sizes, bare, top, _BAR, scale, (_COVERED, _BARE))
        top += _BAR + _GAP
    frame = f'xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{top}" viewBox="0 0 {_WIDTH} {top}"'
    return f'<svg {frame} role="img" aria-label="layout" font-family="sans-serif" font-size="11">{"".join(parts)}</svg>'


def _boxes(
    sizes: NDArray[np.int64], less: NDArray[np.int64], top: int, height: int, scale: float, colors: tuple[str, str]
) -> Iterator[str]:
    """Yield adjacent boxes in two colours. The second colour shows the rows that `less` counts."""
    ends = np.cumsum(sizes) * scale + _LABEL
    for end, size, missing in zip(ends.tolist(), (sizes * scale).tolist(), (less * scale).tolist(), strict=True):
        edge = min(1.0, size / 4)  # width of the gap between neighbouring boxes
        there = max(size - missing, 0)
        yield _box((end - size, top, there, height), colors[0])
        yield _box((end - size + there, top, max(size - there - edge, 0), height), colors[1])
        yield _box((end - edge, top, edge, height), "white")


def _box(place: Iterable[float], color: str) -> str:
    x, y, width, height = (f"{number:.1f}" for number in place)
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{color}"/>' if width != "0.0" else ""


def _label(text: str, middle: float) -> str:
    short = text if len(text) <= _LETTERS else text[: _LETTERS - 1] + "…"
    return f'<text x="0" y="{middle + 4:.1f}" fill="currentColor">{html.escape(short)}</text>'
