"""Rows changed by versions, in the form of DuckLake's `table_changes`.

Columns are `snapshot_id`, `rowid` and `change_type`, followed by the table's columns in the last requested version.
Columns of older versions are matched by field id. If the schema was replaced, or a column's type was changed, they are
matched by name. A column that exists before a replacement and in the last version, but not in between, is matched by
name and type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.differing import differing
from lance_duck.dataset import LanceDataset
from lance_duck.duck.history.conform import conformed
from lance_duck.duck.history.source import BatchRows
from lance_duck.errors import InvalidInputError, NotFoundError
from lance_duck.scan.duckdb.types import duckdb_arrow_schema
from lance_duck.scan.predicate.tree import In
from lance_duck.scan.projection import ROW_ADDRESS
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot, refs
from lance_duck.snapshot.versions import load_all
from lance_duck.verbs.versions.row_changes import ChangedRows, changed_rows
from lance_duck.wire.paths import is_detached

VERSION: Final = "snapshot_id"
ROW_ID: Final = "rowid"
CHANGE: Final = "change_type"
_HEAD: Final = pa.schema({VERSION: pa.int64(), ROW_ID: pa.int64(), CHANGE: pa.string()})
_ROWS_AT_ONCE: Final = 16_384
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

UInt64s = NDArray[np.uint64]
Columns = Mapping[str, str]
"""Maps column names in the last requested version to the names in an older version."""


@dataclass(frozen=True)
class Bound:
    """The first or last version in a request.

    Attributes:
        text: A version number, tag name or time, as a string. None means the oldest version as the first bound, and the
            newest version as the last bound.
        time: A time, if `text` is not a number or a tag.
    """

    text: str | None
    time: datetime | None

    @classmethod
    def of(cls, text: str | None, microseconds: str | None) -> Bound:
        """Return the bound for a text. For a time, the microseconds since the epoch must be given."""
        return cls(text, None if microseconds is None else _EPOCH + timedelta(microseconds=int(microseconds)))

    def version(self, snapshot: Snapshot, *, is_first: bool) -> int:
        """Return the number of the version.

        Args:
            snapshot: The newest version of the branch.
            is_first: Whether a time means the first version at or after it, instead of the last version at or before
                it.

        Raises:
            InvalidInputError: The text is not a number, tag or time.
        """
        text = "" if self.text is None else self.text.strip()
        if self.text is None:
            return snapshot.version
        if text.removeprefix("-").isdecimal():
            return int(text)
        root = snapshot.location.root.store()
        tag = refs.read_tag(root, text) if text in refs.tag_names(root) else None
        if tag is not None and tag.branch == snapshot.branch:
            return tag.version
        if self.time is None:
            raise InvalidInputError(
                f"version {text!r} does not exist",
                where=snapshot.uri,
                expected="a number, a time or a tag of this branch",
            )
        times = [(manifest.version, manifest.timestamp) for manifest in load_all(snapshot.store)]
        if is_first:
            return next((version for version, time in times if time >= self.time), snapshot.version + 1)
        return max((version for version, time in times if time <= self.time), default=0)


def table_changes(dataset: LanceDataset, start: Bound, end: Bound) -> BatchRows:
    """Return the rows that versions changed. They are read when DuckDB scans them.

    Args:
        dataset: The newest version of a branch, or a transaction's version on top of it.
        start: The first requested version. Defaults to the oldest existing version.
        end: The last requested version.

    Raises:
        InvalidInputError: The bounds are invalid, or in the wrong order.
        NotFoundError: A version does not exist, or the version before the first one was cleaned up.
    """
    newest = dataset.handle.snapshot
    newest = newest.base or newest  # uncommitted changes of the transaction are not included
    numbers = newest.version_numbers()
    first = numbers[0] if start.text is None else start.version(newest, is_first=True)
    last = end.version(newest, is_first=False)
    times = [bound.time for bound in (start, end) if bound.time is not None]
    if first > last and (not times or times != sorted(times)):
        raise InvalidInputError(
            "the first version is newer than the last", where="table_changes", found=f"{start.text} and {end.text}"
        )
    for bound, number in ((start, first), (end, last)):
        if bound.time is None and number not in numbers:
            _check_there(newest, number)
    span = range(first, last + 1)
    _check_known(newest, span, set(numbers))
    changes = _Changes(newest, span)
    return BatchRows(changes.schema, changes.batches)


def _check_there(newest: Snapshot, number: int) -> None:
    """Reject a version that is not on the branch."""
    newest.checkout(number)  # raises an error that lists the versions
    if is_detached(number):
        raise InvalidInputError(
            f"version {number} is detached",
            where=newest.uri,
            expected="a version of the branch",
            remedy="lance_versions lists the versions of the branch",
        )


def _check_known(newest: Snapshot, span: range, numbers: set[int]) -> None:
    """Reject versions whose changes are unknown because the previous version no longer exists."""
    if not span:
        return
    needed = range(max(span[0] - 1, 1), span[-1] + 1)
    missing = next((number for number in reversed(needed) if number not in numbers), None)
    if missing is None:
        return
    oldest = newest.checkout(span[0]).transaction()
    if missing == span[0] - 1 and oldest is not None and oldest.operation == "Clone":
        if newest.branch is None:
            return
        raise InvalidInputError(
            f"branch {newest.branch!r} begins with version {span[0]}",
            where="table_changes",
            expected=f"versions from {span[0] + 1} on",
            remedy="read earlier versions from the parent branch",
        )
    raise NotFoundError(
        f"the changes of version {missing + 1} need version {missing}, which does not exist",
        where=newest.uri,
        remedy="it was probably cleaned up; versions() lists the existing versions",
    )


class _Changes:
    """The rows that a span of versions changed.

    Attributes:
        schema: The columns.
    """

    def __init__(self, newest: Snapshot, span: range) -> None:
        self._newest = newest
        self._span = span
        last = newest.checkout(span[-1]) if span else newest
        table = duckdb_arrow_schema(LanceDataset(last.uri, table=TableScan(last)).schema)
        taken = {name.lower() for name in _HEAD.names}
        self._names = {_free(field.name, taken): field.name for field in table}
        fields = [field.with_name(name).with_nullable(True) for name, field in zip(self._names, table, strict=True)]
        self.schema = pa.schema([*_HEAD, *fields])

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield columns of the changed rows, version by version."""
        columns = self._columns()
        output = pa.schema([self.schema.field(name) for name in names])
        for version in self._span:
            newer = self._newest.checkout(version)
            older = self._newest.checkout(version - 1) if version - 1 in columns else None
            images = _Images(
                version,
                output,
                None if older is None else _Side(older, self._renamed(columns[version - 1])),
                _Side(newer, self._renamed(columns[version])),
            )
            for rows in changed_rows(older, newer):
                yield from images.of(rows)

    def _renamed(self, columns: Columns) -> Columns:
        return {shown: columns[name] for shown, name in self._names.items() if name in columns}

    def _columns(self) -> dict[int, Columns]:
        """Return the columns for each version of the span and for the preceding version."""
        if not self._span:
            return {}
        last = later = self._newest.checkout(self._span[-1])
        columns: dict[int, Columns] = {later.version: {name: name for name in later.schema.names}}
        present = set(self._newest.version_numbers())
        was_replaced = False
        for version in reversed(self._span):
            if version - 1 not in present:
                break
            earlier = self._newest.checkout(version - 1)
            columns[version - 1] = _earlier_names(later, earlier, columns[version])
            was_replaced |= _replaces_schema(later)
            if was_replaced:
                columns[version - 1] = _with_returned(columns[version - 1], last, earlier)
            later = earlier
        return columns


