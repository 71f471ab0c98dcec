"""Collects items: bounding boxes with their rows. Items beyond the memory limit wait in a temporary file."""

from __future__ import annotations

import tempfile
from types import TracebackType
from typing import IO, Any

import numpy as np
import pyarrow as pa

from lance_duck.errors import StoreError
from lance_duck.index.kind import ROW, VALUE, BuildOptions, Rows
from lance_duck.index.rtree.boxes import boxes_of, hilbert
from lance_duck.index.rtree.costs import BLOCK_ITEMS, ITEM_BYTES
from lance_duck.index.rtree.layout import Boxes
from lance_duck.rows.row_set import RowSet

_ITEM = np.dtype([("box", "<f8", (4,)), ("row", "<u8")])


class Items:
    """The items of a new segment. A context manager that removes its temporary file.

    Args:
        options: The memory limit, and the callback for progress.

    Attributes:
        count: Number of items.
        nulls: Rows of null geometries.
        total: Box around all items, (4,). NaN without items.
    """

    def __init__(self, options: BuildOptions) -> None:
        self.count = 0
        self.nulls = RowSet({})
        self.total: Boxes = np.full(4, np.nan)
        self._most = max(1, options.memory_limit // ITEM_BYTES)
        self._progress = options.progress
        self._seen = 0
        self._blocks: list[Any] = []
        self._file: IO[bytes] | None = None

    def add_rows(self, batch: pa.RecordBatch) -> None:
        """Add geometries. Raises InvalidInputError if one is not WKB."""
        geometries, rows = batch.column(VALUE), batch.column(ROW)
        boxes = boxes_of(geometries, rows)
        names = rows.to_numpy()
        is_null = geometries.is_null().to_numpy(zero_copy_only=False)
        self.nulls = RowSet.union([self.nulls, RowSet.of(names[is_null])])
        has_box = ~np.isnan(boxes[:, 0])
        self.add(boxes[has_box], names[has_box])
        self._seen += batch.num_rows
        if self._progress is not None:
            self._progress(self._seen)

    def add(self, boxes: Boxes, rows: Rows) -> None:
        """Add boxes with their rows. Raises StoreError if the temporary file cannot be written."""
        if not len(boxes):
            return
        block = np.empty(len(boxes), _ITEM)
        block["box"], block["row"] = boxes, rows
        self.count += len(block)
        low, high = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
        self.total = np.concatenate([np.fmin(self.total[:2], low), np.fmax(self.total[2:], high)])
        self._blocks.append(block)
        if sum(map(len, self._blocks)) > self._most:
            self._spill()

    def sorted(self) -> Any:
        """Yield boxes (n, 4) and rows (n,) along a Hilbert curve, in blocks."""
        items = self._all()
        place = np.empty(self.count, np.uint32)
        for start in range(0, self.count, BLOCK_ITEMS):
            part = slice(start, start + BLOCK_ITEMS)
            place[part] = hilbert(items["box"][part], self.total)
        order = np.argsort(place, kind="stable")
        del place
        for start in range(0, self.count, BLOCK_ITEMS):
            block = items[order[start : start + BLOCK_ITEMS]]
            yield block["box"], block["row"]

    def __enter__(self) -> Items:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._blocks = []
        if self._file is not None:
            self._file.close()

    def _spill(self) -> None:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="lance_duck-")  # noqa: SIM115
            while self._blocks:
                self._file.write(self._blocks.pop(0).tobytes())
        except OSError as error:
            raise StoreError("cannot write a temporary file", where=tempfile.gettempdir(), found=str(error)) from error

    def _all(self) -> Any:
        if self._file is None:
            return np.concatenate(self._blocks) if self._blocks else np.empty(0, _ITEM)
        self._spill()
        self._file.flush()
        return np.memmap(self._file, _ITEM, "r", shape=(self.count,))
