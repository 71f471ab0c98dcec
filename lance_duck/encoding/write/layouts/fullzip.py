"""Full-zip pages: each value next to its levels. The bytes are described in `encoding.layouts.fullzip`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import Block, FixedWidth, VariableWidth
from lance_duck.encoding.write.codecs.compress import compress_values
from lance_duck.encoding.write.layouts.page import EncodedPage, PageLevels, page_encoding
from lance_duck.encoding.write.options import EncodingOptions
from lance_duck.errors import UnsupportedError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.pages.zip_entries import zip_fixed, zip_variable
from lance_duck.wire.pb import encodings21_pb2 as pb

Int64s = NDArray[np.int64]
_NO_LEVELS = np.empty(0, dtype=np.uint8)
_MAX_ITEMS = 1 << 32


def encode_full_zip(block: Block, levels: PageLevels, choice: EncodingOptions, first_row: int) -> EncodedPage:
    """Return a full-zip page.

    Args:
        block: The value slots.
        levels: Levels of the page.
        choice: Encoding options of the field.
        first_row: First row of the page.

    Raises:
        UnsupportedError: Values are not whole bytes, or there are at least 2**32 entries.
    """
    if levels.count >= _MAX_ITEMS:
        raise UnsupportedError(
            "the page has too many entries", where="full zip", expected=f"< {_MAX_ITEMS}", found=levels.count
        )
    if isinstance(block, FixedWidth) and block.bits == 1:
        block = FixedWidth(8, block.data, block.count)
    encoding, values = compress_values(block, choice)
    bits_rep, bits_def = levels.layers.max_rep.bit_length(), levels.layers.max_def.bit_length()
    if levels.def_ is None:
        bits_def = 0
    layout = pb.FullZipLayout(
        bits_rep=bits_rep,
        bits_def=bits_def,
        num_items=levels.count,
        num_visible_items=levels.num_slots,
        value_compression=encoding,
        layers=levels.kinds,
    )
    control = -(-(bits_rep + bits_def) // 8)
    words = _control_words(levels, bits_def, control)
    if isinstance(values, FixedWidth):
        if values.bits % 8:
            raise UnsupportedError(
                "values of this width cannot be encoded", where="full zip", found=f"{values.bits} bits"
            )
        layout.bits_per_value = values.bits
        buffers = _fixed(values, levels, words)
    elif isinstance(values, VariableWidth):
        layout.bits_per_offset = 8 * values.offsets.itemsize
        buffers = _variable(values, levels, words)
    else:
        raise UnsupportedError("values of this kind cannot be encoded", where="full zip", found=type(values).__name__)
    return EncodedPage(buffers, page_encoding(pb.PageLayout(full_zip_layout=layout)), levels.num_rows, first_row)


def _control_words(levels: PageLevels, bits_def: int, control: int) -> Bytes:
    """Return the control words of all entries, `control` bytes each. Levels have at most 15 bits."""
    word = np.dtype(f"<u{control}") if control else np.dtype("<u1")
    rep, def_ = levels.rep, levels.def_
    if rep is None:
        return _NO_LEVELS if def_ is None else def_.astype(word).view(np.uint8)
    words = rep.astype(word) << word.type(bits_def)
    return (words if def_ is None else words | def_).astype(word).view(np.uint8)


def _fixed(values: FixedWidth, levels: PageLevels, words: Bytes) -> tuple[Bytes, ...]:
    width = values.bits // 8
    data = values.data[: values.count * width]
    if not len(words):
        return (data,)
    control = len(words) // max(1, levels.count)
    if levels.rep is None:
        out = np.empty((levels.count, control + width), dtype=np.uint8)
        out[:, :control] = words.reshape(-1, control)
        out[:, control:] = data.reshape(-1, width)
        return (out.reshape(-1),)
    def_ = _NO_LEVELS if levels.def_ is None else levels.def_
    entries = np.empty(levels.count * control + len(data), dtype=np.uint8)
    places = np.empty(levels.count + 1, dtype=np.int64)
    form = np.array([control, levels.layers.max_visible, width], dtype=np.int64)
    zip_fixed(readonly(words), readonly(def_), form, readonly(data), places, entries)
    return entries, _row_index(places, levels)


def _variable(values: VariableWidth, levels: PageLevels, words: Bytes) -> tuple[Bytes, ...]:
    def_ = _NO_LEVELS if levels.def_ is None else levels.def_
    control = len(words) // max(1, levels.count)
    sizes = np.diff(values.offsets).astype(np.int64)
    if levels.def_ is not None:
        sizes = sizes[levels.def_[levels.def_ <= levels.layers.max_visible] == 0]
    word = values.offsets.itemsize
    total = levels.count * control + len(sizes) * word + int(sizes.sum())
    entries = np.empty(total, dtype=np.uint8)
    places = np.empty(levels.count + 1, dtype=np.int64)
    form = np.array([control, levels.layers.max_visible, word], dtype=np.int64)
    offsets: Any = readonly(values.offsets)
    zip_variable(readonly(words), readonly(def_), form, offsets, readonly(values.data), places, entries)
    return entries, _row_index(places, levels)


def _row_index(places: Int64s, levels: PageLevels) -> Bytes:
    """Return the start of each row, and the end of the last row."""
    if levels.rep is not None:
        places = np.append(places[:-1][levels.rep == levels.layers.max_rep], places[-1])
    width = next(w for w in (1, 2, 4, 8) if int(places[-1]) < 1 << 8 * w)
    return places.astype(f"<u{width}").view(np.uint8)
