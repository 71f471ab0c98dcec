"""Opening a B-tree. `layout` has the files."""

from __future__ import annotations

import pyarrow as pa

from lance_duck.errors import UnsupportedError
from lance_duck.index.btree.costs import TREE_BYTES
from lance_duck.index.btree.entries import BTreeEntries
from lance_duck.index.btree.keys import key_maker
from lance_duck.index.btree.layout import DATA, LOOKUP, layout_of
from lance_duck.index.btree.lookup import Lookup
from lance_duck.index.btree.reader import BTreeIndex
from lance_duck.index.files import SegmentReader


def open_tree(files: SegmentReader, type_: pa.DataType, cache_bytes: int = TREE_BYTES) -> BTreeIndex:
    """Open a B-tree, which reads page_lookup.lance.

    Args:
        files: Files of the segment.
        type_: Storage type of the values.
        cache_bytes: Bytes of entries that are cached.

    Raises:
        NotFoundError: A file is missing.
        CorruptError: The files are not those of a B-tree over such values, or contradict each other.
        UnsupportedError: Values of the type have no order.
    """
    make = key_maker(type_)
    if make is None:
        raise UnsupportedError("values of this type in a B-tree", where=files.directory, found=type_)
    files.open_ahead([LOOKUP, DATA])
    file = files.open(LOOKUP)
    layout = layout_of(file.metadata, file.path)
    data = [files.open(name) for name in layout.files]
    lookup = Lookup(file, layout, [each.num_rows for each in data], type_, make)
    return BTreeIndex(lookup, BTreeEntries(data, lookup, type_, make, cache_bytes), type_)
