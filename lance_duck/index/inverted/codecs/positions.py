"""Positions of terms in documents.

Formats 2 and 3: one stream per term
    _compressed_position     consecutive blocks, one per posting block
    _position_block_offset   offset of each block
    block                    differences: the first position of each document, then the difference of each position from
                             the previous one. Groups of 128 differences: u8 b | 16·b bytes, see
                             `kernels.postings.packing`; the rest: varints. With the positions_codec
                             varint_doc_delta_v2, all differences are varints
Format 1: one list per document
    _position                u32 count | groups of 128: u32 first | u8 b | 16·b bytes: differences, the first one 0 |
                             the rest: words; each document is a separate value
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import CorruptError, InvalidInputError
from lance_duck.index.inverted.codecs.arrays import bytes_and_offsets, large_binary, list_array
from lance_duck.index.inverted.codecs.blocks import BlockForm
from lance_duck.index.inverted.codecs.problems import check_code
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.postings.lists import locate_blocks
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
    """The position streams of some terms.

    Attributes:
        values: The stream of each term, large_binary.
        starts: Offsets of the blocks in each stream, list<uint32>.
        has_groups: Whether groups of 128 numbers are packed.
    """

    values: pa.LargeBinaryArray
    starts: pa.ListArray
    has_groups: bool


@dataclass(frozen=True, eq=False)
class PositionBlocks:
    """The position blocks of some terms. Each block can be read independently.

    Attributes:
        data: uint8, bytes of all blocks.
        begins: int64 (blocks,), start of each block in `data`, at most the block's end.
        ends: int64 (blocks,), end of each block in `data`.
        lists: int64 (terms + 1,), index of each term's first block, followed by the number of blocks.
        has_groups: See `PositionStream`.
    """

    data: NDArray[np.uint8]
    begins: Int64s
    ends: Int64s
    lists: Int64s
    has_groups: bool

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return self.data.nbytes + self.begins.nbytes + self.ends.nbytes + self.lists.nbytes

    def of_term(self, i: int) -> PositionBlocks:
        """Return a copy of one term's blocks. The term has at least one block."""
        first, last = int(self.lists[i]), int(self.lists[i + 1])
        low, high = int(self.begins[first]), int(self.ends[last - 1])
        lists = np.array([0, last - first], np.int64)
        return PositionBlocks(
            readonly(self.data[low:high].copy()),
            self.begins[first:last] - low,
            self.ends[first:last] - low,
            lists,
            self.has_groups,
        )


def joined_positions(parts: Sequence[PositionBlocks]) -> PositionBlocks:
    """Concatenate the blocks of single terms, at least one."""
    sizes = [0, *accumulate(len(part.data) for part in parts)]
    return PositionBlocks(
        readonly(np.concatenate([part.data for part in parts])),
        np.concatenate([part.begins + at for part, at in zip(parts, sizes, strict=False)]),
        np.concatenate([part.ends + at for part, at in zip(parts, sizes, strict=False)]),
        np.cumsum([0, *(len(part.begins) for part in parts)]),
        parts[0].has_groups,
    )


def blocks_of(
    values: tuple[NDArray[np.uint8], Int64s],
    starts: tuple[UInt32s, Int64s],
    has_groups: bool,
    lengths: Int64s,
    form: BlockForm,
    where: str,
) -> PositionBlocks:
    """Return the blocks of streams. Positions are checked later, when they are decoded.

    Args:
        values: Bytes of the streams, and the valid offsets of the streams in them, followed by the total size.
        starts: The values of `PositionStream.starts`, and the index of each term's first value, followed by the number
            of values.
        has_groups: See `PositionStream`.
        lengths: int64 (terms,), number of postings of each term. There must be at least one term.
        form: Form of the posting blocks.
        where: Name of the file, for messages.

    Raises:
        CorruptError: The blocks do not match the postings, or lie outside the streams.
    """
    data, terms = values
    lists = starts[1]
    if len(lists) != len(lengths) + 1 or len(terms) != len(lists):
        raise CorruptError("position blocks do not match the postings", where=where)
    bounds = np.array([0, *accumulate(form.counts(lengths).tolist())], np.int64)
    if bounds[-1] != lists[-1] - lists[0]:
        raise CorruptError("position blocks do not match the postings", where=where)
    begins, ends = np.empty((2, int(bounds[-1])), np.int64)
    rows = np.arange(len(lengths))
    code = locate_blocks(
        readonly(terms), readonly(starts[0]), readonly(lists), readonly(rows), readonly(bounds), begins, ends
    )
    check_code(code, "blocks of positions", where, "term")
    return PositionBlocks(data, begins, ends, bounds, has_groups)


