"""Row addresses, and the stable row ids of a fragment.

A row address is fragment id * 2^32 + offset in the fragment. A stable row id is any number. A fragment lists its row
ids in a `RowIdSequence`: a list of segments that together have one id for each physical row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
from google.protobuf.message import DecodeError, Message
from numpy.typing import NDArray

from lance_duck.arrow.distinct import distinct
from lance_duck.arrow.join import joined
from lance_duck.errors import CorruptError
from lance_duck.rows.segment import Ids, Int64s, Range, U64Segment, segment_from_proto
from lance_duck.rows.segment_write import cut_ids, segment_to_proto
from lance_duck.wire.pb import rowids_pb2

OFFSET_BITS = 32

_M = TypeVar("_M", bound=Message)


def row_addresses(fragment_id: int, offsets: NDArray[np.integer]) -> Ids:
    """Return the addresses of rows of a fragment."""
    return offsets.astype(np.uint64) | np.uint64(fragment_id << OFFSET_BITS)


def split_addresses(addresses: Ids) -> tuple[Int64s, Int64s]:
    """Split row addresses into fragment ids and offsets."""
    offsets = addresses & np.uint64((1 << OFFSET_BITS) - 1)
    return (addresses >> np.uint64(OFFSET_BITS)).astype(np.int64), offsets.astype(np.int64)


class RowIdSequence:
    """The stable row ids of a fragment's physical rows, in order.

    Args:
        segments: Segments of ids, in row order.
    """

    def __init__(self, segments: Sequence[U64Segment]) -> None:
        self.segments = tuple(segments)
        self.bounds = np.cumsum([0, *(s.count for s in segments)], dtype=np.int64)

    @classmethod
    def range_of(cls, start: int, count: int) -> RowIdSequence:
        """Return the ids start … start + count - 1."""
        return cls([Range(start, count)] if count else [])

    @classmethod
    def from_ids(cls, ids: NDArray[np.integer]) -> RowIdSequence:
        """Build a sequence from ids in row order."""
        return cls(cut_ids(ids.astype(np.uint64, copy=False)))

    @classmethod
    def concat(cls, sequences: Iterable[RowIdSequence]) -> RowIdSequence:
        """Concatenate sequences."""
        joined: list[U64Segment] = []
        for segment in (s for sequence in sequences for s in sequence.segments if s.count):
            last = joined[-1] if joined else None
            if isinstance(segment, Range) and isinstance(last, Range) and last.start + last.count == segment.start:
                joined[-1] = Range(last.start, last.count + segment.count)
            else:
                joined.append(segment)
        return cls(joined)

    def __len__(self) -> int:
        return int(self.bounds[-1])

    def slice(self, start: int, stop: int) -> Ids:
        """Return the ids of rows start … stop - 1, uint64. The rows must lie within the fragment."""
        first = int(np.searchsorted(self.bounds, start, side="right")) - 1
        pieces = []
        for segment, begin in zip(self.segments[first:], self.bounds[first:].tolist(), strict=False):
            if begin >= stop:
                break
            pieces.append(segment.slice(max(start - begin, 0), min(stop - begin, segment.count)))
        if len(pieces) == 1:
            return pieces[0]
        return joined(pieces, np.uint64)

    def take(self, offsets: NDArray[np.integer]) -> Ids:
        """Return the ids of rows at offsets in any order. The offsets must lie within the fragment."""
        positions = offsets.astype(np.int64, copy=False)
        if len(self.segments) == 1:
            return self.segments[0].take(positions)
        owner = np.searchsorted(self.bounds, positions, side="right") - 1
        row_ids = np.empty(len(positions), np.uint64)
        for i in distinct(owner).tolist():
            is_inside = owner == i
            row_ids[is_inside] = self.segments[i].take(positions[is_inside] - self.bounds[i])
        return row_ids

    def select(self, offsets: NDArray[np.integer]) -> RowIdSequence:
        """Return the ids of the rows at some offsets as a sequence.

        Args:
            offsets: Strictly ascending offsets within the fragment.
        """
        pieces: list[RowIdSequence] = []
        edges = np.searchsorted(offsets, self.bounds).tolist()
        for segment, base, low, high in zip(self.segments, self.bounds.tolist(), edges, edges[1:], strict=False):
            if high - low == segment.count:
                pieces.append(RowIdSequence([segment]))
            elif high > low:
                pieces.append(self.from_ids(segment.take(offsets[low:high].astype(np.int64) - base)))
        return self.concat(pieces)

    def to_bytes(self) -> bytes:
        """Serialize the sequence. Each segment is stored in its smallest form."""
        segments = [segment_to_proto(s) for s in self.segments if s.count]
        return rowids_pb2.RowIdSequence(segments=segments).SerializeToString(deterministic=True)


def read_row_ids(data: bytes, where: str, physical_rows: int | None = None) -> RowIdSequence:
    """Parse a serialized RowIdSequence.

    Args:
        data: The message.
        where: Name of the file, for messages.
        physical_rows: Physical row count of the fragment, or None if unknown.

    Raises:
        CorruptError: The sequence is corrupt, or does not have one id per row.
    """
    proto = parse_sequence(rowids_pb2.RowIdSequence, data, "row ids", where)
    segments = [segment_from_proto(s, where) for s in proto.segments]
    check_length(sum(s.count for s in segments), physical_rows, "row ids", where)
    return RowIdSequence(segments)


def parse_sequence(message: type[_M], data: bytes, what: str, where: str) -> _M:
    """Parse the message of a sequence. Raises CorruptError if it cannot be parsed."""
    try:
        return message.FromString(data)
    except DecodeError as error:
        raise CorruptError(f"the sequence of {what} cannot be parsed", where=where) from error


def check_length(count: int, physical_rows: int | None, what: str, where: str) -> None:
    """Raise CorruptError if a sequence is not as long as its fragment, or longer than any fragment can be."""
    if physical_rows is not None and count != physical_rows:
        raise CorruptError(f"wrong number of {what}", where=where, expected=physical_rows, found=count)
    if count > 1 << OFFSET_BITS:
        raise CorruptError(f"wrong number of {what}", where=where, expected=f"at most {1 << OFFSET_BITS}", found=count)
