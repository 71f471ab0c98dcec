"""From the description of a 2.1 or 2.2 page (`PageLayout`) to its reader."""

from __future__ import annotations

from google.protobuf.message import DecodeError

from lance_duck.encoding.chunks import ChunkShape
from lance_duck.encoding.layers import parse_layers
from lance_duck.encoding.miniblock import MiniBlockLayout, MiniBlockReader
from lance_duck.encoding.page import Page, PageReader
from lance_duck.encoding.registry import codec_from_proto
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.wire.pb import encodings21_pb2 as pb

PAGE_LAYOUT = "lance.encodings21.PageLayout"


def open_page(page: Page) -> PageReader:
    """Return the reader of a page.

    Raises:
        CorruptError: The description is broken.
        UnsupportedError: A layout or encoding that is not read.
    """
    if page.encoding.name != PAGE_LAYOUT:
        raise UnsupportedError("page encoding", where=page.where, expected=PAGE_LAYOUT, found=page.encoding.type_url)
    layout = pb.PageLayout()
    try:
        layout.ParseFromString(page.encoding.value)
    except DecodeError as error:
        raise CorruptError("page layout is not a protobuf message", where=page.where) from error
    kind = layout.WhichOneof("layout")
    if kind == "mini_block_layout":
        return MiniBlockReader(page, _mini_block(layout.mini_block_layout, page.where))
    raise UnsupportedError("page layout", where=page.where, found=kind)


def _mini_block(message: pb.MiniBlockLayout, where: str) -> MiniBlockLayout:
    layers = parse_layers(message.layers, where)
    has_rep, has_def = message.HasField("rep_compression"), message.HasField("def_compression")
    if has_rep != (layers.max_rep > 0) or (layers.max_rep > 0) != (message.repetition_index_depth > 0):
        raise CorruptError("repetition levels of a page and its lists disagree", where=where)
    if not message.HasField("value_compression"):
        raise CorruptError("page without a value encoding", where=where)
    values = codec_from_proto(message.value_compression)
    if values.num_buffers != message.num_buffers:
        raise CorruptError("value buffers", where=where, expected=values.num_buffers, found=message.num_buffers)
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
