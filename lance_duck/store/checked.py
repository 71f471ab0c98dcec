"""Data files whose bytes are verified before use. `checksums.container` describes the layout."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from lance_duck.arrow.distinct import distinct
from lance_duck.checksums.container import Checksums, Trailer, damaged, read_checksums
from lance_duck.checksums.digests import BLOCK, LOG2_BLOCK, digest, num_blocks
from lance_duck.store.costs import COPY_BYTES
from lance_duck.store.mapped import Int64s, MappedFile, Spans
from lance_duck.store.request import Bytes, ByteSource


class DigestedSource:
    """A `ByteSource` that verifies each block of 64 KiB when it is first read.

    Safe to use from several threads, although two threads may verify the same block. Later reads of a block are not
    verified. Changes to an open file are therefore not detected.

    Args:
        source: The file.
        checksums: Returns the checksums of the file. Called for the first read, and by `damaged`.
    """

    def __init__(self, source: ByteSource, checksums: Callable[[], Checksums]) -> None:
        self.path = source.path
        self.size = source.size
        self.remote = source.remote
        self.source = source
        self.checksums = checksums
        self._blocks: _Blocks | None = None

    @property
    def is_checked(self) -> bool:
        """Whether all blocks have been verified."""
        return self._blocks is not None and not self._blocks.left

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Bytes]:
        """Return the bytes of each (offset, size): see `ByteSource.read`.

        Raises:
            CorruptError: A block that contains some of the requested bytes does not match its digest.
        """
        blocks = self._blocks or self._load()
        new = [place for place in ranges if not blocks.is_checked(*place)] if blocks.left else []
        if not new:
            return self.source.read(ranges)
        runs = blocks.runs(blocks.unchecked(np.array(new, np.int64)))
        pieces = self.source.read([*ranges, *((offset, size) for _, offset, size in runs)])
        for (first, offset, _), piece in zip(runs, pieces[len(ranges) :], strict=True):
            blocks.check(first, offset, piece, self.path)
        return pieces[: len(ranges)]

    def check(self, offset: int, starts: Int64s, ends: Int64s) -> None:
        """Verify the blocks that contain the given bytes.

        Args:
            offset: Position of a buffer in the file.
            starts: int64, (n,), start of each byte range, relative to the buffer, in any order.
            ends: int64, (n,), end of each byte range, relative to the buffer.

        Raises:
            CorruptError: A block does not match its digest.
        """
        blocks = self._blocks or self._load()
        if blocks.are_checked(offset, starts, ends):
            return
        places = blocks.unchecked(np.stack([offset + starts, ends - starts], axis=1))
        if len(places):
            runs = blocks.runs(places)
            pieces = self.source.read([(offset, size) for _, offset, size in runs])
            for (first, offset, _), piece in zip(runs, pieces, strict=True):
                blocks.check(first, offset, piece, self.path)

    def damaged(self) -> list[tuple[int, int]]:
        """Read all blocks again, and return the position and size of each block that does not match its digest.

        Raises:
            CorruptError: The checksums themselves are damaged.
        """
        blocks = _Blocks(self.checksums())
        places: list[tuple[int, int]] = []
        for first, offset, size in blocks.all_runs(COPY_BYTES):
            places += blocks.differing(first, offset, self.source.read([(offset, size)])[0])
        return places

    def _load(self) -> _Blocks:
        blocks = self._blocks = _Blocks(self.checksums())
        return blocks


class CheckedSource(DigestedSource):
    """A data file or index file that stores its checksums.

    Args:
        source: The file.
        position: Offset of the checksum block.
        trailer: Trailer of the checksum block.
        block: The checksum block, if it has been read.
    """

    def __init__(self, source: ByteSource, position: int, trailer: Trailer, block: bytes | None = None) -> None:
        super().__init__(source, _ChecksumsInFile(source, position, trailer, block))
        self._position = position

    @property
    def checksums_at(self) -> int:
        """Position of the checksum block. All bytes before it belong to extents or padding."""
        return self._position


class _ChecksumsInFile:
    """Reads the checksums of a file. Does not refer to the `CheckedSource`, to avoid a reference cycle."""

    def __init__(self, source: ByteSource, position: int, trailer: Trailer, block: bytes | None) -> None:
        self._source = source
        self._position = position
        self._trailer = trailer
        self._block = block

    def __call__(self) -> Checksums:
        block, self._block = self._block, None  # a later call reads the block again
        if block is None:
            block = self._source.read([(self._position, self._trailer.size)])[0].tobytes()
        return read_checksums(block, self._trailer, self._source.path)


def sidecar_source(source: ByteSource, checksums: Checksums) -> DigestedSource:
    """Return a source that verifies the bytes of a sidecar.

    Raises:
        CorruptError: The file is longer or shorter than recorded.
    """
    if source.size != int(checksums.extents.sum()):
        raise damaged(f"the file, {source.size:,} bytes,", source.path)
    return DigestedSource(source, lambda: checksums)


def mapped_file(source: ByteSource) -> MappedFile | None:
    """Return the mapped file below a source, or None if the source is not mapped. Its bytes are not verified."""
    source = source.source if isinstance(source, DigestedSource) else source
    return source if isinstance(source, MappedFile) else None


def look(
    source: ByteSource,
    offset: int,
    size: int,
    touched: int,
    rows: Int64s | None = None,
    spans: Spans | None = None,
    *,
    repeats: bool = False,
) -> Bytes:
    """Return a byte range from which about `touched` bytes will be read. Unmapped sources fetch the whole range.

    Args:
        source: The file.
        offset: Start of the byte range.
        size: Size of the byte range.
        touched: Number of bytes that will be read.
        rows: Ascending rows that will be read, at least one. Without rows, nothing is prefetched.
        spans: Returns the start and end of each row's bytes, relative to `offset`. Required with `rows`.
        repeats: Whether reads of the same bytes will follow.
    """
    if isinstance(source, DigestedSource):
        if rows is None or spans is None:
            return source.read([(offset, size)])[0]
        if not source.is_checked:
            source.check(offset, *spans(rows))
        source = source.source
    if isinstance(source, MappedFile):
        if rows is not None and spans is not None:
            source.read_ahead(offset, rows, spans)
        return source.look(offset, size, touched, repeats=repeats)
    return source.read([(offset, size)])[0]


class _Blocks:
    """The blocks of a file, numbered over all extents, and a mask of verified blocks.

    Attributes:
        left: Number of unverified blocks. It may be too large while several threads verify blocks.
    """

    def __init__(self, checksums: Checksums) -> None:
        self._digests = checksums.digests
        self._starts, sizes = checksums.extents.astype(np.int64).T
        self._ends = self._starts + sizes
        counts = num_blocks(sizes)
        self._first = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        self._checked = np.zeros(len(self._digests), np.bool_)
        self._begin_of, self._end_of = self._starts.tolist(), self._ends.tolist()
        self._left_of = counts.tolist()
        self.left = len(self._digests)

    def is_checked(self, offset: int, size: int) -> bool:
        """Return whether a range is empty, or lies within an extent whose blocks have all been verified."""
        extent = bisect_right(self._begin_of, offset) - 1
        return not size or (extent >= 0 and not self._left_of[extent] and offset + size <= self._end_of[extent])

    def are_checked(self, offset: int, starts: Int64s, ends: Int64s) -> bool:
        """Return whether all blocks that contain short ranges of one buffer are already verified.

        May return False for verified ranges that span more than two blocks.

        Args:
            offset: Position of the buffer.
            starts: Start of each range in the buffer.
            ends: End of each range in the buffer.
        """
        extent = bisect_right(self._begin_of, offset) - 1
        if extent < 0 or ends.max(initial=0) > self._end_of[extent] - offset or self._begin_of[extent] != offset:
            return False
        if not self._left_of[extent]:
            return True
        low, high = starts >> LOG2_BLOCK, (ends - 1) >> LOG2_BLOCK
        checked = self._checked[self._first[extent] : self._first[extent + 1]]
        return bool((high - low < 2).all() and checked[low].all() and checked[high].all())

    def unchecked(self, ranges: Int64s) -> Int64s:
        """Return the unverified blocks that contain bytes of the ranges, ascending.

        Args:
            ranges: int64, one row for each range: offset and size.
        """
        offsets = ranges[:, 0]
        ends = offsets + ranges[:, 1]
        low = np.searchsorted(self._ends, offsets, side="right")  # first extent that ends after the offset
        high = np.searchsorted(self._starts, ends, side="left") - 1  # last extent that begins before the end
        some = np.flatnonzero((low <= high) & (ends > offsets))
        if not len(some):
            return some
        low, high, offsets, ends = low[some], high[some], offsets[some], ends[some]
        first = self._first[low] + np.maximum(offsets - self._starts[low], 0) // BLOCK
        last = self._first[high] + (np.minimum(ends, self._ends[high]) - 1 - self._starts[high]) // BLOCK
        if (first == last).all():
            return distinct(first[~self._checked[first]])
        steps = np.zeros(len(self._checked) + 1, np.int64)
        np.add.at(steps, first, 1)
        np.add.at(steps, last + 1, -1)
        return np.flatnonzero((np.cumsum(steps[:-1]) > 0) & ~self._checked)

    def runs(self, places: Int64s) -> list[tuple[int, int, int]]:
        """Return the runs of adjacent blocks in an extent: (first block, offset, size in bytes).

        Args:
            places: int64, numbers of the blocks, ascending.
        """
        extents = np.searchsorted(self._first, places, side="right") - 1
        begins = np.flatnonzero((np.diff(places, prepend=-2) != 1) | (np.diff(extents, prepend=-1) != 0))
        firsts, extents = places[begins], extents[begins]
        counts = np.diff(begins, append=len(places))
        offsets = self._starts[extents] + (firsts - self._first[extents]) * BLOCK
        sizes = np.minimum(offsets + counts * BLOCK, self._ends[extents]) - offsets
        return list(zip(firsts.tolist(), offsets.tolist(), sizes.tolist(), strict=True))

    def all_runs(self, size: int) -> Iterator[tuple[int, int, int]]:
        """Yield runs (see `runs`) of all blocks. A run has at most `size` bytes, a multiple of the block size."""
        extents = np.stack([self._first[:-1], self._starts, self._ends], axis=1).tolist()
        for first, start, end in extents:
            for at in range(start, end, size):
                yield first + (at - start) // BLOCK, at, min(size, end - at)

    def differing(self, first: int, offset: int, data: Bytes) -> Iterator[tuple[int, int]]:
        """Yield the position and size of each block that does not match its digest. The blocks are adjacent.

        Args:
            first: Number of the first block.
            offset: Offset of the first block in the file.
            data: Bytes of all blocks.
        """
        for place, at in enumerate(range(0, len(data), BLOCK), first):
            piece = data[at : at + BLOCK]
            if digest(piece) != self._digests[place]:
                yield offset + at, len(piece)

    def check(self, first: int, offset: int, data: Bytes, where: str) -> None:
        """Compare the bytes of adjacent blocks with their digests.

        Args:
            first: Number of the first block.
            offset: Offset of the first block in the file.
            data: Bytes of all blocks.
            where: Name of the file, for messages.

        Raises:
            CorruptError: A block does not match its digest.
        """
        for at, size in self.differing(first, offset, data):
            raise damaged(f"{size:,} bytes at {at:,}", where)
        self._checked[first : first + -(-len(data) // BLOCK)] = True
        extent = bisect_right(self._begin_of, offset) - 1
        low, high = self._first[extent], self._first[extent + 1]
        self._left_of[extent] = int(high - low - np.count_nonzero(self._checked[low:high]))
        self.left = sum(self._left_of)
