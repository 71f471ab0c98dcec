"""In-memory indexes over the columns of a fake table: exact ones and approximate ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pyarrow as pa
from unit.scan.fake_table import FakeSnapshot

from lance_duck.errors import CorruptError
from lance_duck.index.catalog import ColumnIndex, IgnoredSegment, IndexCatalog, Segment
from lance_duck.index.kind import Answer
from lance_duck.index.query import Among, Between, ContainsAll, ContainsAny, Except, HasPrefix, Null, Query
from lance_duck.rows.row_set import RowSet
from lance_duck.scan.predicate import tree
from lance_duck.scan.predicate.arrays import descend
from lance_duck.scan.predicate.evaluate import evaluate
from lance_duck.scan.predicate.tree import Predicate
from lance_duck.wire.index import IndexMetadata
from lance_duck.wire.pb import table_pb2

VALUE = ("value",)


def meaning(query: Query) -> Predicate:
    """The condition on a column `value` that a query is."""
    match query:
        case Between(low, high, low_open, high_open):
            parts = [] if low is None else [tree.Compare(">" if low_open else ">=", VALUE, low)]
            parts += [] if high is None else [tree.Compare("<" if high_open else "<=", VALUE, high)]
            return tree.And((*parts, tree.Not(tree.IsNull(VALUE))))
        case Among(values):
            return tree.In(VALUE, values)
        case Null():
            return tree.IsNull(VALUE)
        case HasPrefix(prefix):
            return tree.StartsWith(VALUE, prefix)
        case ContainsAny(values):
            return tree.HasAny(VALUE, values)
        case ContainsAll(values):
            return tree.HasAll(VALUE, values)
        case Except(inner):
            return tree.And((tree.Not(meaning(inner)), tree.Not(tree.IsNull(VALUE))))
    raise AssertionError(query)


@dataclass
class FakeKind:
    """A kind with prepared segments.

    Attributes:
        slack: Maximum number of false positives in an answer; 0 makes it exact.
    """

    name: str = "BTree"
    slack: int = 0
    refuses: tuple[type, ...] = ()
    type_url: str = "fake"
    versions: range = range(1)
    rows_by: str = "address"
    reaches_into_lists = False
    made: dict[str, FakeIndex] = field(default_factory=dict)

    def answers(self, query: Query, type_: pa.DataType) -> bool:
        inner = query.query if isinstance(query, Except) else query
        return not isinstance(inner, self.refuses) and not isinstance(query, self.refuses)

    def open(self, files: Any, type_: pa.DataType, details: Any) -> FakeIndex:
        return self.made[files.directory.rpartition("/")[2]]


@dataclass
class FakeIndex:
    values: pa.Array
    rows: np.ndarray
    slack: int
    estimates: bool = True
    broken: bool = False
    asked: list[Query] = field(default_factory=list)
    nbytes: int = 0

    def estimate(self, query: Query) -> int | None:
        return len(self.search(query, quietly=True).maybe) if self.estimates else None

    def search(self, query: Query, *, quietly: bool = False) -> Answer:
        if self.broken:
            raise CorruptError("broken index")
        if not quietly:
            self.asked.append(query)
        answer = evaluate(meaning(query), {VALUE[0]: self.values}, len(self.values)).fill_null(False)
        found = self.rows[answer.to_numpy(zero_copy_only=False)]
        if not self.slack:
            return Answer.exactly(RowSet.of(found))
        more = np.random.default_rng(len(found)).choice(self.rows, min(self.slack, len(self.rows)))
        return Answer(RowSet.of(found[::2]), RowSet.of(np.concatenate([found, more])))


class Indexes:
    """Makes indexes for a fake table, and tells it of them."""

    def __init__(self, snapshot: FakeSnapshot) -> None:
        self.snapshot = snapshot
        self.made: list[ColumnIndex] = []

    def add(
        self,
        path: str,
        fragments: Iterable[Iterable[int]],
        kind: FakeKind | None = None,
        name: str | None = None,
        ignored: Sequence[str] = (),
    ) -> list[FakeIndex]:
        """Add an index with a segment for each group of fragments."""
        kind = kind or FakeKind()
        found = [self._segment(path, list(group), kind, name or f"{path}_idx") for group in fragments]
        reasons = tuple(IgnoredSegment(metadata(uuid4(), name or f"{path}_idx"), reason) for reason in ignored)
        segments = tuple(segment for segment, _ in found)
        self.made.append(ColumnIndex(name or f"{path}_idx", path, kind, segments, reasons))  # type: ignore[arg-type]
        self.snapshot.catalog = IndexCatalog(tuple(self.made), self.snapshot.schema)
        return [index for _, index in found]

    def _segment(self, path: str, group: list[int], kind: FakeKind, name: str) -> tuple[Segment, FakeIndex]:
        parts = path.split(".")
        arrays = {i: table[parts[0]].combine_chunks() for i, table in self.snapshot.tables.items() if i in group}
        columns = [descend(array, tuple(parts[1:])) for array in arrays.values()]
        rows = [np.arange(len(a), dtype=np.uint64) | np.uint64(i << 32) for i, a in arrays.items()]
        uuid = uuid4()
        index = FakeIndex(pa.concat_arrays(columns), np.concatenate(rows), kind.slack)
        kind.made[str(uuid)] = index
        by = self.snapshot.schema.by_path(path)
        ids = np.array(sorted(arrays), np.uint32)
        return Segment(metadata(uuid, name), kind, by, path, columns[0].type, ids, False), index  # type: ignore[arg-type]


def metadata(uuid: UUID, name: str) -> IndexMetadata:
    return IndexMetadata(uuid, name, (0,), 1, None, None, b"", 0, None, None, (), table_pb2.IndexMetadata())


def catalog_of(snapshot: FakeSnapshot, indexes: Mapping[str, Iterable[Iterable[int]]]) -> IndexCatalog:
    """A catalog of exact indexes, by column."""
    made = Indexes(snapshot)
    for path, fragments in indexes.items():
        made.add(path, fragments)
    return snapshot.catalog