def decode(stream: PositionStream, bounds: Int64s, frequencies: UInt32s, form: BlockForm, where: str) -> UInt32s:
    """Return the positions of each posting, concatenated: uint32 (frequencies.sum(),).

    Args:
        stream: The streams.
        bounds: int64 (terms + 1,), index of each term's first posting, followed by the number of postings.
        frequencies: Number of positions of each posting.
        form: Form of the posting blocks.
        where: Name of the file, for messages.

    Raises:
        CorruptError: The streams are corrupt.
    """
    _check_no_nulls(stream, where)
    data, terms = bytes_and_offsets(stream.values)
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
    check_code(code, "positions", where, "term")
    return positions


def encode(bounds: Int64s, frequencies: UInt32s, positions: UInt32s, form: BlockForm) -> PositionStream:
    """Encode the positions of terms as streams. For the arguments, see `decode`.

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
        raise InvalidInputError("too many positions of one term", expected="at most 4 GiB")
    return PositionStream(large_binary(out[:size].copy(), terms), list_array(pa.array(starts), lists), True)


def decode_old(lists: pa.ListArray, bounds: Int64s, frequencies: UInt32s, where: str) -> UInt32s:
    """Decode the positions of a format 1 column, list<list<large_binary>>. See `decode`.

    Raises:
        CorruptError: The column is corrupt.
    """
    inner = lists.values
    if lists.null_count or inner.null_count or inner.values.null_count:
        raise CorruptError("the positions contain a null", where=where)
    terms = np.asarray(lists.offsets).astype(np.int64)
    if not np.array_equal(np.diff(terms), np.diff(bounds)):
        raise CorruptError("position lists do not match the postings", where=where)
    data, items = bytes_and_offsets(inner.values)
    places = np.asarray(inner.offsets).astype(np.int64)
    offsets = items[places[terms[0] : terms[-1] + 1]]
    positions = _positions(frequencies, int(offsets[-1] - offsets[0]) * GROUP, where)
    code = decode_old_positions(data, readonly(offsets), readonly(frequencies), positions)
    check_code(code, "positions", where, "posting")
    return positions


def encode_old(bounds: Int64s, frequencies: UInt32s, positions: UInt32s) -> pa.ListArray:
    """Encode positions as a column of format 1."""
    parts = 1 + -(-frequencies.astype(np.int64) // GROUP)
    places = np.concatenate([[0], np.cumsum(parts)])
    out = np.empty(5 * len(positions) + 4 * len(frequencies), np.uint8)
    offsets = np.zeros(int(places[-1]) + 2, np.int64)
    scratch = np.empty(GROUP, np.uint32)
    size = encode_old_positions(readonly(frequencies), readonly(positions), out, offsets, scratch)
    values = large_binary(out[:size].copy(), offsets[: int(places[-1]) + 1])
    return list_array(list_array(values, places), bounds)


def _check_no_nulls(stream: PositionStream, where: str) -> None:
    if stream.starts.null_count or stream.starts.values.null_count or stream.values.null_count:
        raise CorruptError("the positions contain a null", where=where)


def _positions(frequencies: UInt32s, most: int, where: str) -> UInt32s:
    """Return an unset array for the positions of postings. Raises CorruptError for more than `most` positions."""
    count = int(frequencies.sum(dtype=np.uint64))
    if count > most:
        raise CorruptError("too many positions", where=where, expected=f"at most {most}", found=count)
    return np.empty(count, np.uint32)