def _free(name: str, taken: set[str]) -> str:
    """Reserve and return an unused name. A name that is taken gets a suffix as in DuckDB: `x_1`, `x_2`."""
    candidates = (name, *(f"{name}_{i}" for i in range(1, len(taken) + 2)))
    free = next(candidate for candidate in candidates if candidate.lower() not in taken)
    taken.add(free.lower())
    return free


def _earlier_names(later: Snapshot, earlier: Snapshot, columns: Columns) -> Columns:
    """Map the columns to their names in the preceding version."""
    before = {field.name: field for field in earlier.schema.fields}
    by_id = {field.id: field.name for field in earlier.schema.fields}
    after = {field.name: field for field in later.schema.fields}
    replaces = _replaces_schema(later)
    field_ids = {field.id for field in later.schema.fields}
    names = {}
    for shown, name in columns.items():
        if not replaces and after[name].id in by_id:
            names[shown] = by_id[after[name].id]
        elif name in before and (replaces or before[name].id not in field_ids):
            names[shown] = name
    return names


def _replaces_schema(snapshot: Snapshot) -> bool:
    """Return whether a version replaces the schema instead of changing the previous one."""
    transaction = snapshot.transaction()
    return transaction is not None and transaction.operation in ("Overwrite", "Restore")


def _with_returned(columns: Columns, last: Snapshot, earlier: Snapshot) -> Columns:
    """Add columns of an earlier version that were missing in between, but exist again in the last version."""
    before, after = earlier.schema.arrow, last.schema.arrow
    read = set(columns.values())
    returned = {
        name: name
        for name in after.names
        if name not in columns and name not in read and name in before.names
        if before.field(name).type == after.field(name).type
    }
    return {**columns, **returned}


