"""Blocks of postings: the documents of a term in ascending order, with the term's frequency in each.

Blocks of 128 documents
    full       f32 maximum score | u32 first id | u8 b | 16·b bytes: differences | u8 c | 16·c bytes: frequencies
    fewer      f32 maximum score | words: u32 of each id, u32 of each frequency
                                 | varints: the first id, differences; frequencies
Blocks of 256 documents, which do not have a score
    full       u32 first id | u8 b | 32·b bytes: differences | u8 w | u8 e ≤ 31 | 32·w bytes: frequencies & (2^w - 1)
               | e times: u8 index, varint: frequency >> w
    fewer      varints

b, c, w are widths in bits. The difference of the first document is 0. Numbers are packed in 4 lanes (8 in blocks of
256) of 32-bit words, see `kernels.postings.packing`. The maximum score of a block is an upper bound of the scores of
its documents: the maximum of idf · 2.2 · f / (f + norm). idf and norm use the statistics that the partition had when it
was written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import CorruptError
from lance_duck.index.inverted.codecs.arrays import BinaryLists, large_binary, list_array
from lance_duck.index.inverted.codecs.problems import check_code
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.postings.blocks import LARGE, decode_postings, encode_postings
from lance_duck.kernels.postings.lists import count_postings

Int64s = NDArray[np.int64]
UInt32s = NDArray[np.uint32]

POSTINGS_A_BYTE: Final = 4
"""Maximum number of postings that a byte of blocks stores."""


@dataclass(frozen=True)
class BlockForm:
    """The form of blocks.

    Attributes:
        size: Number of documents of a full block: 128 or 256.
        is_varint: Whether the numbers of a partial block are varints. Otherwise they are words.
    """

    size: int = 128
    is_varint: bool = True

    @property
    def has_scores(self) -> bool:
        """Whether a block begins with its maximum score."""
        return self.size != LARGE

    def counts(self, lengths: Int64s) -> Int64s:
        """Return each term's block count, given its document count."""
        return -(-lengths // self.size)


def decode(
    blobs: BinaryLists, lengths: Int64s, form: BlockForm, num_documents: int, where: str
) -> tuple[UInt32s, UInt32s]:
    """Return the concatenated documents and frequencies of terms, both uint32 (postings,).

    Args:
        blobs: The blocks of each term.
        lengths: Number of documents of each term.
        form: Form of the blocks.
        num_documents: Number of documents of the partition.
        where: Name of the file, for messages.

    Raises:
        CorruptError: Blocks are corrupt.
    """
    total = check_lengths(blobs, lengths, form, where)
    ids, frequencies = np.empty(total, np.uint32), np.empty(total, np.uint32)
    code = decode_postings(
        blobs.data,
        blobs.offsets,
        blobs.lists,
        readonly(lengths),
        form.size,
        form.is_varint,
        num_documents,
        ids,
        frequencies,
    )
    check_code(code, "postings", where, "term")
    return ids, frequencies


def check_lengths(blobs: BinaryLists, lengths: Int64s, form: BlockForm, where: str) -> int:
    """Check that each term has as many blocks as its length requires, and enough bytes for its postings.

    Returns:
        Number of postings of all terms.

    Raises:
        CorruptError: The lengths and the blocks contradict each other.
    """
    total = count_postings(blobs.offsets, blobs.lists, readonly(lengths), form.size, POSTINGS_A_BYTE)
    if total == -1:
        raise CorruptError("posting blocks do not match their lengths", where=where)
    if total < 0:
        size = int(blobs.offsets[blobs.lists[-1]] - blobs.offsets[blobs.lists[0]])
        raise CorruptError(
            "too many postings", where=where, expected=f"at most {size * POSTINGS_A_BYTE}", found=int(lengths.sum())
        )
    return total


def encode(
    bounds: Int64s, ids: UInt32s, frequencies: UInt32s, scores: NDArray[np.float32], form: BlockForm
) -> pa.ListArray:
    """Return the blocks of each term, list<large_binary>.

    Args:
        bounds: int64 (terms + 1,), index of each term's first posting, followed by the number of postings.
        ids: Documents, ascending within each term.
        frequencies: Frequency of each posting, at least 1.
        scores: Maximum score of each block. Ignored if the format does not store scores.
        form: Form of the blocks.
    """
    counts = form.counts(np.diff(bounds))
    lists = np.concatenate([[0], np.cumsum(counts)])
    blocks = int(lists[-1])
    out, offsets = np.empty(10 * (len(ids) + blocks), np.uint8), np.zeros(blocks + 1, np.int64)
    scratch = np.empty(LARGE, np.uint32)
    size = encode_postings(
        readonly(bounds),
        readonly(ids),
        readonly(frequencies),
        readonly(scores),
        form.size,
        form.is_varint,
        out,
        offsets,
        scratch,
    )
    return list_array(large_binary(out[:size].copy(), offsets), lists)
