"""The band keys in a MinHash index.

_indices/{uuid}/signatures.lance    _rowid (version 0: stable row id, or address) or _rowaddr (version 1: address)
                                    uint64, signature fixed_size_list<uint16>; a row for each document
_indices/{uuid}/bands.lance         band_key uint64, doc_id uint32, sorted by both; a document has a row for each band
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.index.opened import segment_files, segment_name
from lance_duck.scan.duplicates.parameters import DETAILS, MinHashParameters
from lance_duck.snapshot import Snapshot
from lance_duck.wire.index import IndexMetadata
from lance_duck.wire.schema import Field

UInt64s = NDArray[np.uint64]
_NAMES: Final = ("_rowid", "_rowaddr")
"""Columns of row ids or addresses, by version."""


@dataclass(frozen=True, eq=False)
class SignedRows:
    """The documents of a segment.

    Attributes:
        rows: Row ids or addresses; uint64.
        by_row_id: Whether `rows` are stable row ids.
        keys: Band keys, uint64 (rows, bands).
    """

    rows: UInt64s
    by_row_id: bool
    keys: UInt64s


def minhash_segments(snapshot: Snapshot, column: Field) -> list[IndexMetadata]:
    """Return the segments of the first MinHash index of a column with equal parameters."""
    found = [
        each
        for each in snapshot.indices
        if (each.details_type or "").rpartition(".")[2].lower() == DETAILS and tuple(each.keys) == (column.id,)
    ]
    return [each for each in found if (each.name, each.details) == (found[0].name, found[0].details)]


def read_segment(snapshot: Snapshot, metadata: IndexMetadata, parameters: MinHashParameters) -> SignedRows:
    """Read the documents of a segment.

    Raises:
        CorruptError: A file is damaged.
        UnsupportedError: The version of the files is unknown.
        NotFoundError: A file is missing.
    """
    if metadata.version not in range(len(_NAMES)):
        raise UnsupportedError(
            "unknown index version", where=segment_name(metadata), expected="0 or 1", found=metadata.version
        )
    files = segment_files(snapshot, metadata)
    name = _NAMES[metadata.version]
    signatures, bands = files.open("signatures.lance"), files.open("bands.lance")
    signatures.column(name, pa.uint64())
    bands.column("band_key", pa.uint64())
    bands.column("doc_id", pa.uint32())
    count = parameters.num_bands
    if bands.num_rows != signatures.num_rows * count:
        raise CorruptError(
            "wrong row count", where=bands.path, expected=signatures.num_rows * count, found=bands.num_rows
        )
    rows = signatures.read([name])[0].to_numpy(zero_copy_only=False)
    band_key, document = (each.to_numpy(zero_copy_only=False) for each in bands.read(["band_key", "doc_id"]))
    keys = np.zeros((len(rows), count), np.uint64)
    band = (band_key >> np.uint64(56)).astype(np.int64)
    is_known = (document < len(rows)) & (band < count)
    if is_known.all():
        keys[document, band] = band_key
        is_known = np.bincount(document.astype(np.int64) * count + band, minlength=len(rows) * count) == 1
    if not is_known.all():
        raise CorruptError(
            "documents and bands do not match",
            where=bands.path,
            expected=f"each of {len(rows)} documents once in each of {count} bands",
        )
    if len(np.unique(rows)) < len(rows):
        raise CorruptError("a row is indexed twice", where=signatures.path)
    return SignedRows(rows, metadata.version == 0 and snapshot.has_stable_row_ids, keys)
