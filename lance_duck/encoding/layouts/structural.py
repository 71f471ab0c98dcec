"""The registry of page layouts: maps a `PageLayout`, or a 2.3 `PlanarLayout`, to the page's reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from google.protobuf.message import DecodeError

from lance_duck import lazy
from lance_duck.cache import LruCache
from lance_duck.encoding.codecs.flat import Flat, LowFlat
from lance_duck.encoding.codecs.registry import codec_from_proto
from lance_duck.encoding.layouts.blob import BlobReader
from lance_duck.encoding.layouts.chunk_decoder import MiniBlockLayout
from lance_duck.encoding.layouts.chunks import ChunkShape
from lance_duck.encoding.layouts.constant import ConstantLayout, ConstantReader
from lance_duck.encoding.layouts.fullzip import FullZipLayout, FullZipReader
from lance_duck.encoding.layouts.layers import parse_layers
from lance_duck.encoding.layouts.miniblock import MiniBlockReader
from lance_duck.encoding.layouts.page import Page, PageReader
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.wire.pb import encodings21_pb2 as pb
from lance_duck.wire.pb import encodings23_pb2

if TYPE_CHECKING:
    from lance_duck.encoding.layouts.planar import dense, sparse
else:
    dense, sparse = lazy.modules(globals(), "lance_duck.encoding.layouts.planar", "dense", "sparse")

PAGE_LAYOUT = "lance.encodings21.PageLayout"
PLANAR_LAYOUT = "lance.encodings23.PlanarLayout"
_MAX_CONTROL_BITS = 32
_REPEATED_BYTES: Final = 256
"""Maximum size of a cached page description, in bytes. Descriptions with symbol tables are longer and never repeat."""

_layouts: Final[LruCache[MiniBlockLayout]] = LruCache(256)
"""Parsed descriptions of miniblock pages. Small files of a table usually share the same descriptions."""


def known_layout(page: Page, *, narrow: bool = False) -> MiniBlockLayout | None:
    """Return the parsed description of a page, or None unless it is a miniblock page cached by `open_page`."""
    return _layouts.find((page.encoding, narrow))


def open_page(page: Page, *, narrow: bool = False) -> PageReader:
    """Return the reader of a page.

    Args:
        page: The page.
        narrow: Whether a read may return 64-bit integers instead of wider integers if all its values fit.

    Raises:
        CorruptError: The description is corrupt.
        UnsupportedError: A layout or encoding is not supported.
    """
    parsed = _layouts.find((page.encoding, narrow))
    if parsed is not None:
        return MiniBlockReader(page, parsed)
    if page.encoding.name not in (PAGE_LAYOUT, PLANAR_LAYOUT):
        raise UnsupportedError(
            "the page encoding is not supported", where=page.where, expected=PAGE_LAYOUT, found=page.encoding.type_url
        )
    try:
        if page.encoding.name == PAGE_LAYOUT:
            layout = pb.PageLayout.FromString(page.encoding.value)
        else:
            planar = encodings23_pb2.PlanarLayout.FromString(page.encoding.value)
            if planar.structure.WhichOneof("structure") == "sparse":
                return sparse.SparseReader(page, planar, lambda values, layout: _open(values, layout, narrow))
            layout = dense.page_layout(planar, page.where)
    except DecodeError as error:
        raise CorruptError("the page layout is not a protobuf message", where=page.where) from error
    if layout.WhichOneof("layout") != "mini_block_layout" or len(page.encoding.value) > _REPEATED_BYTES:
        return _open(page, layout, narrow)
    parsed = _layouts.put((page.encoding, narrow), _mini_block(layout.mini_block_layout, page.where, narrow))
    return MiniBlockReader(page, parsed)


def _open(page: Page, layout: pb.PageLayout, narrow: bool) -> PageReader:
    kind = layout.WhichOneof("layout")
    if kind == "mini_block_layout":
        return MiniBlockReader(page, _mini_block(layout.mini_block_layout, page.where, narrow))
    if kind == "full_zip_layout":
        return FullZipReader(page, _full_zip(layout.full_zip_layout, page.where))
    if kind == "constant_layout":
        return ConstantReader(page, _constant(layout.constant_layout, page.where))
    if kind == "blob_layout":
        inner = layout.blob_layout.inner_layout
        if inner.WhichOneof("layout") == "blob_layout":
            raise CorruptError("a blob page contains another blob page", where=page.where)
        return BlobReader(page, _open(page, inner, False), parse_layers(layout.blob_layout.layers, page.where))
    raise UnsupportedError(
        "the page layout is not supported", where=page.where, expected="one of 2.1 or 2.2", found=kind
    )


def _mini_block(message: pb.MiniBlockLayout, where: str, narrow: bool) -> MiniBlockLayout:
    layers = parse_layers(message.layers, where)
    has_rep, has_def = message.HasField("rep_compression"), message.HasField("def_compression")
    if has_rep != (layers.max_rep > 0) or (layers.max_rep > 0) != (message.repetition_index_depth > 0):
        raise CorruptError("repetition levels of a page and its lists disagree", where=where)
    if not message.HasField("value_compression"):
        raise CorruptError("the page does not have a value encoding", where=where)
    values = codec_from_proto(message.value_compression)
    if values.num_buffers != message.num_buffers:
        raise CorruptError(
            "the number of value buffers is wrong", where=where, expected=values.num_buffers, found=message.num_buffers
        )
    if narrow and isinstance(values, Flat) and values.bits in (128, 256):
        values = LowFlat(values)
    return MiniBlockLayout(
        layers,
        ChunkShape(has_rep, has_def, int(message.num_buffers), message.has_large_chunk),
        codec_from_proto(message.rep_compression) if has_rep else None,
        codec_from_proto(message.def_compression) if has_def else None,
        values,
        codec_from_proto(message.dictionary) if message.HasField("dictionary") else None,
        message.num_dictionary_items,
        message.num_items,
        message.repetition_index_depth,
    )


def _full_zip(message: pb.FullZipLayout, where: str) -> FullZipLayout:
    layers = parse_layers(message.layers, where)
    details = message.WhichOneof("details")
    if details is None or not message.HasField("value_compression"):
        raise CorruptError("the full-zip page does not have a value encoding", where=where)
    is_fixed = details == "bits_per_value"
    bits = message.bits_per_value if is_fixed else message.bits_per_offset
    if bits % 8 or bits == 0 or (not is_fixed and bits not in (32, 64)):
        raise UnsupportedError(
            "full-zip pages do not support values of this width", where=where, found=f"{details} {bits}"
        )
    if (message.bits_rep > 0) != (layers.max_rep > 0):
        raise CorruptError("repetition levels of a page and its lists disagree", where=where)
    if message.bits_rep + message.bits_def > _MAX_CONTROL_BITS:
        raise CorruptError("the control word has too many bits", where=where, expected=f"<= {_MAX_CONTROL_BITS}")
    return FullZipLayout(
        layers,
        message.bits_rep,
        message.bits_def,
        bits // 8,
        is_fixed,
        codec_from_proto(message.value_compression),
        message.num_items,
        message.num_visible_items,
    )


def _constant(message: pb.ConstantLayout, where: str) -> ConstantLayout:
    return ConstantLayout(
        parse_layers(message.layers, where),
        message.inline_value if message.HasField("inline_value") else None,
        codec_from_proto(message.rep_compression) if message.HasField("rep_compression") else None,
        codec_from_proto(message.def_compression) if message.HasField("def_compression") else None,
        message.num_rep_values,
        message.num_def_values,
    )
