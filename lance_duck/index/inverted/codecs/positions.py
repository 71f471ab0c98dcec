"""Positions of terms in documents.

Formats 2 and 3, a stream of its own for each term
    _compressed_position     its blocks, one after the other, a block for each block of postings
    _position_block_offset   where each begins
    block                    differences: of each document the first position, then what each is beyond the one before;
                             each 128 of them u8 b | 16·b bytes, see `kernels.postings.packing`; the rest varints. With
                             positions_codec varint_doc_delta_v2 all are varints
Format 1, a list for each document
    _position                u32 number | each 128: u32 first | u8 b | 16·b bytes: differences, the first 0 | the rest:
                             words; each a value of its own
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import CorruptError, InvalidInputError
from lance_duck.index.inverted.codecs.arrays import large_binary, list_array, parts_of
from lance_duck.index.inverted.codecs.blocks import BlockForm
from lance_duck.index.inverted.codecs.problems import check
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.postings.positions import (
    GROUP,
    decode_old_positions,
    decode_positions,
    encode_old_positions,
    encode_positions,
)

Int64s = NDArray[np.int64]
UInt32s = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class PositionStream:
    """Streams of positions of some terms.

    Attributes:
        values: The stream of each term, large_binary.
        starts: Where each block of it begins: list<uint32>.
        has_groups: Each 128 numbers are packed.
    """

    values: pa.LargeBinaryArray
    starts: pa.ListArray
    has_groups: bool


def decode(stream: PositionStream, bounds: Int64s, frequencies: UInt32s, form: BlockForm, where: str) -> UInt32s:
    """Return the positions of each posting in turn, uint32.

    Args:
        stream: The streams.
        bounds: Where the postings of each term begin, and where the last one's end; from 0.
        frequencies: Positions of each posting.
        form: How postings are cut into blocks.
        where: For messages.

    Raises:
        CorruptError: The streams are broken.
    """
    if stream.starts.null_count or stream.starts.values.null_count or stream.values.null_count:
        raise CorruptError("null among positions", where=where)
    data, terms = parts_of(stream.values)
    positions = _positions(frequencies, int(terms[-1] - terms[0]) * GROUP, where)
    starts = readonly(np.asarray(stream.starts.values).astype(np.int64))
    lists = readonly(np.asarray(stream.starts.offsets).astype(np.int64))
    code = decode_positions(
        data,
        terms,
        starts,
        lists,
        readonly(bounds),
        readonly(frequencies),
        form.size,
        stream.has_groups,
        positions,
    )
    check(code, "positions", where, "term")
    return positions


def encode(bounds: Int64s, frequencies: UInt32s, positions: UInt32s, form: BlockForm) -> PositionStream:
    """Return the streams of terms; arguments as of `decode`.

    Raises:
        InvalidInputError: The positions of a term take more than 4 GiB.
    """
    counts = form.counts(np.diff(bounds))
    lists = np.concatenate([[0], np.cumsum(counts)])
    blocks = int(lists[-1])
    out = np.empty(5 * len(positions) + blocks, np.uint8)
    terms, starts = np.zeros(len(bounds), np.int64), np.empty(blocks, np.uint32)
    scratch = np.empty(GROUP, np.uint32)
    size = encode_positions(
        readonly(bounds), readonly(frequencies), readonly(positions), form.size, out, terms, starts, scratch
    )
    if size < 0:
        raise InvalidInputError("positions of a term", expected="at most 4 GiB")
    return PositionStream(large_binary(out[:size].copy(), terms), list_array(pa.array(starts), lists), True)


def decode_old(lists: pa.ListArray, bounds: Int64s, frequencies: UInt32s, where: str) -> UInt32s:
    """Return the same, of a column of format 1: list<list<large_binary>>.

    Raises:
        CorruptError: The column is broken.
    """
    inner = lists.values
    if lists.null_count or inner.null_count or inner.values.null_count:
        raise CorruptError("null among positions", where=where)
    terms = np.asarray(lists.offsets).astype(np.int64)
    if not np.array_equal(np.diff(terms), np.diff(bounds)):
        raise CorruptError("lists of positions do not fit the postings", where=where)
    data, items = parts_of(inner.values)
    places = np.asarray(inner.offsets).astype(np.int64)
    offsets = items[places[terms[0] : terms[-1] + 1]]
    positions = _positions(frequencies, int(offsets[-1] - offsets[0]) * GROUP, where)
    code = decode_old_positions(data, readonly(offsets), readonly(frequencies), positions)
    check(code, "positions", where, "posting")
    return positions


def encode_old(bounds: Int64s, frequencies: UInt32s, positions: UInt32s) -> pa.ListArray:
    """Return the column of format 1."""
    parts = 1 + -(-frequencies.astype(np.int64) // GROUP)
    places = np.concatenate([[0], np.cumsum(parts)])
    out = np.empty(5 * len(positions) + 4 * len(frequencies), np.uint8)
    offsets = np.zeros(int(places[-1]) + 2, np.int64)
    scratch = np.empty(GROUP, np.uint32)
    size = encode_old_positions(readonly(frequencies), readonly(positions), out, offsets, scratch)
    values = large_binary(out[:size].copy(), offsets[: int(places[-1]) + 1])
    return list_array(list_array(values, places), bounds)


def _positions(frequencies: UInt32s, most: int, where: str) -> UInt32s:
    """Return room for positions, as many as the bytes at hand can have."""
    count = int(frequencies.sum(dtype=np.uint64))
    if count > most:
        raise CorruptError("positions", where=where, expected=f"at most {most}", found=count)
    return np.empty(count, np.uint32)
