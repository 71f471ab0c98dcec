"""Data overlays, which pylance 14 supports if an environment variable is set."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

os.environ.setdefault("LANCE_ENABLE_UNSTABLE_DATA_OVERLAY_FILES", "1")  # read once, at the first use

import lance
import pyarrow as pa
from lance.file import LanceFileWriter
from lance.fragment import DataFile


def add_overlay(
    uri: str,
    fragment_id: int,
    values: pa.Table,
    offsets: Sequence[int] | Sequence[Sequence[int]],
    version: str = "2.1",
) -> Any:
    """Commit new values of some rows of a fragment.

    Args:
        uri: Table URI.
        fragment_id: Fragment id.
        values: Columns of the table; with a list of offsets for each of their fields, as deep as they are.
        offsets: Physical offsets of the rows.
        version: Data file version, 2.1 or later.
    """
    operation = lance.LanceOperation
    overlay = operation.DataOverlayFile(write_values(uri, values, version), offsets)
    change = operation.DataOverlay([operation.DataOverlayGroup(fragment_id, [overlay])])
    return lance.LanceDataset.commit(uri, change, read_version=lance.dataset(uri).version)


def write_values(uri: str, values: pa.Table, version: str) -> DataFile:
    """Write columns of a table as a data file of it that no manifest names."""
    fields = {field.name(): field for field in lance.dataset(uri).lance_schema.fields()}
    walked = [each for name in values.column_names for each in _walk(fields[name])]
    columns = iter(range(len(walked)))
    indices = [-1 if each.children() else next(columns) for each in walked]
    name = f"{uuid4()}.lance"
    path = Path(uri) / "data" / name
    with LanceFileWriter(str(path), schema=values.schema, version=version) as writer:
        writer.write_batch(values)
    major, minor = map(int, version.split("."))
    return DataFile(name, [each.id() for each in walked], indices, major, minor, path.stat().st_size)


def _walk(field: Any) -> Iterator[Any]:
    yield field
    for child in field.children():
        yield from _walk(child)
