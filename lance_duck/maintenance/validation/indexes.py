"""Validation of index segments against the manifest and the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.distinct import difference_of, intersection_of
from lance_duck.arrow.listed import values_below
from lance_duck.arrow.types import is_list
from lance_duck.errors import CorruptError, LanceDuckError
from lance_duck.index.catalog import Segment, catalog
from lance_duck.index.inverted.kind import INVERTED
from lance_duck.index.kind import Answer, Details
from lance_duck.index.opened import segment_files
from lance_duck.index.reach import needs_reach, reached
from lance_duck.index.search import answer
from lance_duck.index.vector.kind import VECTOR
from lance_duck.index.vector.search.contract import VectorIndex
from lance_duck.maintenance.validation.files import check_segment
from lance_duck.maintenance.validation.problems import Problem, problems_of
from lance_duck.maintenance.validation.texts import TextRows
from lance_duck.maintenance.validation.vectors import VectorRows
from lance_duck.rows import fragments_in_bitmap
from lance_duck.scan.indexes.query import query_of
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.predicate.evaluate import evaluate
from lance_duck.scan.predicate.tree import Compare, HasAny, IsNull, Not, Path, Predicate
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.wire.below_lists import listed_field
from lance_duck.wire.index import SYSTEM, IndexMetadata

_SAMPLES: Final = 8
_VALUE: Final[Path] = ("value",)


def index_problems(snapshot: Snapshot, metadata: IndexMetadata) -> Iterator[Problem]:
    """Yield the problems of a segment.

    Its files must exist and have the listed sizes. A usable segment is read completely, and searched for a sample of
    the values of its rows. For each live row, the search result must be correct. A vector segment must contain each
    row with a vector once, with that vector. A full-text segment must contain each row that has terms, with exactly
    these terms. Unknown kinds and versions are not reported.
    """
    where = f"index {metadata.name!r} ({metadata.uuid})"
    field_ids = {field.id for field in snapshot.schema.walk()}
    for field_id in metadata.fields:
        if field_id not in field_ids:
            yield Problem(where, f"is over field {field_id}, which does not exist")
    bitmap = metadata.fragment_bitmap
    if bitmap is not None:
        yield from problems_of(f"{where}: fragments", lambda: fragments_in_bitmap(bitmap, where))
    broken = list(_files(snapshot, metadata, where)) or list(_damage(snapshot, metadata, where))
    yield from broken
    if not broken and metadata.name not in SYSTEM:
        yield from problems_of(where, lambda: _contents(snapshot, metadata))


def _files(snapshot: Snapshot, metadata: IndexMetadata, where: str) -> Iterator[Problem]:
    for name, size in metadata.files:

        def check(name: str = name, size: int = size) -> None:
            actual_size = segment_files(snapshot, metadata).size(name)
            if size and actual_size != size:
                raise CorruptError("wrong file size", expected=size, found=actual_size)

        yield from problems_of(f"{where}: {name}", check)


def _damage(snapshot: Snapshot, metadata: IndexMetadata, where: str) -> Iterator[Problem]:
    for file in check_segment(snapshot, metadata):
        if file.is_open:
            yield from (Problem(f"{where}: {file.file}", what) for what in file.damage)


def _contents(snapshot: Snapshot, metadata: IndexMetadata) -> None:
    """Raise the error of the first problem in the contents of a segment."""
    segments = (s for index in catalog(snapshot) for s in index.segments if s.uuid == metadata.uuid)
    segment = next(segments, None)
    if segment is None:
        return
    _check_reach(snapshot, segment)
    details = Details(metadata.version, metadata.details)
    index = segment.kind.open(segment_files(snapshot, metadata), segment.type, details)
    index.prewarm()
    claims: list[_Claim | VectorRows | TextRows] | None = None
    if segment.kind is VECTOR:
        claims = [VectorRows(snapshot, segment, cast("VectorIndex", index))]
    elif segment.kind is INVERTED:
        claims = [TextRows(snapshot, segment, index)]
    for fragment_id in segment.fragments.tolist():
        try:
            column, offsets = _column(snapshot, segment, fragment_id)
        except LanceDuckError:
            continue  # the validation of the fragment reports this problem
        if claims is None:
            questions = [(c, query_of(c, segment.type)) for c in _conditions(column)]
            questions += [(Not(IsNull(_VALUE)), query_of(IsNull(_VALUE), segment.type, true=False))]
            claims = [
                _Claim(condition, answer(snapshot, segment, index, query))
                for condition, query in questions
                if query is not None and segment.kind.answers(query, segment.type)
            ]
        for claim in claims:
            claim.check(fragment_id, column, offsets)


def _check_reach(snapshot: Snapshot, segment: Segment) -> None:
    """Reject a segment that lists fragments without containing all their rows, because searches would miss these."""
    if not needs_reach(snapshot, segment.kind, segment.metadata.version):
        return
    fragments = fragments_in_bitmap(segment.metadata.fragment_bitmap or b"", "fragments")
    present = intersection_of(fragments, np.array(snapshot.fragments.ids(), np.uint32))
    lost = difference_of(present, reached(snapshot, segment.metadata, segment.kind, segment.type, present))
    if len(lost):
        raise CorruptError(
            f"lists fragments {lost.tolist()} but does not contain all of their rows, and pylance does not find these",
            remedy="create the index again, or run optimize_indices",
        )


@dataclass(frozen=True)
class _Claim:
    """The search result of a segment for a condition."""

    condition: Predicate
    answer: Answer

    def check(self, fragment_id: int, column: pa.Array, offsets: NDArray[np.int64]) -> None:
        """Compare the result with the live rows of a fragment. Raises CorruptError."""
        result = evaluate(self.condition, {_VALUE[0]: column}, len(column))
        true = offsets[result.fill_null(False).to_numpy(zero_copy_only=False)]
        missing = difference_of(true, self.answer.maybe.offsets(fragment_id))
        living = np.intersect1d(self.answer.sure.offsets(fragment_id), offsets, assume_unique=True)
        wrong = difference_of(living, true)
        for rows, what in ((missing, "does not know that"), (wrong, "wrongly says that")):
            if len(rows):
                raise CorruptError(
                    f"the index {what} row {rows[0]} of fragment {fragment_id} satisfies {self.condition}",
                    found=f"{len(rows)} such rows",
                )


def _conditions(column: pa.Array) -> list[Predicate]:
    """Return conditions on a sample of a column's values."""
    values = column.drop_null()
    if is_list(column.type):
        labels = values.flatten().drop_null()
        return [IsNull(_VALUE), *(HasAny(_VALUE, labels.take(pa.array([i]))) for i in _some(len(labels)))]
    some = [values[i] for i in _some(len(values))]
    return [IsNull(_VALUE), *(Compare(op, _VALUE, v) for v in some for op in ("=", "<", ">="))]


def _some(count: int) -> list[int]:
    places: list[int] = np.linspace(0, max(count - 1, 0), min(_SAMPLES, count)).astype(np.int64).tolist()
    return places


def _column(snapshot: Snapshot, segment: Segment, fragment_id: int) -> tuple[pa.Array, NDArray[np.int64]]:
    """Return the values of a fragment's live rows, with their storage type, and the row offsets."""
    table = TableScan(snapshot)
    field = listed_field(snapshot.schema, segment.field)
    options = ScanOptions(columns=[field.path], fragments=[fragment_id], with_row_address=True, use_threads=False)
    rows = table.reader(table.plan(options), options).read_all()
    column = values_below(rows.column(0).combine_chunks(), field.below)
    addresses = rows.column(1).to_numpy()
    return column, (addresses & np.uint64(0xFFFFFFFF)).astype(np.int64)
