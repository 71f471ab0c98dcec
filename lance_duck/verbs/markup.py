"""Tables, indexes and connections as a notebook shows them: HTML, from metadata alone."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from lance_duck.redact import shown
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.indexes.describe import IndexDescription, describe_indices
from lance_duck.verbs.layout_picture import layout_svg

_UNITS: Final = ("KiB", "MiB", "GiB", "TiB", "PiB")


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
        yield rows_html(("index", "kind", "columns", "rows covered", "size"), cells)
    yield layout_svg(snapshot, described)
    yield "</div>"


def index_cells(index: IndexDescription, rows: int | None) -> tuple[str, ...]:
    """Return what a row of a table says of an index.

    Args:
        index: The index.
        rows: Rows of the version; None: not known.
    """
    share = f" of {rows:,}" if rows is not None else ""
    size = "" if index.total_size_bytes is None else size_text(index.total_size_bytes)
    return index.name, index.index_type, ", ".join(index.field_names), f"{index.num_rows_indexed:,}{share}", size


def facts_html(facts: Mapping[str, str]) -> str:
    """Return a table of names and values."""
    rows = (f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>" for name, value in facts.items())
    return f"<table><tbody>{''.join(rows)}</tbody></table>"


def rows_html(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with a head."""
    names = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    cells = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"


def size_text(size: int) -> str:
    """Return a number of bytes as "512 B", or as "1.5 KiB" and so on, with one digit behind the point."""
    if size < 1024:
        return f"{size} B"
    power = min((size.bit_length() - 1) // 10, len(_UNITS))
    if round(size / (1 << 10 * power), 1) == 1024 and power < len(_UNITS):
        power += 1
    return f"{size / (1 << 10 * power):,.1f} {_UNITS[power - 1]}"