@dataclass(frozen=True)
class _Side:
    """A version and its column names."""

    snapshot: Snapshot
    columns: Columns

    def rows(self, addresses: UInt64s, output: pa.Schema) -> list[pa.ChunkedArray]:
        """Return column values at the given addresses, in that order. Missing columns are null."""
        table = TableScan(self.snapshot)
        types = duckdb_arrow_schema(self.snapshot.schema.arrow)
        read = [name for field in output if (name := self.columns.get(field.name)) is not None]
        values: dict[str, pa.ChunkedArray] = {}
        if read:
            schema = pa.schema([*(types.field(name) for name in read), pa.field(ROW_ADDRESS, pa.uint64())])
            rows = table.predicate_reader(schema, In((ROW_ADDRESS,), pa.array(np.sort(addresses)))).read_all()
            order = np.argsort(rows.column(ROW_ADDRESS).to_numpy())
            places = order[np.searchsorted(rows.column(ROW_ADDRESS).to_numpy()[order], addresses)]
            rows = rows.take(pa.array(places))
            values = {name: rows.column(name) for name in read}
        where = f"{self.snapshot.uri}, version {self.snapshot.version}"
        return [
            pa.chunked_array([pa.nulls(len(addresses), field.type)])
            if (name := self.columns.get(field.name)) is None
            else conformed(values[name], field, where)
            for field in output
        ]


@dataclass(frozen=True)
class _Images:
    """Builder of result rows from the rows that a version changed.

    Attributes:
        version: The version.
        wanted: Columns of the result.
        before, after: The preceding version, if any, and the version itself.
    """

    version: int
    wanted: pa.Schema
    before: _Side | None
    after: _Side

    def of(self, rows: ChangedRows) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the result in batches."""
        for start in range(0, len(rows.ids), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            before = None if rows.before is None else rows.before[part]
            after = None if rows.after is None else rows.after[part]
            yield from self._some(replace(rows, ids=rows.ids[part], before=before, after=after))

    def _some(self, rows: ChangedRows) -> Iterator[pa.RecordBatch]:
        if rows.before is not None and rows.after is not None:
            rows = self._updated(rows)
        if not len(rows.ids):
            return
        images = [(self.before, rows.before, "preimage"), (self.after, rows.after, "postimage")]
        given = [(side, addresses, image) for side, addresses, image in images if side and addresses is not None]
        tables = []
        for side, addresses, image in given:
            kind = f"update_{image}" if len(given) == 2 else "delete" if image == "preimage" else "insert"
            tables.append(self._table(side, addresses, rows.ids, kind))
        table = pa.concat_tables(tables)
        if len(tables) == 2:  # for an update, the preimage and postimage of each row alternate
            table = table.take(pa.array(np.arange(len(table)).reshape(2, -1).T.ravel()))
        yield from table.combine_chunks().to_batches()

    def _updated(self, rows: ChangedRows) -> ChangedRows:
        """Return the rows with a new value in one of `rows.fields`, or all rows if it is None."""
        if rows.fields is None:
            return rows
        assert self.before is not None
        assert rows.before is not None
        assert rows.after is not None
        fields = self.after.snapshot.schema.fields
        tops = [top for top in fields if not rows.fields.isdisjoint(field.id for field in top.walk())]
        earlier = {field.id: field.name for field in self.before.snapshot.schema.fields}
        types = duckdb_arrow_schema(self.after.snapshot.schema.arrow)
        schema = pa.schema([types.field(field.name) for field in tops if field.id in earlier])
        old = replace(self.before, columns={f.name: earlier[f.id] for f in tops if f.id in earlier})
        new = replace(self.after, columns={f.name: f.name for f in tops})
        pairs = zip(old.rows(rows.before, schema), new.rows(rows.after, schema), strict=True)
        changed = np.zeros(len(rows.ids), np.bool_)
        for one, other in pairs:
            changed |= differing(one, other)
        return ChangedRows(rows.ids[changed], rows.before[changed], rows.after[changed])

    def _table(self, side: _Side, addresses: UInt64s, ids: UInt64s, kind: str) -> pa.Table:
        made = {
            VERSION: pa.array(np.full(len(ids), self.version)),
            ROW_ID: pa.array(ids.astype(np.int64)),
            CHANGE: pa.repeat(kind, len(ids)),
        }
        read = pa.schema([field for field in self.wanted if field.name not in made])
        values = dict(zip(read.names, side.rows(addresses, read), strict=True))
        arrays = [made[name] if name in made else values[name] for name in self.wanted.names]
        return pa.Table.from_arrays(arrays, schema=self.wanted)
