"""Blobs of 2.0 files: bytes that lie outside the pages, found by descriptors.

A descriptor is a row of a packed struct:

    offset | size | field
    0      | 8    | position in the file
    8      | 8    | bytes

(1, 0) is a null, (0, 0) an empty value.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lance_duck.arrow.types import storage_type, with_type
from lance_duck.encoding.arrow.blocks import block_to_arrow
from lance_duck.encoding.layouts.blob import read_extents
from lance_duck.encoding.v20.runs import RowRuns
from lance_duck.errors import CorruptError
from lance_duck.file.v20.nodes import LeafNode
from lance_duck.store.request import ByteSource, Request

DESCRIPTORS = pa.struct([("position", pa.uint64()), ("size", pa.uint64())])
"""Type of descriptors: where the bytes of a blob lie in the file."""


@dataclass(frozen=True, slots=True)
class BlobNode:
    """A field of blobs, whose bytes lie outside the pages."""

    arrow_type: pa.DataType
    descriptors: LeafNode
    source: ByteSource
    where: str

    @property
    def num_rows(self) -> int:
        """Rows of the descriptors."""
        return self.descriptors.num_rows

    @property
    def is_dictionary(self) -> bool:
        """Whether all pages hold distinct values and indices: no."""
        return False

    def read(self, runs: RowRuns) -> Request[pa.Array]:
        """Return the bytes of the rows."""
        descriptors = yield from self.descriptors.read(runs)
        if descriptors.null_count:
            raise CorruptError(
                "descriptors of blobs", where=self.where, expected="no nulls", found=descriptors.null_count
            )
        positions, sizes = (descriptors.field(i).to_numpy() for i in range(2))
        block = yield from read_extents(positions, sizes, self.source, self.where)
        valid = (sizes > 0) | (positions != 1)
        array = block_to_arrow(block, storage_type(self.arrow_type), None if valid.all() else valid, self.where)
        return with_type(array, self.arrow_type)
