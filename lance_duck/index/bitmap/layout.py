"""The file of a bitmap or label list index.

bitmap_page_lookup.lance
    keys      the distinct values of a column, or items of its lists, one of them perhaps null; floats with different
              bits are different keys
    bitmaps   binary: the rows of each key, a row address map (see `rows.row_set_bytes`)
    metadata  lance:index_stats = {"num_bitmaps": number of rows}
of label lists also
    metadata  lance:label_list_nulls = number of the global buffer with the row address map of the rows whose list is
              null; missing in version 0
    metadata  lance_duck:exact = 1: the file has current items only

A list without items has no entry at all. Details are an empty message; the version is 0, of label lists 1. Rows go by
their stable ids where the table has them.

When other writers merge segments of label lists they keep the items that rows had before an update: every row that such
segments find must be checked. Files that were written here, from rows or from such files, are exact.
"""

from __future__ import annotations

from typing import Final

FILE: Final = "bitmap_page_lookup.lance"
KEYS: Final = "keys"
BITMAPS: Final = "bitmaps"
STATISTICS: Final = "lance:index_stats"
LIST_NULLS: Final = "lance:label_list_nulls"
EXACT: Final = "lance_duck:exact"
LIST_VERSION: Final = 1
