"""Impacts: pairs of frequency and length for each block, which bound scores for any term weights and average length.

A term has one entry per block, followed by one entry per 32 blocks.
    entry      varint last document | varint number of pairs | pairs
    pair       varint (frequency - previous frequency - 1) · 2 + x | x = 1: u8 code - previous code; x = 0: code + 1
Frequencies and codes ascend within an entry, starting from 0. A pair is omitted if another pair of the block has at
least its frequency and at most its code.

The code of a length with n bits is the length itself if n < 4. Otherwise it is (n - 3) · 8 plus the three bits after
the highest bit. A code is decoded to the shortest length with that code, so the limits are never too low.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.index.inverted.codecs.arrays import large_binary, list_array
from lance_duck.index.inverted.codecs.blocks import BlockForm
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.postings.impacts import (
    BEST,
    CODES,
    GROUP,
    HEAD_BYTES,
    PAIR_BYTES,
    encode_impacts,
    write_length_codes,
)


def length_codes(lengths: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Return the code of each length, uint8."""
    codes = np.empty(len(lengths), np.uint8)
    write_length_codes(readonly(lengths), codes)
    return codes


def length_floors() -> NDArray[np.uint32]:
    """Return the shortest length of each code, uint32 (256,). Unused codes get the maximum length."""
    code = np.arange(CODES, dtype=np.uint64)
    floors = np.where(code < 8, code, ((code & 7) | 8) << (np.maximum(code >> 3, 1) - 1))
    return np.minimum(floors, 0xFFFFFFFF).astype(np.uint32)


def encode(
    bounds: NDArray[np.int64],
    ids: NDArray[np.uint32],
    frequencies: NDArray[np.uint32],
    codes: NDArray[np.uint8],
    form: BlockForm,
) -> pa.ListArray:
    """Return the entries of each term, list<large_binary>.

    Args:
        bounds: int64 (terms + 1,), index of each term's first posting, followed by the number of postings.
        ids: Documents, ascending within each term.
        frequencies: Frequency of each posting.
        codes: uint8 (documents,), length code of each document in the partition.
        form: Form of the posting blocks.
    """
    blocks = form.counts(np.diff(bounds))
    groups = -(-blocks // GROUP)
    lists = np.concatenate([[0], np.cumsum(blocks + groups)])
    count = int(lists[-1])
    out = np.empty(HEAD_BYTES * count + 2 * PAIR_BYTES * len(ids), np.uint8)
    offsets = np.zeros(count + 1, np.int64)
    best = np.zeros((1 + int(groups.max(initial=0)), BEST), np.uint32)
    size = encode_impacts(
        readonly(bounds),
        readonly(ids),
        readonly(frequencies),
        readonly(codes),
        form.size,
        out,
        offsets,
        best,
    )
    return list_array(large_binary(out[:size].copy(), offsets), lists)
