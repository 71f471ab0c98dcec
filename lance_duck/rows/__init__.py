"""Row identifiers and row sets: addresses, stable row ids, deletion vectors, row versions, and roaring bitmaps.

You hold: bytes of deletion files, row id sequences and bitmaps. You get: offsets, addresses and ids as numpy arrays.
Bytes are parsed strictly. Inconsistent input is rejected before any memory is allocated for it. Never here: values of
rows.
"""

from lance_duck.rows.deletion import DeletionVector, read_deletion_vector
from lance_duck.rows.roaring import fragments_in_bitmap, roaring_bytes, roaring_values
from lance_duck.rows.row_id_index import RowIdIndex
from lance_duck.rows.row_ids import RowIdSequence, read_row_ids, row_addresses, split_addresses
from lance_duck.rows.versions import VersionSequence, read_versions

__all__ = [
    "DeletionVector",
    "RowIdIndex",
    "RowIdSequence",
    "VersionSequence",
    "fragments_in_bitmap",
    "read_deletion_vector",
    "read_row_ids",
    "read_versions",
    "roaring_bytes",
    "roaring_values",
    "row_addresses",
    "split_addresses",
]
