"""The file of a bitmap or label list index.

bitmap_page_lookup.lance
    keys      the distinct values of a column, or of the items of its lists, possibly including null; floats with
              different bits are different keys
    bitmaps   binary: the rows of each key, a row address map (see `rows.row_set_bytes`)
    metadata  lance:index_stats = {"num_bitmaps": number of rows}
for label lists also
    metadata  lance:label_list_nulls = number of the global buffer with the rows of null lists, a row address map;
              missing in version 0
    metadata  lance_duck:exact = 1: the file contains only current items

Empty lists do not have entries. The details message is empty. The version is 0 for bitmap indexes, and 1 for label
lists. Rows are stored as stable row ids if the table has them, otherwise as addresses.

When other writers merge label list segments, they keep the items that rows had before an update. Every row that is
found in their segments must therefore be checked. Files that this package builds from rows, or merges from exact
files, are exact.
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
