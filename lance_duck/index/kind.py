"""What a kind of index offers: one module each, listed in `index.registry`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.query import Query
from lance_duck.rows.row_set import RowSet

Rows = NDArray[np.uint64]

VALUE = "value"
ROW = "row"


@dataclass(frozen=True)
class Answer:
    """What an index knows about a query, in the domain of names that it was built with.

    Attributes:
        sure: Rows that satisfy it.
        maybe: Rows that may satisfy it, all of `sure` among them: no other row that the segment covers does.
    """

    sure: RowSet
    maybe: RowSet

    @classmethod
    def exactly(cls, rows: RowSet) -> Answer:
        """Return an answer of exactly these rows."""
        return cls(rows, rows)

    @classmethod
    def at_most(cls, rows: RowSet) -> Answer:
        """Return an answer of which only an upper bound is known: at most these rows."""
        return cls(RowSet({}), rows)

    @property
    def is_exact(self) -> bool:
        """Whether nothing is left open."""
        return self.sure is self.maybe


class ScalarIndex(Protocol):
    """An open segment. Immutable, safe to use from several threads; what it reads it keeps, within limits.

    What it raises for broken files is a LanceDuckError, at open or at a search.
    """

    def estimate(self, query: Query) -> int | None:
        """Return an upper bound of the rows of an answer, without reading rows; None if only the answer tells."""

    def search(self, query: Query) -> Answer:
        """Return the rows for a query that the kind `answers`."""

    def statistics(self) -> dict[str, Any]:
        """Return what pylance's index_statistics says of a segment of this kind."""

    def prewarm(self) -> None:
        """Read everything that searches read, and keep it."""

    @property
    def nbytes(self) -> int:
        """Bytes that it holds in memory."""


@dataclass(frozen=True)
class Details:
    """What a new segment says of itself in the manifest.

    Attributes:
        version: Version of its layout; `index_version`.
        value: Serialized details message.
    """

    version: int
    value: bytes = b""


@dataclass(frozen=True)
class BuildOptions:
    """How to build.

    Attributes:
        parameters: What the user gave besides the kind, by pylance's names (rows_per_zone, …).
        memory_limit: Bytes that may be held at once; more is spilled to temporary files.
        stable_row_ids: Rows are named by stable row ids; else by address.
        progress: Called with the number of rows taken in, now and then.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    memory_limit: int = 1 << 30
    stable_row_ids: bool = False
    progress: Callable[[int], None] | None = None


@dataclass(frozen=True)
class MergeInput:
    """A segment whose entries go into a new one.

    Attributes:
        index: The segment, open.
        follow: From names of rows to (their new names, whether each is still an entry): leaves out fragments that the
            segment does not cover any more, and follows rows that compaction moved.
        details: Message of the kind in the manifest.
    """

    index: Any
    follow: Callable[[Rows], tuple[Rows, NDArray[np.bool_]]]
    details: bytes = b""


class IndexKind(Protocol):
    """A kind of index.

    Attributes:
        name: As pylance reports it ("BTree") and, in any case, as users ask for it ("BTREE").
        type_url: What its segments carry in the manifest.
        versions: Versions of the layout that are read.
        rows_by: "id": row names are stable row ids where the table has them. "address": always addresses.
            "version": by id in version 0, by address from 1 on.
        reaches_into_lists: A field of structs in lists can be indexed: the values that `build` gets are lists then.
    """

    name: str
    type_url: str
    versions: range
    rows_by: str
    reaches_into_lists: bool

    def supports(self, type_: pa.DataType) -> bool:
        """Return whether a column of this storage type can be indexed."""

    def answers(self, query: Query, type_: pa.DataType) -> bool:
        """Return whether a search says anything about a query on a column of this storage type. Pure."""

    def open(self, files: SegmentReader, type_: pa.DataType, details: Details) -> ScalarIndex:
        """Open a segment; reads what every search needs, and no page of rows.

        Raises:
            CorruptError, NotFoundError, UnsupportedError: The files are not what the kind writes for this type.
        """

    def build(self, rows: pa.RecordBatchReader, writer: SegmentWriter, options: BuildOptions) -> Details:
        """Write a segment.

        Args:
            rows: Columns `VALUE` (storage type of the column) and `ROW` (uint64), in table order.
            writer: Takes the files; the caller closes or aborts it.
            options: Parameters and limits.
        """

    def merge(
        self,
        parts: Sequence[MergeInput],
        rows: pa.RecordBatchReader | None,
        writer: SegmentWriter,
        options: BuildOptions,
    ) -> Details:
        """Write a segment with the entries of others, and of new rows (as for `build`) that none of them has.

        With one part and no new rows this is what compaction asks for: the same entries under new names.
        """

    def can_follow(self) -> bool:
        """Return whether entries can get new row names; False: compaction leaves the rewritten fragments uncovered."""


class MergedKind(ABC):
    """A kind whose new segment is the merge of no segments with rows, and whose entries can get new row names."""

    @abstractmethod
    def merge(
        self,
        parts: Sequence[MergeInput],
        rows: pa.RecordBatchReader | None,
        writer: SegmentWriter,
        options: BuildOptions,
    ) -> Details:
        """Write a segment of others and of new rows. See `IndexKind`."""

    def build(self, rows: pa.RecordBatchReader, writer: SegmentWriter, options: BuildOptions) -> Details:
        """Write a segment of rows. See `IndexKind`."""
        return self.merge((), rows, writer, options)

    def can_follow(self) -> bool:
        """Return whether the segment can be rewritten with new row names: its entries can."""
        return True
