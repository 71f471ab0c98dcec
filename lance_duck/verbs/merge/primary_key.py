"""Checks rows against the declared primary key of a table.

Lance does not enforce primary keys, and verbs do not check them. SQL statements call this module before they commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.distinct import difference_of
from lance_duck.arrow.key_text import key_text
from lance_duck.encoding.arrow.gather import take_rows
from lance_duck.errors import DuplicateKeyError, InvalidInputError
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.projection import ROW_ADDRESS
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.costs import KNOWN_KEYS_OF_FRAGMENT
from lance_duck.verbs.merge.guard import InsertGuard
from lance_duck.verbs.merge.known_keys import KnownKeys, known_keys
from lance_duck.verbs.merge.match import indexed_keys
from lance_duck.verbs.merge.source import MergeSource
from lance_duck.verbs.rows.edits import NO_ROWS, Addresses, RowEdits
from lance_duck.verbs.rows.find import rows_at
from lance_duck.verbs.rows.keys import comparable_keys
from lance_duck.verbs.writing.settings import WriteSettings
from lance_duck.verbs.writing.staged import StagedRows, commit_added, stage_append
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.schema import Schema
from lance_duck.wire.schema_write import primary_key

Guard = Callable[[Snapshot], None]


def checked_key(schema: Schema) -> tuple[str, ...]:
    """Return the columns of the primary key. Empty if there is none, or if its values cannot be compared."""
    fields = primary_key(schema)
    if any(field.parent_id >= 0 or field.blob_version for field in fields):
        return ()
    with suppress(InvalidInputError):
        for field in fields:
            comparable_keys(pa.array([], field.storage_type), field.name)
        return tuple(field.name for field in fields)
    return ()


class AddedKeys:
    """The primary keys of rows that a change adds to a table.

    Args:
        snapshot: The version that the change starts from.
        rows: The rows. Other columns are ignored.
        name: Name of the table, for errors.

    Raises:
        DuplicateKeyError: Two rows have the same key.
        InvalidInputError: A key is null, or does not fit its column.
    """

    def __init__(self, snapshot: Snapshot, rows: pa.Table, name: str) -> None:
        self._key = checked_key(snapshot.schema)
        self._name = name
        self._rows = rows.select(list(self._key))
        self._source = MergeSource(self._rows, snapshot.schema, self._key)
        repeated = self._source.keys.repeated
        self._source.close()  # rows in a temporary file stay readable
        if len(repeated):
            raise self._duplicate(self._rows, int(repeated[0]))

    def check(self, snapshot: Snapshot, gone: Addresses = NO_ROWS) -> None:
        """Raise DuplicateKeyError if a row of a version has one of the keys.

        Args:
            snapshot: The version.
            gone: Addresses of rows that the change removes.
        """
        found = self._addresses(snapshot)
        known = difference_of(found, gone)
        if len(known):
            raise self._duplicate(pa.Table.from_batches(rows_at(snapshot, known[:1], self._key)), 0)

    def _addresses(self, snapshot: Snapshot) -> Addresses:
        """Return the addresses of the rows that have one of the keys."""
        keys = self._source.keys
        is_small = self._source.table.num_rows <= KNOWN_KEYS_OF_FRAGMENT
        fragments = self._known(snapshot).fragments_with(self._source.table, snapshot) if is_small else None
        if fragments == []:
            return NO_ROWS
        indexed = indexed_keys(snapshot, keys, self._key)
        table = TableScan(snapshot, keys.sieve([(name,) for name in self._key], indexed))
        options = ScanOptions(columns=[*self._key, ROW_ADDRESS], fragments=fragments)
        rows = table.reader(table.plan(options)).read_all()
        addresses: Addresses = rows.column(ROW_ADDRESS).to_numpy()
        return addresses[keys.find([rows.column(name) for name in self._key]) >= 0]

    def guard(self, base: Snapshot, *, is_final: bool = False) -> Guard:
        """Return a guard for a commit. It rejects versions in which newer rows have one of the keys.

        Args:
            base: The version that was checked.
            is_final: Whether the guard raises DuplicateKeyError. Otherwise, it raises RetryableError.
        """

        def duplicate(_: Snapshot, row: int) -> DuplicateKeyError:
            return self._duplicate(self._rows, row)

        return InsertGuard(base, self._source.keys, self._key, duplicate if is_final else None)

    def remember(self, snapshot: Snapshot, fragments: Sequence[Fragment]) -> None:
        """Remember the keys of the fragments with the new rows, which a later check then does not have to read."""
        self._known(snapshot).add(fragments, self._source.table)

    def _known(self, snapshot: Snapshot) -> KnownKeys:
        return known_keys(snapshot, [snapshot.schema.by_path(name).id for name in self._key])

    def _duplicate(self, rows: pa.Table, row: int) -> DuplicateKeyError:
        text = key_text(rows.select(list(self._key)), row)
        return DuplicateKeyError(
            f'Duplicate key "{text}" violates primary key constraint',
            where=f"table {self._name}",
            remedy="remove the duplicates",
        )


def check_edits(snapshot: Snapshot, edits: RowEdits, name: str) -> RowEdits:
    """Check the primary keys of edits, and return the edits with a guard against concurrent changes.

    Args:
        snapshot: The version that the edits start from.
        edits: The edits.
        name: Name of the table, for errors.

    Raises:
        DuplicateKeyError: The edited table would contain a key twice.
        InvalidInputError: A key is null, or does not fit its column.
    """
    names = checked_key(snapshot.schema)
    updated, inserted = _updated_keys(snapshot, edits, names), _inserted_keys(edits, names)
    if updated is None and inserted is None:
        return edits
    try:
        keys = _checked(snapshot, edits, name, updated, inserted)
    except DuplicateKeyError:
        if updated is None:
            raise
        # Rows that keep their keys may share them: they were added without a check.
        is_other = _is_other(snapshot, edits.updated, updated)
        changed = replace(edits, updated=edits.updated[is_other])
        keys = _checked(snapshot, changed, name, updated.filter(pa.array(is_other)), inserted)
    return replace(edits, guard=_both(edits.guard, keys.guard))


def _checked(
    snapshot: Snapshot, edits: RowEdits, name: str, updated: pa.Table | None, inserted: pa.Table | None
) -> AddedKeys:
    """Check the keys of updated and inserted rows. See `check_edits`."""
    parts = [part for part in (updated, inserted) if part is not None]
    rows = parts[0] if len(parts) == 1 else pa.concat_tables(parts, promote_options="permissive")
    keys = AddedKeys(snapshot, rows, name)
    keys.check(snapshot, np.concatenate([edits.deleted, edits.updated]))
    return keys


def stage_with_keys(
    reader: pa.RecordBatchReader,
    snapshot: Snapshot,
    settings: WriteSettings,
    name: str | None,
    gone: Addresses = NO_ROWS,
) -> tuple[StagedRows, AddedKeys | None]:
    """Write rows for an existing table, and check their primary keys.

    Args:
        reader: The rows.
        snapshot: The version of the table.
        settings: Settings of the files.
        name: Name of the table, for errors. None skips the check.
        gone: Addresses of rows that the change removes.

    Returns:
        The written rows, and their keys. The keys are None if they were not checked.

    Raises:
        DuplicateKeyError: The table would contain a key twice. The files are deleted.
        InvalidInputError: The data does not fit the table.
    """
    key = checked_key(snapshot.schema) if name is not None else ()
    if name is None or not key or not set(key) <= set(reader.schema.names):
        return stage_append(reader, snapshot, settings), None  # rejects rows without keys
    copies: list[pa.RecordBatch] = []
    watched = pa.RecordBatchReader.from_batches(reader.schema, _with_copies(reader, key, copies))
    staged = stage_append(watched, snapshot, settings)
    if not staged.fragments:
        return staged, None
    try:
        keys = AddedKeys(snapshot, pa.Table.from_batches(copies), name)
        keys.check(snapshot, gone)
        keys.remember(snapshot, staged.fragments)
    except BaseException:
        staged.discard()
        raise
    return staged, keys


def append_with_keys(
    reader: pa.RecordBatchReader, snapshot: Snapshot, settings: WriteSettings, name: str | None
) -> Snapshot:
    """Append rows as one new version. See `stage_with_keys`."""
    staged, keys = stage_with_keys(reader, snapshot, settings, name)
    guard = None if keys is None else keys.guard(snapshot, is_final=True)
    return commit_added(staged, snapshot, settings, guard=guard)


def _with_copies(
    batches: Iterable[pa.RecordBatch], names: Sequence[str], copies: list[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the batches, and collect copies of some columns."""
    for batch in batches:
        columns = batch.select(list(names))
        # A column without a copy would keep the whole batch in memory.
        copies.append(pa.concat_batches([columns.slice(0, 1), columns.slice(1)]))
        yield batch


