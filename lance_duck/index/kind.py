"""The interface of index kinds. See "Add an index kind" in CONTRIBUTING.md."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.query import Query
from lance_duck.rows.row_set import RowSet

Rows = NDArray[np.uint64]
Follow: TypeAlias = Callable[[Rows], tuple[Rows, NDArray[np.bool_]]]
"""Maps stored rows to their current ids or addresses, and returns a mask of the rows to keep.

The mask is False for deleted rows, and for rows outside the fragments that the segment covers. Full-text segments that
store addresses keep deleted rows. The ids and addresses of dropped rows are arbitrary. The function does not look at
entries: it also maps rows for which the segment has no entry, such as the rows inside a zone. It raises CorruptError if
an offset lies past the end of a covered fragment.
"""
Lives: TypeAlias = Callable[[Rows], NDArray[np.bool_]]
"""Returns a mask of the stored rows that are live rows of covered fragments."""

VALUE = "value"
ROW = "row"


@dataclass(frozen=True)
class Answer:
    """The result of an index query, as row ids or addresses, whichever the segment stores.

    Attributes:
        sure: Rows that satisfy the query.
        maybe: Rows that may satisfy it, including `sure`. No other covered row does.
    """

    sure: RowSet
    maybe: RowSet

    @classmethod
    def exactly(cls, rows: RowSet) -> Answer:
        """Return an exact result with these rows."""
        return cls(rows, rows)

    @classmethod
    def at_most(cls, rows: RowSet) -> Answer:
        """Return a result with only an upper bound: at most these rows."""
        return cls(RowSet({}), rows)

    @property
    def is_exact(self) -> bool:
        """Whether the result is exact."""
        return self.sure is self.maybe


class ScalarIndex(Protocol):
    """An open segment. Immutable and thread-safe. Reads are cached within limits.

    Corrupt files raise a LanceDuckError when the segment is opened or searched. A segment may also implement `Naming`
    or `Stretching` from `index.reach`, and `Counting` and `Ordered` from `index.aggregates`.
    """

    def estimate(self, query: Query) -> int | None:
        """Return an upper bound of the result's row count, without reading rows. Returns None if unknown."""

    def search(self, query: Query) -> Answer:
        """Run a query that the kind supports, as `answers` reports."""

    def statistics(self) -> dict[str, Any]:
        """Return statistics with the fields of pylance's index_statistics."""

    def prewarm(self) -> None:
        """Read and cache everything that searches need."""

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""


@dataclass(frozen=True)
class Details:
    """The details of a new segment in the manifest.

    Attributes:
        version: Version of the segment's layout, `index_version`.
        value: Serialized details message.
    """

    version: int
    value: bytes = b""


@dataclass(frozen=True)
class BuildOptions:
    """Options of a build.

    Attributes:
        parameters: Parameters of the index, by pylance's names (rows_per_zone, …).
        memory_limit: Maximum memory of the build, in bytes. Larger data is spilled to temporary files.
        stable_row_ids: Whether the segment stores stable row ids instead of row addresses.
        progress: Called periodically with the number of rows processed.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    memory_limit: int = 1 << 30
    stable_row_ids: bool = False
    progress: Callable[[int], None] | None = None


@dataclass(frozen=True)
class MergeInput:
    """A segment whose entries are merged into a new one.

    Attributes:
        index: The open segment.
        follow: Drops fragments that the segment no longer covers, and follows rows that compaction moved.
        details: Details message of the segment in the manifest.
    """

    index: Any
    follow: Follow
    details: bytes = b""


class IndexKind(Protocol):
    """A kind of index.

    Attributes:
        name: Name as reported by pylance ("BTree"), and as given by users ("BTREE"), ignoring case.
        type_url: Type url of the details of its segments in the manifest.
        versions: Layout versions that can be read.
        rows_by: "id" if segments store stable row ids in tables that have them, "address" if always row addresses,
            "version" if ids in version 0 and addresses from version 1 on. Open segments with addresses implement
            `index.reach.Naming` or `Stretching`.
        reaches_into_lists: Whether a struct field inside lists can be indexed. `build` then receives lists of values.
    """

    name: str
    type_url: str
    versions: range
    rows_by: str
    reaches_into_lists: bool

    def supports(self, type_: pa.DataType) -> bool:
        """Return whether a column of this storage type can be indexed."""

    def answers(self, query: Query, type_: pa.DataType) -> bool:
        """Return whether a search can answer a query on a column of this storage type. Pure."""

    def open(self, files: SegmentReader, type_: pa.DataType, details: Details) -> ScalarIndex:
        """Open a segment. Reads the data that every search needs. Rows are read later.

        Raises:
            CorruptError, NotFoundError, UnsupportedError: The files do not have the layout of this kind and type.
        """

    def build(self, rows: pa.RecordBatchReader, writer: SegmentWriter, options: BuildOptions) -> Details:
        """Write a segment.

        Args:
            rows: Columns `VALUE` (storage type of the column) and `ROW` (uint64), in table order.
            writer: Writer of the segment. The caller closes or aborts it.
            options: Parameters and limits.
        """

    def merge(
        self,
        parts: Sequence[MergeInput],
        rows: pa.RecordBatchReader | None,
        writer: SegmentWriter,
        options: BuildOptions,
    ) -> Details:
        """Write a segment with the entries of other segments and of new rows that they do not contain (see `build`).

        Compaction passes one segment and no new rows, to rewrite the entries with new row addresses.
        """

    def can_follow(self) -> bool:
        """Return whether entries can follow moved rows. If not, compaction leaves rewritten fragments uncovered."""


class MergedKind(ABC):
    """A kind that builds by merging rows with zero segments, and whose entries can follow moved rows."""

    @abstractmethod
    def merge(
        self,
        parts: Sequence[MergeInput],
        rows: pa.RecordBatchReader | None,
        writer: SegmentWriter,
        options: BuildOptions,
    ) -> Details:
        """Write a segment from other segments and new rows. See `IndexKind`."""

    def build(self, rows: pa.RecordBatchReader, writer: SegmentWriter, options: BuildOptions) -> Details:
        """Write a segment from rows. See `IndexKind`."""
        return self.merge((), rows, writer, options)

    def can_follow(self) -> bool:
        """Return True: a segment can be rewritten with new row addresses."""
        return True
