"""Writes the files of an R-tree from sorted items."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from lance_duck.index.files import SegmentWriter
from lance_duck.index.kind import Details, Rows
from lance_duck.index.rtree.build import Items
from lance_duck.index.rtree.costs import BLOCK_ITEMS
from lance_duck.index.rtree.layout import (
    BOX_TYPE,
    DATA,
    DATA_SCHEMA,
    NULLS_FILE,
    NULLS_SCHEMA,
    NUM_ITEMS,
    NUM_PAGES,
    PAGE_SIZE,
    TOTAL,
    Boxes,
    level_sizes,
)
from lance_duck.rows.row_set_bytes import row_address_map


def write_tree_files(items: Items, page_size: int, writer: SegmentWriter) -> Details:
    """Write a segment. Returns its details.

    Raises:
        StoreError: The disk or the service failed.
    """
    sizes = level_sizes(items.count, page_size)
    file = writer.create(DATA, DATA_SCHEMA)
    above: list[Boxes] = []
    for boxes, rows in _in_pages(items.sorted(), page_size):
        file.write(_batch(boxes, rows))
        above.append(_pages(boxes, page_size))
    first = 0
    at_once = max(1, BLOCK_ITEMS // page_size) * page_size
    for _ in sizes[1:]:
        level = np.concatenate(above)
        above = []
        for start in range(0, len(level), at_once):
            part = level[start : start + at_once]
            numbers = np.arange(first + start, first + start + len(part), dtype=np.uint64)
            file.write(_batch(part, numbers))
            above.append(_pages(part, page_size))
        first += len(level)
    file.add_schema_metadata(PAGE_SIZE, str(page_size))
    file.add_schema_metadata(NUM_ITEMS, str(items.count))
    file.add_schema_metadata(NUM_PAGES, str(sum(-(-size // page_size) for size in sizes)))
    file.add_schema_metadata(TOTAL, _shown(items.total))
    writer.add(DATA, file)
    nulls = writer.create(NULLS_FILE, NULLS_SCHEMA)
    nulls.write(pa.record_batch([pa.array([row_address_map(items.nulls)], pa.binary())], schema=NULLS_SCHEMA))
    writer.add(NULLS_FILE, nulls)
    return Details(0)


def _in_pages(blocks: Iterable[tuple[Boxes, Rows]], page_size: int) -> Iterator[tuple[Boxes, Rows]]:
    """Yield the items in blocks of whole pages, except the last."""
    boxes: Boxes = np.empty((0, 4))
    rows: Rows = np.empty(0, np.uint64)
    for more_boxes, more_rows in blocks:
        boxes, rows = np.concatenate([boxes, more_boxes]), np.concatenate([rows, more_rows])
        whole = len(rows) - len(rows) % page_size
        if whole:
            yield boxes[:whole], rows[:whole]
            boxes, rows = boxes[whole:], rows[whole:]
    if len(rows):
        yield boxes, rows


def _pages(boxes: Boxes, page_size: int) -> Boxes:
    """Return the box around each page."""
    starts = np.arange(0, len(boxes), page_size)
    low = np.minimum.reduceat(boxes[:, :2], starts, axis=0)
    return np.concatenate([low, np.maximum.reduceat(boxes[:, 2:], starts, axis=0)], axis=1)


def _batch(boxes: Boxes, ids: Rows) -> pa.RecordBatch:
    sides = [pa.array(np.ascontiguousarray(boxes[:, i])) for i in range(4)]
    box = pa.StructArray.from_arrays(sides, fields=list(BOX_TYPE))
    return pa.RecordBatch.from_arrays([box, pa.array(ids, pa.uint64())], schema=DATA_SCHEMA)


def _shown(total: Boxes) -> str:
    names = ("minx", "miny", "maxx", "maxy")
    numbers = [float(side) if np.isfinite(side) else None for side in total]
    return json.dumps(dict(zip(names, numbers, strict=True)), separators=(",", ":"))
