"""Blob pages: positions and sizes of values, or levels for nulls. `encoding.layouts.blob` describes the bytes."""

from __future__ import annotations

import numpy as np

from lance_duck.encoding.block import FixedWidth, PackedStruct
from lance_duck.encoding.layouts.page import EncodingDescription
from lance_duck.encoding.write.layouts.leaf import LeafRows
from lance_duck.encoding.write.layouts.levels import FLAT, page_levels
from lance_duck.encoding.write.layouts.miniblock import encode_mini_block
from lance_duck.encoding.write.layouts.page import PAGE_LAYOUT_URL, EncodedPage
from lance_duck.encoding.write.options import EncodingOptions
from lance_duck.errors import UnsupportedError
from lance_duck.wire.pb import encodings21_pb2 as pb

_DEF_SHIFT = np.uint64(16)


def encode_blobs(rows: LeafRows, first_row: int, version: str = "2.1") -> EncodedPage:
    """Return a blob page.

    Args:
        rows: Rows whose block consists of positions and sizes, 64 bits each. (0, 0) is an empty value.
        first_row: First row of the page.
        version: Version of the file.

    Raises:
        UnsupportedError: The blobs are in lists.
    """
    if rows.begins is not None:
        raise UnsupportedError(
            "data files of this version cannot store blobs in lists",
            remedy="write a table with data_storage_version='2.2'",
        )
    levels = page_levels(rows.shape, None, rows.holes, rows.block.count, rows.num_rows)
    block = rows.block
    assert isinstance(block, PackedStruct)
    if levels.def_ is not None:
        positions, sizes = block.fields
        assert isinstance(positions, FixedWidth)
        assert isinstance(sizes, FixedWidth)
        null = levels.def_ > 0
        folded = np.where(null, levels.def_.astype(np.uint64) << _DEF_SHIFT, positions.data.view("<u8"))
        size_or_level = np.where(null, np.uint64(0), sizes.data.view("<u8"))
        parts = tuple(FixedWidth(64, part.view(np.uint8), block.count) for part in (folded, size_or_level))
        block = PackedStruct(parts, block.count)
    plain = page_levels(FLAT, None, None, block.count, rows.num_rows)
    page = encode_mini_block(block, plain, EncodingOptions(version=version), first_row)
    assert page is not None
    layout = pb.BlobLayout(inner_layout=pb.PageLayout.FromString(page.encoding.value), layers=levels.kinds)
    description = EncodingDescription(PAGE_LAYOUT_URL, pb.PageLayout(blob_layout=layout).SerializeToString())
    return EncodedPage(page.buffers, description, page.num_rows, page.first_row)
