"""The files of an R-tree.

page_data.lance
    bbox  struct of xmin, ymin, xmax, ymax (double): a bounding box
    id    uint64: the row of an item, or the number of a page, counted over all levels
    The levels follow one another. First come the items, then one box for each page of items, then one box for each page
    of these, and so on up to a level of one page. A page has page_size rows. The last page of a level may have fewer.
    Metadata: page_size, num_items, num_pages (of all levels), bbox (JSON: minx, miny, maxx, maxy; null if unknown)

nulls.lance
    nulls  binary, one row: the rows of null geometries (see `rows.row_set_bytes.row_address_map`)

Geometries without points, those with a NaN, and those that DuckDB may refuse appear in neither file. DuckDB's functions
may be true for NaN, so a search returns these rows as well: see `index.left_out`. The details message is empty. The
version is 0, which identifies rows by stable row id if the table has stable row ids.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

DATA: Final = "page_data.lance"
NULLS_FILE: Final = "nulls.lance"
BOX: Final = "bbox"
ID: Final = "id"
NULLS: Final = "nulls"
PAGE_SIZE: Final = "page_size"
NUM_ITEMS: Final = "num_items"
NUM_PAGES: Final = "num_pages"
TOTAL: Final = "bbox"
DEFAULT_PAGE_SIZE: Final = 4096
SIDES: Final = ("xmin", "ymin", "xmax", "ymax")

BOX_TYPE: Final = pa.struct([pa.field(side, pa.float64(), nullable=False) for side in SIDES])
DATA_SCHEMA: Final = pa.schema(
    [
        pa.field(BOX, BOX_TYPE, nullable=False, metadata={"ARROW:extension:name": "geoarrow.box"}),
        pa.field(ID, pa.uint64(), nullable=False),
    ]
)
NULLS_SCHEMA: Final = pa.schema([pa.field(NULLS, pa.binary(), nullable=False)])

Boxes = NDArray[np.float64]
"""Bounding boxes (n, 4): xmin, ymin, xmax, ymax."""


def level_sizes(num_items: int, page_size: int) -> list[int]:
    """Return the row count of each level, items first. The last level has one page, or no rows without items."""
    sizes = [num_items]
    while sizes[-1] > page_size:
        sizes.append(-(-sizes[-1] // page_size))
    return sizes
