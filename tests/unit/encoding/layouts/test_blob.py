from __future__ import annotations

import numpy as np
import pytest
from unit.encoding.hand_pages import ITEM, LIST, Memory, chunk, chunk_words, flat, page_of

from lance_duck.encoding.block import FixedWidth, PackedStruct
from lance_duck.encoding.layouts.blob import read_blobs
from lance_duck.encoding.layouts.page import Page
from lance_duck.encoding.layouts.structural import open_page
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.store.request import run
from lance_duck.wire.pb import encodings21_pb2 as pb


def blob_page(descriptions: list[tuple[int, int]], layer: int = ITEM) -> Page:
    data = np.array(descriptions, dtype="<u8").tobytes()
    packed = pb.CompressiveEncoding(packed_struct=pb.PackedStruct(bits_per_value=[64, 64], values=flat(128)))
    inner = pb.MiniBlockLayout(
        value_compression=packed,
        layers=[pb.REPDEF_ALL_VALID_ITEM],
        num_buffers=1,
        num_items=len(descriptions),
        has_large_chunk=True,
    )
    layout = pb.BlobLayout(inner_layout=pb.PageLayout(mini_block_layout=inner), layers=[ITEM, layer])
    chunks = [chunk([data])]
    return page_of(pb.PageLayout(blob_layout=layout), [chunk_words(chunks, [0]), chunks[0]], len(descriptions))


def test_a_position_without_bytes_is_the_level_of_a_null() -> None:
    leaf = run(open_page(blob_page([(4, 3), (1 << 16, 0), (0, 0), (2 << 16, 0)])).read(slice(0, 4)))
    assert leaf.def_ is not None
    assert leaf.def_.tolist() == [0, 1, 0, 2]
    assert isinstance(leaf.block, PackedStruct)
    position, size = leaf.block.fields
    assert isinstance(position, FixedWidth)
    assert isinstance(size, FixedWidth)
    assert np.ascontiguousarray(position.data).view("<u8").tolist() == [4, 0, 0, 0]
    assert np.ascontiguousarray(size.data).view("<u8").tolist() == [3, 0, 0, 0]


def test_descriptions_are_replaced_by_the_bytes_they_point_to() -> None:
    source = Memory(bytearray(b"0123456789"))
    position, size = (np.array(n, dtype="<u8").view(np.uint8) for n in ([2, 0, 7], [3, 0, 3]))
    block = PackedStruct((FixedWidth(64, position, 3), FixedWidth(64, size, 3)), 3)
    found = run(read_blobs(block, source, "column"))
    assert (found.offsets.tolist(), found.data.tobytes()) == ([0, 3, 3, 6], b"234789")
    far = np.array([2, 0, 8], dtype="<u8").view(np.uint8)
    with pytest.raises(CorruptError, match="beyond the end"):
        run(read_blobs(PackedStruct((FixedWidth(64, far, 3), FixedWidth(64, size, 3)), 3), source, "column"))


def test_levels_beyond_the_layers_are_rejected() -> None:
    with pytest.raises(CorruptError, match="the level of a blob is too high"):
        run(open_page(blob_page([(3 << 16, 0)])).read(slice(0, 1)))


def test_lists_of_blobs_are_rejected() -> None:
    with pytest.raises(UnsupportedError):
        open_page(blob_page([(4, 3)], LIST))
