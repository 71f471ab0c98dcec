"""Undecoded postings of terms: compressed blocks, and impacts, which limit the scores in these blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.inverted.codecs import blocks
from lance_duck.index.inverted.codecs.arrays import BinaryLists
from lance_duck.index.inverted.codecs.blocks import BlockForm
from lance_duck.kernels.jit import readonly


@dataclass(frozen=True, eq=False, slots=True)
class PostingBlocks:
    """The posting blocks of some terms of a partition.

    Attributes:
        blocks: The blocks of each term, see `codecs.blocks`.
        lengths: int64 (terms,), number of documents of each term. Consistent with the blocks.
        form: Form of the blocks.
        num_documents: Number of documents of the partition.
        impacts: The entries of each term, see `codecs.impacts`. None if the file does not have impacts.
        where: Name of the file, for messages.
    """

    blocks: BinaryLists
    lengths: NDArray[np.int64]
    form: BlockForm
    num_documents: int
    impacts: BinaryLists | None
    where: str

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def bounds(self) -> NDArray[np.int64]:
        """int64 (terms + 1,), index of each term's first decoded posting, followed by the number of postings."""
        return np.concatenate([[0], np.cumsum(self.lengths)])

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return self.blocks.nbytes + self.lengths.nbytes + (0 if self.impacts is None else self.impacts.nbytes)

    @property
    def buffers(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int, bool]:
        """The postings for kernels: the first six items of `postings` in `kernels.postings.search.best`."""
        blobs, form = self.blocks, self.form
        return blobs.data, blobs.offsets, blobs.lists, readonly(self.lengths), form.size, form.is_varint

    def decoded(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Decode the documents and frequencies, term by term: uint32 (postings,) each.

        Raises:
            CorruptError: A block is corrupt.
        """
        return blocks.decode(self.blocks, self.lengths, self.form, self.num_documents, self.where)


def joined_postings(parts: list[PostingBlocks]) -> PostingBlocks:
    """Concatenate the postings of one or more groups of terms."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    entries = [part.impacts for part in parts if part.impacts is not None]
    return PostingBlocks(
        _joined_blobs([part.blocks for part in parts]),
        np.concatenate([part.lengths for part in parts]),
        first.form,
        first.num_documents,
        _joined_blobs(entries) if len(entries) == len(parts) else None,
        first.where,
    )


def _joined_blobs(parts: list[BinaryLists]) -> BinaryLists:
    data, offsets, lists, at, item = [], [], [np.zeros(1, np.int64)], 0, 0
    for part in parts:
        low, high = int(part.offsets[part.lists[0]]), int(part.offsets[part.lists[-1]])
        data.append(part.data[low:high])
        offsets.append(part.offsets[part.lists[0] : part.lists[-1]] - low + at)
        lists.append(part.lists[1:] - part.lists[0] + item)
        at += high - low
        item += int(part.lists[-1] - part.lists[0])
    return BinaryLists(
        readonly(np.concatenate(data)),
        readonly(np.concatenate([*offsets, np.array([at], np.int64)])),
        readonly(np.concatenate(lists)),
    )


def arranged(postings: PostingBlocks, places: Sequence[int]) -> PostingBlocks:
    """Return a copy of the postings of the terms at `places`, in that order."""
    rows = np.array(places, np.int64)
    impacts = None if postings.impacts is None else postings.impacts.take(rows, postings.where)
    blocks = postings.blocks.take(rows, postings.where)
    return replace(postings, blocks=blocks, lengths=postings.lengths[rows], impacts=impacts)


def one_of_postings(postings: PostingBlocks, i: int) -> PostingBlocks:
    """Return a copy of the postings of one term."""
    impacts = None if postings.impacts is None else one_of(postings.impacts, i)
    return PostingBlocks(
        one_of(postings.blocks, i),
        postings.lengths[i : i + 1],
        postings.form,
        postings.num_documents,
        impacts,
        postings.where,
    )


def one_of(blobs: BinaryLists, i: int) -> BinaryLists:
    """Return a copy of the values of one list."""
    first, last = int(blobs.lists[i]), int(blobs.lists[i + 1])
    low, high = int(blobs.offsets[first]), int(blobs.offsets[last])
    lists = np.array([0, last - first], np.int64)
    data, offsets = blobs.data[low:high].copy(), blobs.offsets[first : last + 1] - low
    return BinaryLists(readonly(data), readonly(offsets), readonly(lists))
