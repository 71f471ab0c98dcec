"""Row versions: the table version in which each row was created or last updated.

A `RowDatasetVersionSequence` is a list of row runs. All rows of a run share one version. The span of a run only
determines its row count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.join import joined
from lance_duck.rows.row_ids import check_length, parse_sequence
from lance_duck.rows.segment import segment_from_proto
from lance_duck.wire.pb import rowids_pb2


class VersionSequence:
    """One version for each physical row of a fragment.

    Args:
        lengths: int64, row count of each run.
        versions: uint64, version of each run.
    """

    def __init__(self, lengths: NDArray[np.int64], versions: NDArray[np.uint64]) -> None:
        self._bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        self._versions = versions

    @classmethod
    def constant(cls, version: int, count: int) -> VersionSequence:
        """Return a sequence of `count` rows that all have one version."""
        runs = min(count, 1)
        return cls(np.full(runs, count, np.int64), np.full(runs, version, np.uint64))

    @classmethod
    def from_versions(cls, versions: NDArray[np.integer]) -> VersionSequence:
        """Build a sequence from the version of each row, in row order."""
        starts = np.flatnonzero(np.concatenate([np.ones(min(len(versions), 1), np.bool_), np.diff(versions) != 0]))
        return cls(np.diff(starts, append=len(versions)), versions[starts].astype(np.uint64))

    @classmethod
    def concat(cls, sequences: Iterable[VersionSequence]) -> VersionSequence:
        """Concatenate sequences. Adjacent runs with the same version are merged."""
        pieces = list(sequences)
        lengths = joined((np.diff(s._bounds) for s in pieces), np.int64)
        versions = joined((s._versions for s in pieces), np.uint64)
        lengths, versions = lengths[lengths > 0], versions[lengths > 0]
        if not len(lengths):
            return cls(lengths, versions)
        starts = np.flatnonzero(np.concatenate([np.ones(1, np.bool_), versions[1:] != versions[:-1]]))
        return cls(np.add.reduceat(lengths, starts), versions[starts])

    def __len__(self) -> int:
        return int(self._bounds[-1])

    def slice(self, start: int, stop: int) -> NDArray[np.uint64]:
        """Return the versions of rows start … stop - 1. The rows must lie within the fragment."""
        lengths = np.diff(np.clip(self._bounds, start, stop))
        return np.repeat(self._versions, lengths)

    def take(self, offsets: NDArray[np.integer]) -> NDArray[np.uint64]:
        """Return the versions of rows at offsets in any order. The offsets must lie within the fragment."""
        positions = offsets.astype(np.int64, copy=False)
        return self._versions[np.searchsorted(self._bounds, positions, side="right") - 1]

    def select(self, offsets: NDArray[np.integer]) -> VersionSequence:
        """Return the versions of rows at strictly ascending offsets, as a sequence."""
        lengths = np.diff(np.searchsorted(offsets, self._bounds)).astype(np.int64)
        return self.concat([VersionSequence(lengths, self._versions)])

    def with_versions(self, change: Callable[[NDArray[np.uint64]], NDArray[np.uint64]]) -> VersionSequence:
        """Return the sequence with other versions. `change` takes the version of each run, and returns the new ones."""
        return self.concat([VersionSequence(np.diff(self._bounds), change(self._versions))])

    def to_bytes(self) -> bytes:
        """Serialize the sequence."""
        bounds = self._bounds.tolist()
        runs = [
            rowids_pb2.RowDatasetVersionRun(span={"range": {"start": begin, "end": end}}, version=version)
            for begin, end, version in zip(bounds, bounds[1:], self._versions.tolist(), strict=False)
        ]
        return rowids_pb2.RowDatasetVersionSequence(runs=runs).SerializeToString(deterministic=True)


def read_versions(data: bytes, where: str, physical_rows: int | None = None) -> VersionSequence:
    """Parse a serialized RowDatasetVersionSequence.

    Args:
        data: The message.
        where: Name of the file, for messages.
        physical_rows: Physical row count of the fragment, or None if unknown.

    Raises:
        CorruptError: The sequence is corrupt, or does not have one version per row.
    """
    proto = parse_sequence(rowids_pb2.RowDatasetVersionSequence, data, "row versions", where)
    lengths = [segment_from_proto(run.span, where).count for run in proto.runs]
    check_length(sum(lengths), physical_rows, "row versions", where)
    return VersionSequence(np.array(lengths, np.int64), np.array([run.version for run in proto.runs], np.uint64))
