"""Merges partitions. Documents get their current row ids or addresses, and deleted documents are dropped.

As many partitions are merged as fit into the memory limit. A partition that exceeds the limit is rewritten alone, some
terms at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.join import joined
from lance_duck.errors import InvalidInputError
from lance_duck.index.inverted.contents import Documents, PartitionContents, sort_postings
from lance_duck.index.inverted.invert import distinct_terms
from lance_duck.index.inverted.partition import InvertedPartition
from lance_duck.index.kind import MergeInput
from lance_duck.kernels import status
from lance_duck.kernels.postings import sort

Int64s = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LargePart:
    """A partition whose contents exceed the memory limit. It is rewritten alone, some terms at a time.

    Attributes:
        partition: Partition to rewrite.
        row_ids: See `LivingPart`.
        lives: See `LivingPart`.
        most: Memory limit, in bytes.
    """

    partition: InvertedPartition
    row_ids: NDArray[np.uint64]
    lives: NDArray[np.bool_]
    most: int

    def pieces(self) -> Iterator[PartitionContents]:
        """Yield the new contents, some terms at a time."""
        renumbered: _Renumbered | None = None
        for piece in self.partition.pieces(self.most):
            part = [LivingPart(piece, self.row_ids, self.lives)]
            renumbered = _renumbered(part) if renumbered is None else renumbered
            yield _merged_postings(part, renumbered)


def living_parts(part: MergeInput, limit: int, *, by_address: bool) -> Iterator[LivingPart | LargePart]:
    """Yield a segment's partitions, with the current ids or addresses of rows. Skips partitions without live rows."""
    left_out = part.index.deleted_fragments
    for partition in part.index.partitions:
        names = partition.documents.row_ids
        row_ids, lives = part.follow(names)
        if by_address and len(left_out):
            lives = lives & ~np.isin(names >> np.uint64(32), left_out)
        if not lives.any():
            continue
        if partition.decoded_bytes > limit:
            yield LargePart(partition, row_ids, lives, limit)
        else:
            yield LivingPart(partition.contents(), row_ids, lives)


def _groups(parts: Iterator[LivingPart | LargePart], limit: int) -> Iterator[list[LivingPart] | LargePart]:
    """Yield groups of partitions to merge. A group has as many partitions as fit into `limit` bytes, at least one."""
    group: list[LivingPart] = []
    size = 0
    for part in parts:
        part_size = limit if isinstance(part, LargePart) else part.contents.nbytes
        if group and size + part_size > limit:
            yield group
            group, size = [], 0
        if isinstance(part, LargePart):
            yield part
        else:
            group.append(part)
            size += part_size
    if group:
        yield group


def merged_parts(parts: Iterator[LivingPart | LargePart], limit: int) -> Iterator[Iterator[PartitionContents]]:
    """Merge partitions into as few as the memory limit allows.

    Args:
        parts: The partitions.
        limit: Maximum size of the partitions in memory, in bytes.

    Returns:
        The contents of each new partition. Large ones are split by terms.
    """
    return map(_merged, _groups(parts, limit))


def _merged(group: list[LivingPart] | LargePart) -> Iterator[PartitionContents]:
    """Yield the merged contents of a group. A large partition is yielded some terms at a time."""
    if isinstance(group, LargePart):
        yield from group.pieces()
    else:
        yield merged_partitions(group)


@dataclass(frozen=True, eq=False)
class LivingPart:
    """A partition whose live documents are part of a merge.

    Attributes:
        contents: Contents of the partition.
        row_ids: New row id of each document.
        lives: bool (documents,), whether each document is live. The row ids of deleted documents are ignored.
    """

    contents: PartitionContents
    row_ids: NDArray[np.uint64]
    lives: NDArray[np.bool_]


def whole_partition(contents: PartitionContents) -> LivingPart:
    """Return a partition whose documents all remain, with unchanged ids or addresses."""
    row_ids = contents.documents.row_ids
    return LivingPart(contents, row_ids, np.ones(len(row_ids), np.bool_))


def merged_partitions(parts: Sequence[LivingPart]) -> PartitionContents:
    """Merge partitions into one.

    Documents are numbered by length, and those of equal length in the order of `parts`. Terms are in order of first
    occurrence. Terms without remaining documents are dropped.

    Args:
        parts: The partitions. Either all or none have positions. Together, they have fewer than 2**32 - 1 live
            documents.

    Raises:
        InvalidInputError: Some parts have positions and others do not, or the parts mix rows and list elements as
            documents.
        CorruptError: The postings are inconsistent.
    """
    return _merged_postings(parts, _renumbered(parts))


