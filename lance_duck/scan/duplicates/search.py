"""Search for near duplicates: signs rows, lists candidates, and compares their texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.arguments import unknown_column, unknown_value
from lance_duck.arrow.join import joined
from lance_duck.arrow.types import is_text
from lance_duck.errors import InvalidInputError, LanceDuckError, StoreError, UnsupportedError, warn_of_index
from lance_duck.index.catalog import Segment, field_path
from lance_duck.index.names import Follower
from lance_duck.index.registry import kind_named
from lance_duck.index.reuse import reuse_of
from lance_duck.interrupts import Stopped
from lance_duck.rows import fragments_in_bitmap
from lance_duck.scan.duplicates.candidates import candidate_pairs, equal_groups
from lance_duck.scan.duplicates.parameters import MinHashParameters
from lance_duck.scan.duplicates.segments import minhash_segments, read_segment
from lance_duck.scan.duplicates.shingles import ShingledTexts, Shingler
from lance_duck.scan.filters import FilterLike
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.projection import ROW_ADDRESS, ROW_ID
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.snapshot.overlays import without_overlaid
from lance_duck.snapshot.with_log import refuse_row_ids
from lance_duck.wire.column_path import split_path
from lance_duck.wire.index import IndexMetadata
from lance_duck.wire.schema import Field

UInt64s = NDArray[np.uint64]
Int64s = NDArray[np.int64]

RESULT: Final = pa.schema(
    [pa.field("left", pa.uint64()), pa.field("right", pa.uint64()), pa.field("similarity", pa.float64())]
)
ALL: Final = "all"
"""Each of several equal texts has its own pairs."""
FIRST: Final = "first"
"""Equal texts are only paired with the first of them, which alone is paired with other texts."""
MOST_PAIRS: Final = 10_000_000
"""Maximum number of pairs in a result, which takes 24 bytes for each."""
_PAIRS_AT_ONCE: Final = 1 << 14
"""Maximum number of pairs that are compared at once. Limits the texts in memory."""
_TEXT_BYTES: Final = 16 << 20
_NO_ROWS: Final = np.empty(0, np.uint64)


def near_duplicates(
    table: TableScan, column: str, threshold: float, equal_texts: str = ALL, filter_: FilterLike | None = None
) -> pa.Table:
    """Return the pairs of rows whose texts have a similarity of at least a threshold. See `Searches.near_duplicates`.

    Raises:
        InvalidInputError: The column does not exist, the threshold is not in (0, 1], `equal_texts` is unknown, or there
            are too many pairs.
        UnsupportedError: The column does not contain texts, or the version contains the rows of a write-ahead log.
    """
    refuse_row_ids(table.snapshot)
    field = _text_column(table.snapshot, column)
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 < threshold <= 1:
        raise InvalidInputError(
            "threshold", where="near_duplicates", expected="more than 0, up to 1", found=repr(threshold)
        )
    if equal_texts not in (ALL, FIRST):
        raise unknown_value("equal_texts", equal_texts, (ALL, FIRST))
    search = _DuplicateSearch.over(table, field, filter_)
    keys = search.signed.keys
    groups = equal_groups(keys)
    repeated = np.flatnonzero(np.bincount(groups)[groups] > 1)
    firsts, copies = search.equal_texts(repeated, groups)
    rest = np.setdiff1d(np.arange(len(keys)), copies, assume_unique=True)
    copied = _Copies(len(keys), firsts, copies) if equal_texts == ALL else None
    pairs = [_Pairs(firsts, copies, np.ones(len(firsts))) if copied is None else copied.within()]
    count = len(pairs[0].left)
    for left, right in candidate_pairs(keys[rest], _PAIRS_AT_ONCE):
        found = search.compared(rest[left], rest[right], threshold)
        pairs.append(found if copied is None else copied.between(found, MOST_PAIRS - count))
        count += len(pairs[-1].left)
        if count > MOST_PAIRS:
            raise _too_many(count)
    return search.result(pairs)


def _too_many(count: int) -> InvalidInputError:
    return InvalidInputError(
        "too many pairs of nearly equal texts",
        where="near_duplicates",
        expected=f"at most {MOST_PAIRS:,}",
        found=f"{count:,} or more",
        remedy="restrict the rows with a filter, raise the threshold, or pass equal_texts='first'",
    )


def _text_column(snapshot: Snapshot, column: str) -> Field:
    if column not in snapshot.schema.names and "." not in column:
        raise unknown_column(column, snapshot.schema.names, "near_duplicates")
    field = snapshot.schema.by_path(column)
    if not is_text(field.storage_type) or field.is_json:
        raise UnsupportedError(
            "near duplicates need a column of strings",
            where="near_duplicates",
            found=f"column {column!r} of type {field.arrow_type}",
        )
    return field


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of signed rows, by position, with their similarities."""

    left: Int64s
    right: Int64s
    similarity: NDArray[np.float64]


