"""The files of a B-tree.

page_data.lance         all entries in order: values (type of the column, nullable), nulls first; ids (uint64): rows
page_lookup.lance       one row per page of entries: min (type of the column; null if the first entry is null), max
                        (type of the column; null if the last entry is null), null_count (uint32), page_idx (uint32)
part_{id}_page_data.lance   instead of page_data.lance if entries are split by ranges of values into several files

The metadata of page_lookup.lance stores the number of entries per page (batch_size). The last page of a file may have
fewer. If range_partitioned is "true", the entries are split into parts. The JSON of page_num_per_range_partition then
lists the part ids, each with its number of pages; page_idx numbers the pages of all parts consecutively.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import CorruptError

DATA: Final = "page_data.lance"
LOOKUP: Final = "page_lookup.lance"
VALUES: Final = "values"
IDS: Final = "ids"
MIN: Final = "min"
MAX: Final = "max"
NULL_COUNT: Final = "null_count"
PAGE: Final = "page_idx"

BATCH_SIZE: Final = "batch_size"
PARTITIONED: Final = "range_partitioned"
PARTITIONS: Final = "page_num_per_range_partition"

PAGE_ROWS: Final = 4096


@dataclass(frozen=True)
class EntryLayout:
    """How entries are divided into pages and files.

    Attributes:
        page_rows: Number of entries per page. The last page of a file may have fewer.
        files: Names of the data files, in order.
        pages: Number of pages of each file. None for a single file that contains all pages.
    """

    page_rows: int
    files: tuple[str, ...]
    pages: tuple[int, ...] | None

    def bounds(self, rows: list[int], num_pages: int, where: str) -> NDArray[np.int64]:
        """Return the position of each page's first entry across all files, followed by the number of entries.

        Args:
            rows: Number of entries of each file.
            num_pages: Number of pages in page_lookup.lance.
            where: Name of the file, for messages.

        Raises:
            CorruptError: The files do not have the listed pages, or have too many entries.
        """
        pages = [-(-count // self.page_rows) for count in rows]
        if sum(pages) != num_pages:
            raise CorruptError("wrong page count of the B-tree", where=where, expected=sum(pages), found=num_pages)
        if sum(rows) >= 1 << 63:
            raise CorruptError(
                "too many entries in the B-tree", where=where, expected="fewer than 2^63", found=sum(rows)
            )
        if self.pages is not None and pages != list(self.pages):
            raise CorruptError(
                "wrong page counts of the partitions", where=where, expected=list(self.pages), found=pages
            )
        starts = np.cumsum([0, *rows])
        firsts = [start + np.arange(count) * self.page_rows for start, count in zip(starts, pages, strict=False)]
        return np.concatenate([*firsts, starts[-1:]]).astype(np.int64)


def data_schema(type_: pa.DataType) -> pa.Schema:
    """Return the schema of the data files for a column type."""
    return pa.schema([pa.field(VALUES, type_), pa.field(IDS, pa.uint64(), nullable=False)])


def lookup_schema(type_: pa.DataType) -> pa.Schema:
    """Return the schema of page_lookup.lance for a column type."""
    counts = [pa.field(name, pa.uint32(), nullable=False) for name in (NULL_COUNT, PAGE)]
    return pa.schema([pa.field(MIN, type_), pa.field(MAX, type_), *counts])


def lookup_metadata(page_rows: int) -> dict[str, str]:
    """Return the metadata of page_lookup.lance for a single page_data.lance."""
    return {BATCH_SIZE: str(page_rows), PARTITIONED: "false"}


def layout_of(metadata: Mapping[str, str], where: str) -> EntryLayout:
    """Parse the metadata of page_lookup.lance.

    Raises:
        CorruptError: The metadata is invalid.
    """
    text = metadata.get(BATCH_SIZE, str(PAGE_ROWS))
    if not (text.isascii() and text.isdecimal() and len(text) < 16 and int(text) > 0):
        raise CorruptError(BATCH_SIZE, where=where, expected="a number above 0", found=repr(text[:40]))
    if metadata.get(PARTITIONED, "false") != "true":
        return EntryLayout(int(text), (DATA,), None)
    parts = _parts(metadata.get(PARTITIONS, ""), where)
    return EntryLayout(int(text), tuple(f"part_{part}_{DATA}" for part, _ in parts), tuple(pages for _, pages in parts))


def _parts(text: str, where: str) -> list[tuple[int, int]]:
    try:
        parts = [(part, pages) for part, pages in json.loads(text)]
    except (ValueError, TypeError) as error:
        raise CorruptError(PARTITIONS, where=where, found=repr(text[:40])) from error
    if not parts or not all(type(n) is int and 0 <= n < 1 << 64 for part in parts for n in part):
        raise CorruptError(PARTITIONS, where=where, expected="pairs of numbers", found=repr(text[:40]))
    return parts