@dataclass(frozen=True, eq=False)
class _Renumbered:
    """The documents of a merge.

    Attributes:
        documents: The live documents.
        names: int64 (documents of the part,), the new document ids of each part, -1 for deleted documents.
    """

    documents: Documents
    names: Sequence[Int64s]


def _renumbered(parts: Sequence[LivingPart]) -> _Renumbered:
    """Number the live documents of all parts by length."""
    _check_alike(parts)
    documents, ids = _documents(parts).by_length()
    names, first = [], 0
    for part in parts:
        new = np.full(len(part.lives), -1, np.int64)
        last = first + int(np.count_nonzero(part.lives))
        new[part.lives] = ids[first:last]
        names.append(new)
        first = last
    return _Renumbered(documents, names)


def _merged_postings(parts: Sequence[LivingPart], renumbered: _Renumbered) -> PartitionContents:
    """Merge the postings of partitions, or of some terms."""
    documents, names = renumbered.documents, renumbered.names
    with_positions = any(part.contents.positions is not None for part in parts)
    terms, numbers = distinct_terms([part.contents.terms for part in parts])
    counts = np.zeros((2, len(terms)), np.int64)
    for part, part_numbers, new in zip(parts, numbers, names, strict=True):
        status.check_status(sort.count_living(*_postings(part), new, part_numbers, counts), "posting", "list")
    bounds = np.append(0, np.cumsum(counts[0]))
    document_ids, frequencies = np.empty(bounds[-1], np.uint32), np.empty(bounds[-1], np.uint32)
    ends = bounds[:-1].copy()
    for part, part_numbers, new in zip(parts, numbers, names, strict=True):
        outcome = sort.fill_living(*_postings(part), new, part_numbers, ends, document_ids, frequencies)
        status.check_status(outcome, "posting", "list")
    token_bounds = np.append(0, np.cumsum(counts[1])) if with_positions else None
    positions = None if token_bounds is None else _positions(parts, numbers, names, token_bounds)
    sort_postings(bounds, document_ids, frequencies, positions, token_bounds)
    stays = counts[0] > 0
    if not stays.all():
        terms, bounds = terms.take(np.flatnonzero(stays)), np.append(bounds[:-1][stays], bounds[-1])
    return PartitionContents(documents, terms, bounds, document_ids, frequencies, positions)


def _check_alike(parts: Sequence[LivingPart]) -> None:
    """Raise InvalidInputError if the parts differ in positions or document granularity."""
    with_positions = {part.contents.positions is not None for part in parts}
    depths = {len(part.contents.documents.elements) for part in parts}
    if len(with_positions) > 1 or len(depths) > 1:
        raise InvalidInputError("partitions that differ in positions or document granularity cannot be merged")


def _documents(parts: Sequence[LivingPart]) -> Documents:
    row_ids = joined((part.row_ids[part.lives] for part in parts), np.uint64)
    lengths = joined((part.contents.documents.num_tokens[part.lives] for part in parts), np.uint32)
    elements = (part.contents.documents.elements for part in parts)
    levels = zip(*elements, strict=True)
    lives = [part.lives for part in parts]
    return Documents(row_ids, lengths, tuple(_living(level, lives) for level in levels))


def _living(level: Sequence[NDArray[np.uint32]], lives: Sequence[NDArray[np.bool_]]) -> NDArray[np.uint32]:
    return joined((places[living] for places, living in zip(level, lives, strict=True)), np.uint32)


def _postings(part: LivingPart) -> tuple[Int64s, NDArray[np.uint32], NDArray[np.uint32]]:
    return part.contents.bounds, part.contents.document_ids, part.contents.frequencies


def _positions(
    parts: Sequence[LivingPart], numbers: Sequence[Int64s], names: Sequence[Int64s], bounds: Int64s
) -> NDArray[np.uint32]:
    ends, positions = bounds[:-1].copy(), np.empty(bounds[-1], np.uint32)
    for part, part_numbers, new in zip(parts, numbers, names, strict=True):
        assert part.contents.positions is not None
        outcome = sort.fill_living_positions(
            *_postings(part), new, part_numbers, part.contents.positions, ends, positions
        )
        status.check_status(outcome, "position", "list")
    return positions
