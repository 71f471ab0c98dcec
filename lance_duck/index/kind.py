"""The interface of kinds of indexes; each has its own module, and a line in `index.registry`."""

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
"""Returns the new names of rows, and whether each is still an entry."""
Lives: TypeAlias = Callable[[Rows], NDArray[np.bool_]]
"""Returns which rows, by their names in a segment, are live rows that the segment answers for."""

VALUE = "value"
ROW = "row"


@dataclass(frozen=True)
class Answer:
    """The answer of an index to a query, with the names of rows that the index was built with.

    Attributes:
        sure: Rows that satisfy the query.
        maybe: Rows that may satisfy it, with all of `sure`: no other row that the segment covers does.
    """

    sure: RowSet
    maybe: RowSet

    @classmethod
    def exactly(cls, rows: RowSet) -> Answer:
        """Return an answer of exactly these rows."""
        return cls(rows, rows)

    @classmethod
    def at_most(cls, rows: RowSet) -> Answer:
        """Return an answer with only an upper bound: at most these rows."""
        return cls(RowSet({}), rows)

    @property
    def is_exact(self) -> bool:
        """Whether all rows that may satisfy the query surely do."""
        return self.sure is self.maybe


class ScalarIndex(Protocol):
    """An open segment. Immutable, safe to use from several threads; reads are cached within limits.

    For broken files it raises a LanceDuckError, when it is opened or searched.
    """

    def estimate(self, query: Query) -> int | None:
        """Return an upper bound of the rows of an answer, without reading rows; None if only a search tells."""

    def search(self, query: Query) -> Answer:
        """Return the answer to a query that the kind `answers`."""

    def statistics(self) -> dict[str, Any]:
        """Return what pylance's index_statistics says of a segment of this kind."""

    def prewarm(self) -> None:
        """Read all that searches read, and cache it."""

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
        memory_limit: Bytes that may be held at once; more is spilled to temporary files.
        stable_row_ids: Whether rows are named by stable row ids; else by address.
        progress: Called from time to time with the number of rows processed.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    memory_limit: int = 1 << 30
    stable_row_ids: bool = False
    progress: Callable[[int], None] | None = None


@dataclass(frozen=True)
class MergeInput:
    """A segment whose entries go into a new one.

    Attributes:
        index: The open segment.
        follow: Leaves out fragments that the segment does not cover any more, and follows rows that compaction moved.
        details: Details message of the segment in the manifest.
    """

    index: Any
    follow: Follow
    details: bytes = b""


class IndexKind(Protocol):
    """A kind of index.

    Attributes:
        name: Name as pylance reports it ("BTree") and, in any case, as users give it ("BTREE").
        type_url: Type url of the details of its segments in the manifest.
        versions: Versions of the layout that are read.
        rows_by: "id" if row names are stable row ids where the table has them, "address" if always addresses,
            "version" if by id in version 0 and by address from 1 on.
        reaches_into_lists: Whether a field of structs in lists can be indexed: `build` gets lists of values then.
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
        """Open a segment, which reads all that every search needs, and no page of rows.

        Raises:
            CorruptError, NotFoundError, UnsupportedError: The files are not what the kind writes for this type.
        """

    def build(self, rows: pa.RecordBatchReader, writer: SegmentWriter, options: BuildOptions) -> Details:
        """Write a segment.

        Args:
            rows: Columns `VALUE` (storage type of the column) and `ROW` (uint64), in table order.
            writer: Writer of the segment; the caller closes or aborts it.
            options: Parameters and limits.
        """

    def merge(
        self,
        parts: Sequence[MergeInput],
        rows: pa.RecordBatchReader | None,
        writer: SegmentWriter,
        options: BuildOptions,
    ) -> Details:
        """Write a segment with the entries of other segments, and of new rows (as for `build`) that none of them has.

        Compaction calls this with one part and no new rows: the same entries, under new names.
        """

    def can_follow(self) -> bool:
        """Return whether entries can get new names of rows; if not, compaction leaves rewritten fragments uncovered."""


class MergedKind(ABC):
    """A kind that builds a segment as a merge of no segments with rows, and whose entries can get new names of rows."""

    @abstractmethod
    def merge(
        self,
        parts: Sequence[MergeInput],
        rows: pa.RecordBatchReader | None,
        writer: SegmentWriter,
        options: BuildOptions,
    ) -> Details:
        """Write a segment of other segments and of new rows. See `IndexKind`."""

    def build(self, rows: pa.RecordBatchReader, writer: SegmentWriter, options: BuildOptions) -> Details:
        """Write a segment of rows. See `IndexKind`."""
        return self.merge((), rows, writer, options)

    def can_follow(self) -> bool:
        """Return True: a segment can be rewritten with new names of its rows."""
        return True
