"""Converts descriptions of dense 2.3 pages to 2.2. The buffers stay the same.

2.3         | 2.2
chunked     | miniblock, words of 32 bits
zipped      | full zip
constant    | constant, value inline
nothing     | constant without a value
"""

from __future__ import annotations

from collections.abc import Iterable

from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.wire.pb import encodings21_pb2 as pb
from lance_duck.wire.pb import encodings23_pb2


def page_layout(planar: encodings23_pb2.PlanarLayout, where: str) -> pb.PageLayout:
    """Return the equivalent 2.2 description of a page.

    Args:
        planar: Description of a page with a dense structure.
        where: Name of the page, for messages.

    Raises:
        CorruptError: The description lacks values.
    """
    layers, kind = planar.structure.dense.layers, planar.values.WhichOneof("values")
    if kind == "chunked":
        return pb.PageLayout(mini_block_layout=_mini_block(planar.values.chunked, layers))
    if kind == "zipped":
        return pb.PageLayout(full_zip_layout=_full_zip(planar.values.zipped, layers))
    if kind == "constant":
        constant = pb.ConstantLayout(layers=layers, inline_value=planar.values.constant.value)
        return pb.PageLayout(constant_layout=constant)
    if kind == "nothing":
        return pb.PageLayout(constant_layout=pb.ConstantLayout(layers=layers))
    if planar.values.ByteSize():
        raise UnsupportedError("this kind of page values is not supported", where=where)
    raise CorruptError("the page does not have values", where=where)


def without_levels(planar: encodings23_pb2.PlanarLayout, slots: int) -> encodings23_pb2.PlanarLayout:
    """Describe the values of a sparse page as a dense page of `slots` rows without nulls."""
    dense = encodings23_pb2.PlanarLayout(values=planar.values)
    dense.structure.dense.layers.append(pb.REPDEF_ALL_VALID_ITEM)
    if dense.values.HasField("chunked"):
        dense.values.chunked.num_items = slots
        dense.values.chunked.ClearField("levels")
    if dense.values.HasField("zipped"):
        if slots >= 1 << 32:
            raise CorruptError("the page has too many slots", where="sparse page", found=slots)
        dense.values.zipped.num_items = dense.values.zipped.num_visible_items = slots
        dense.values.zipped.ClearField("levels")
    return dense


def _mini_block(values: encodings23_pb2.ChunkedValues, layers: Iterable[pb.RepDefLayer]) -> pb.MiniBlockLayout:
    layout = pb.MiniBlockLayout(
        layers=layers,
        num_buffers=values.num_buffers,
        num_items=values.num_items,
        num_dictionary_items=values.num_dictionary_items,
        repetition_index_depth=values.levels.repetition_index_depth,
        has_large_chunk=True,
    )
    for name in ("rep_compression", "def_compression"):
        if values.levels.HasField(name):
            getattr(layout, name).CopyFrom(getattr(values.levels, name))
    for name in ("value_compression", "dictionary"):
        if values.HasField(name):
            getattr(layout, name).CopyFrom(getattr(values, name))
    return layout


def _full_zip(values: encodings23_pb2.ZippedValues, layers: Iterable[pb.RepDefLayer]) -> pb.FullZipLayout:
    layout = pb.FullZipLayout(
        layers=layers,
        bits_rep=values.levels.bits_rep,
        bits_def=values.levels.bits_def,
        num_items=values.num_items,
        num_visible_items=values.num_visible_items,
    )
    if values.HasField("value_compression"):
        layout.value_compression.CopyFrom(values.value_compression)
    details = values.WhichOneof("details")
    if details is not None:
        setattr(layout, details, getattr(values, details))
    return layout