def _updated_keys(snapshot: Snapshot, edits: RowEdits, names: Sequence[str]) -> pa.Table | None:
    """Return the new keys of updated rows. Returns None if no key changes."""
    values = edits.values
    if not len(edits.updated) or values is None or set(names).isdisjoint(values.column_names):
        return None
    others = [name for name in names if name not in values.column_names]
    return _with_others(snapshot, edits.updated, values, others).select(list(names))


def _inserted_keys(edits: RowEdits, names: Sequence[str]) -> pa.Table | None:
    """Return the keys of new rows. Returns None without new rows."""
    rows = edits.inserted
    if not names or rows is None or not rows.num_rows or not set(names) <= set(rows.column_names):
        return None
    return rows.select(list(names))


def _is_other(snapshot: Snapshot, addresses: Addresses, keys: pa.Table) -> NDArray[np.bool_]:
    """Return whether each row gets another key than it has."""
    known = _with_others(snapshot, addresses, keys.select([]), keys.column_names)
    source = MergeSource(keys, snapshot.schema, keys.column_names)
    source.close()
    index = source.keys
    return np.not_equal(index.find(known.columns), index.codes)


def _with_others(snapshot: Snapshot, addresses: Addresses, values: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return new values with more columns of the same rows, which keep their values."""
    if not names:
        return values
    order = np.argsort(addresses, kind="stable")
    known = pa.Table.from_batches(rows_at(snapshot, addresses[order], names))
    ordered = take_rows(known, np.argsort(order, kind="stable"))
    for name in names:
        values = values.append_column(name, ordered.column(name))
    return values


def _both(
    first: Callable[[Snapshot], Guard] | None, second: Callable[[Snapshot], Guard]
) -> Callable[[Snapshot], Guard]:
    """Combine two functions that return guards."""
    if first is None:
        return second

    def guards(base: Snapshot) -> Guard:
        both = (first(base), second(base))

        def guard(newer: Snapshot) -> None:
            for each in both:
                each(newer)

        return guard

    return guards
