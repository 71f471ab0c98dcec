"""Segments of one kind, built from values and searched without a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.kind import ROW, VALUE, BuildOptions, Details, IndexKind, MergeInput, ScalarIndex
from lance_duck.store import open_store


class Segments:
    """Builds, opens and merges segments of a kind in a folder."""

    def __init__(self, kind: IndexKind, folder: Path, version: str = "2.2") -> None:
        self.kind = kind
        self.folder = folder
        self.store = open_store(str(folder))
        self.version = version
        self.details = Details(-1)

    def build(self, values: pa.Array, rows: Any = None, *, batch: int = 1000, **options: Any) -> ScalarIndex:
        reader = self.reader(values, rows, batch)
        with SegmentWriter(self.store, self.version) as writer:
            self.details = self.kind.build(reader, writer, BuildOptions(**options))
        return self.open(writer.directory, values.type)

    def merge(
        self, parts: Sequence[MergeInput], values: pa.Array | None = None, rows: Any = None, **options: Any
    ) -> ScalarIndex:
        reader = None if values is None else self.reader(values, rows, 1000)
        with SegmentWriter(self.store, self.version) as writer:
            self.details = self.kind.merge(parts, reader, writer, BuildOptions(**options))
        type_ = getattr(parts[0].index, "type", pa.null()) if values is None else values.type
        return self.open(writer.directory, type_)

    def open(self, directory: str, type_: pa.DataType) -> ScalarIndex:
        self.directory = directory
        return self.kind.open(SegmentReader(self.store, directory), type_, self.details)

    def path(self, name: str) -> Path:
        """Return the path of a file of the last segment."""
        return self.folder / self.directory / name

    @staticmethod
    def reader(values: pa.Array, rows: Any, batch: int) -> pa.RecordBatchReader:
        names = np.arange(len(values), dtype=np.uint64) if rows is None else np.asarray(rows, np.uint64)
        table = pa.table({VALUE: values, ROW: names})
        return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=batch))


def stay(names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Keep all rows unchanged."""
    return names, np.ones(len(names), np.bool_)