class _Copies:
    """Rows with equal texts: the first of them, and its copies.

    Args:
        count: Number of signed rows.
        firsts: The first row with the text of each copy.
        copies: Rows whose text an earlier row has.
    """

    def __init__(self, count: int, firsts: Int64s, copies: Int64s) -> None:
        rows, owners = np.concatenate([np.arange(count), copies]), np.concatenate([np.arange(count), firsts])
        is_own = np.ones(len(rows), np.bool_)
        is_own[copies] = False  # a copy belongs to its first row alone
        rows, owners = rows[is_own], owners[is_own]
        order = np.argsort(owners, kind="stable")
        self._rows = rows[order]
        self._counts = np.bincount(owners, minlength=count)
        self._starts = np.cumsum(self._counts) - self._counts

    def within(self) -> _Pairs:
        """Return all pairs of rows with equal texts."""
        ends = np.repeat(self._starts + self._counts, self._counts)
        later = ends - np.arange(len(ends)) - 1
        count = int(later.sum())
        if count > MOST_PAIRS:
            raise _too_many(count)
        left = np.repeat(np.arange(len(ends)), later)
        right = left + 1 + np.arange(count) - np.repeat(np.cumsum(later) - later, later)
        return _Pairs(self._rows[left], self._rows[right], np.ones(count))

    def between(self, pairs: _Pairs, most: int) -> _Pairs:
        """Return pairs of first rows, and the pairs of their copies. Raises InvalidInputError above `most` pairs."""
        lefts, rights = self._counts[pairs.left], self._counts[pairs.right]
        counts = lefts * rights
        total = int(counts.sum())
        if total > most:
            raise _too_many(MOST_PAIRS - most + total)
        number = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        width = np.repeat(rights, counts)
        left = self._rows[np.repeat(self._starts[pairs.left], counts) + number // width]
        right = self._rows[np.repeat(self._starts[pairs.right], counts) + number % width]
        return _Pairs(left, right, np.repeat(pairs.similarity, counts))


@dataclass(frozen=True, eq=False)
class _Signed:
    """Live rows with a text: addresses, uint64 (rows,), and band keys, uint64 (rows, bands)."""

    addresses: UInt64s
    keys: UInt64s


@dataclass(frozen=True, eq=False)
class _DuplicateSearch:
    """One search in one version."""

    table: TableScan
    path: str
    shingler: Shingler
    signed: _Signed

    @classmethod
    def over(cls, table: TableScan, column: Field, filter_: FilterLike | None) -> _DuplicateSearch:
        """Sign all rows, by an index where there is one."""
        snapshot = table.snapshot
        path = field_path(snapshot.schema, column.id) or column.name
        segments = minhash_segments(snapshot, column)
        parameters = MinHashParameters()
        if segments:
            try:
                parameters = MinHashParameters.of(segments[0].details, f"index {segments[0].name!r}")
            except LanceDuckError as error:
                warn_of_index(f"index {segments[0].name!r} is not used: {error}")
                segments = []
        shingler = Shingler(parameters)
        parts, covered = [], set[int]()
        for metadata in segments:
            indexed = _indexed(snapshot, column, path, metadata, parameters, covered)
            if indexed is not None:
                part, fragments = indexed
                parts.append(part)
                covered |= fragments
        if parts and (filter_ is not None or table.restriction is not None):
            allowed = _addresses(table, filter_, sorted(covered))
            parts = [_only(part, np.isin(part.addresses, allowed)) for part in parts]
        rest = [i for i in snapshot.fragments.ids() if i not in covered]
        parts += _signed_now(table, path, shingler, filter_, rest)
        empty = np.empty((0, parameters.num_bands), np.uint64)
        addresses = np.concatenate([_NO_ROWS, *(part.addresses for part in parts)])
        keys = np.concatenate([empty, *(part.keys for part in parts)])
        order = np.argsort(addresses, kind="stable")
        return cls(TableScan(snapshot), path, shingler, _Signed(addresses[order], keys[order]))

    def equal_texts(self, rows: Int64s, groups: Int64s) -> tuple[Int64s, Int64s]:
        """Return the rows with the same shingles as a row with a smaller row id, each with the row of the smallest id.

        Args:
            rows: Positions of the rows to compare.
            groups: Group of each signed row. Rows of different groups are not equal.
        """
        digests = np.concatenate([np.empty((0, 3), np.uint64), *(texts.digests for _, texts in self._texts(rows))])
        has_text = digests[:, 0] > 0  # always, unless an index is wrong
        rows, digests = rows[has_text], digests[has_text]
        equal = equal_groups(np.column_stack([groups[rows].astype(np.uint64), digests]))
        order = np.lexsort((self._row_ids(self.signed.addresses[rows]), equal))
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = equal[order][1:] != equal[order][:-1]
        firsts = order[is_first][np.cumsum(is_first) - 1] if len(order) else order
        return rows[firsts[~is_first]], rows[order[~is_first]]

    def compared(self, left: Int64s, right: Int64s, threshold: float) -> _Pairs:
        """Return the pairs of rows with at least a similarity."""
        rows, places = np.unique(np.concatenate([left, right]), return_inverse=True)
        parts = [texts for _, texts in self._texts(rows)]
        texts = _joined(parts)
        first, second = places[: len(left)], places[len(left) :]
        common = texts.common(first.astype(np.int64), second.astype(np.int64))
        similarity = common / np.maximum(texts.sizes[first] + texts.sizes[second] - common, 1)
        is_near = (similarity >= threshold) & (common > 0)
        return _Pairs(left[is_near], right[is_near], similarity[is_near])

    def result(self, pairs: Sequence[_Pairs]) -> pa.Table:
        """Return pairs as row ids, ordered."""
        left = np.concatenate([each.left for each in pairs])
        right = np.concatenate([each.right for each in pairs])
        similarity = np.concatenate([each.similarity for each in pairs])
        used, places = np.unique(np.concatenate([left, right]), return_inverse=True)
        ids = self._row_ids(self.signed.addresses[used])[places]
        ends = np.sort(np.stack([ids[: len(left)], ids[len(left) :]]), axis=0)
        order = np.lexsort((ends[1], ends[0]))
        return pa.table([ends[0][order], ends[1][order], similarity[order]], schema=RESULT)

    def _row_ids(self, addresses: UInt64s) -> UInt64s:
        if not self.table.snapshot.has_stable_row_ids:
            return addresses
        projection = self.table.projection([ROW_ID])
        batches = self.table.taker.batches(self.table.taker.by_address, addresses, projection)
        return joined((batch.column(0).to_numpy() for batch in batches), np.uint64)

    def _texts(self, rows: Int64s) -> Iterator[tuple[Int64s, ShingledTexts]]:
        """Yield rows, in ascending order, with their shingles."""
        taker, projection = self.table.taker, self.table.projection([self.path])
        for start in range(0, len(rows), _PAIRS_AT_ONCE):
            part = rows[start : start + _PAIRS_AT_ONCE]
            batches = list(taker.batches(taker.by_address, self.signed.addresses[part], projection))
            yield part, self.shingler.shingles(pa.chunked_array([self._text_of(batch) for batch in batches]))

    def _text_of(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the texts of taken rows. A take returns the whole struct of a nested column."""
        texts = batch.column(0)
        return texts if len(steps := split_path(self.path)) == 1 else pc.struct_field(texts, steps[1:])


def _indexed(
    snapshot: Snapshot,
    column: Field,
    path: str,
    metadata: IndexMetadata,
    parameters: MinHashParameters,
    covered: set[int],
) -> tuple[_Signed, set[int]] | None:
    """Return the live rows of a segment, and the fragments that it covers. Returns None for a damaged segment."""
    try:
        documents = read_segment(snapshot, metadata, parameters)
        fragments = fragments_in_bitmap(metadata.fragment_bitmap or b"", f"fragments of index {metadata.name!r}")
        reuse = None if documents.by_row_id else reuse_of(snapshot)
        fragments = fragments if reuse is None else reuse.coverage(fragments)
        fragments = without_overlaid(snapshot, {each.id for each in column.walk()}, metadata.dataset_version, fragments)
        present = snapshot.fragments.id_set - covered
        fragments = fragments[[i in present for i in fragments.tolist()]] if len(fragments) else fragments
        kind = kind_named("INVERTED")
        segment = Segment(metadata, kind, column, path, column.storage_type, fragments, documents.by_row_id)
        addresses, lives = Follower(snapshot, segment).follow(documents.rows)
    except (StoreError, Stopped):
        raise
    except LanceDuckError as error:
        warn_of_index(f"segment {metadata.uuid} of index {metadata.name!r} is not used: {error}")
        return None
    return _only(_Signed(addresses, documents.keys), lives), set(fragments.tolist())


def _signed_now(
    table: TableScan, path: str, shingler: Shingler, filter_: FilterLike | None, fragments: Sequence[int]
) -> Iterator[_Signed]:
    """Yield the rows of fragments with their band keys."""
    if not fragments:
        return
    options = ScanOptions(
        columns=[path, ROW_ADDRESS], filter=filter_, fragments=fragments, batch_size_bytes=_TEXT_BYTES
    )
    with table.reader(table.plan(options), options) as reader:
        for batch in reader:
            has_text, keys = shingler.signed(batch.column(0))
            yield _Signed(batch.column(1).to_numpy()[has_text], keys)


def _addresses(table: TableScan, filter_: FilterLike | None, fragments: Sequence[int]) -> UInt64s:
    options = ScanOptions(columns=[ROW_ADDRESS], filter=filter_, fragments=fragments)
    with table.reader(table.plan(options), options) as reader:
        return joined((batch.column(0).to_numpy() for batch in reader), np.uint64)


def _only(signed: _Signed, chosen: NDArray[np.bool_]) -> _Signed:
    return _Signed(signed.addresses[chosen], signed.keys[chosen])


def _joined(parts: Sequence[ShingledTexts]) -> ShingledTexts:
    if len(parts) == 1:
        return parts[0]
    sizes = np.concatenate([np.empty(0, np.int64), *(part.sizes for part in parts)])
    hashes = np.concatenate([_NO_ROWS, *(part.hashes for part in parts)])
    return ShingledTexts(hashes, np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]))
