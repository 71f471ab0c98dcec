"""The rows that differ between two branches, by stable row id or by key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.differing import differing
from lance_duck.errors import DataMismatchError, InvalidInputError, UnsupportedError
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.projection import CREATED_AT, ROW_ID
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.snapshot.refs import MAIN, read_branch
from lance_duck.verbs.rows.keys import KeyIndex

CHANGE: Final = "change_type"
_ROWS_AT_ONCE: Final = 16_384
_WHERE: Final = "branches.diff"

UInt64s = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class _Pairing:
    """Row ids of two versions: rows of one version only, and rows of both, in the same order."""

    deleted: UInt64s
    inserted: UInt64s
    before: UInt64s
    after: UInt64s


def branch_diff(snapshot: Snapshot, first: str, second: str, on: str | Sequence[str] | None = None) -> pa.Table:
    """Return the rows that differ between the newest versions of two branches. See `Branches.diff`."""
    before, after = (TableScan(snapshot.checkout((name, None))) for name in (first, second))
    schema = diff_schema(before.snapshot, after.snapshot)
    names = schema.names[2:]
    shared = [name for name in names if name in before.snapshot.schema.names]
    pairing = (
        _by_id(before, after, first, second)
        if on is None
        else _by_key(before, after, [on] if isinstance(on, str) else list(on))
    )
    is_other = np.zeros(len(pairing.before), np.bool_)
    for start in range(0, len(is_other), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        old, new = _rows(before, pairing.before[part], shared), _rows(after, pairing.after[part], shared)
        for name in shared:
            is_other[part] |= differing(old.column(name), new.column(name))
    pieces = [
        _changed(before, "delete", pairing.deleted, schema),
        _changed(after, "insert", pairing.inserted, schema),
        _changed(before, "update_preimage", pairing.before[is_other], schema),
        _changed(after, "update_postimage", pairing.after[is_other], schema),
    ]
    return pa.concat_tables(pieces)


def diff_schema(before: Snapshot, after: Snapshot) -> pa.Schema:
    """Return the columns of a diff: the kind of change, the row id, and the columns of the second version.

    Raises:
        UnsupportedError: A column has another type or another name in the first version, or contains blobs.
    """
    old, new = before.schema, after.schema
    names = {field.id: field.name for field in old.fields if field.name not in new.names}
    for field in new.fields:
        if field.id in names and field.name not in old.names:
            raise UnsupportedError(
                "a column has different names",
                where=_WHERE,
                found=f"{names[field.id]!r} and {field.name!r}",
                remedy="rename it in one branch",
            )
    for field in new.fields:
        if any(each.blob_version for each in field.walk()):
            raise UnsupportedError("branches with blobs cannot be compared", where=_WHERE, found=field.name)
        other = next((each for each in old.fields if each.name == field.name), None)
        if other is not None and other.storage_type != field.storage_type:
            raise UnsupportedError(
                f"column {field.name!r} has different types",
                where=_WHERE,
                expected=str(other.arrow_type),
                found=str(field.arrow_type),
            )
    head = [pa.field(CHANGE, pa.string()), pa.field(ROW_ID, pa.uint64())]
    return pa.schema([*head, *(field.with_nullable(True) for field in new.arrow)])


def _by_id(before: TableScan, after: TableScan, first: str, second: str) -> _Pairing:
    """Pair the rows that both branches have from the version in which they diverged."""
    if not (before.snapshot.has_stable_row_ids and after.snapshot.has_stable_row_ids):
        raise UnsupportedError(
            "rows of the branches cannot be told apart without stable row ids",
            where=_WHERE,
            remedy="pass the columns of a key: on=[…], in SQL key := […]",
        )
    base = before.snapshot.checkout(_fork(before.snapshot, first, second))
    (old_ids, old_base), (new_ids, new_base) = (_ids(table, base) for table in (before, after))
    both = np.intersect1d(old_ids[old_base], new_ids[new_base], assume_unique=True)
    is_old, is_new = (base_rows & np.isin(ids, both) for ids, base_rows in ((old_ids, old_base), (new_ids, new_base)))
    return _Pairing(old_ids[~is_old], new_ids[~is_new], both, both)


def _ids(table: TableScan, base: Snapshot) -> tuple[UInt64s, NDArray[np.bool_]]:
    """Return the ascending row ids of a version, and whether each row is from the base version."""
    ids, created = (column.to_numpy() for column in _read(table, [ROW_ID, CREATED_AT]).columns)
    order = np.argsort(ids)
    ids, created = ids[order], created[order]
    return ids, (ids < base.manifest.next_row_id) & (created <= base.version)


def _fork(snapshot: Snapshot, first: str, second: str) -> tuple[str | None, int | None]:
    """Return the branch and the version in which two branches diverged. None is the newest version."""
    root = snapshot.location.root.store()
    branches = {name: read_branch(root, name) for name in (first, second) if name != MAIN}
    one, other = (branches[name].branch_identifier if name in branches else [] for name in (first, second))
    shared = 0
    while shared < min(len(one), len(other)) and one[shared] == other[shared]:
        shared += 1
    name: str | None = first
    for _ in range(len(one) - shared):
        assert name is not None
        name = read_branch(root, name).parent_branch or MAIN
    left = [path[shared][0] for path in (one, other) if len(path) > shared]
    return name, min(left) if left else None


def _by_key(before: TableScan, after: TableScan, on: Sequence[str]) -> _Pairing:
    """Pair the rows with equal keys."""
    if not on:
        raise InvalidInputError("on", where=_WHERE, expected="at least one column", found=on)
    old, new = (_read(table, [*on, ROW_ID]) for table in (before, after))
    old_keys, new_keys = (KeyIndex([rows.column(name) for name in on], on) for rows in (old, new))
    for rows, keys in ((old, old_keys), (new, new_keys)):
        wrong = np.concatenate([keys.repeated, np.flatnonzero(keys.codes < 0)])
        if len(wrong):
            row = rows.slice(int(wrong[0]), 1).select(list(on)).to_pylist()[0]
            raise DataMismatchError(
                "the key is null or repeated", where=_WHERE, found=", ".join(f"{k} = {v!r}" for k, v in row.items())
            )
    found = old_keys.find([new.column(name) for name in on])
    old_ids, new_ids = (rows.column(ROW_ID).to_numpy() for rows in (old, new))
    matched = old_keys.first_rows[found[found >= 0]]
    is_matched = np.zeros(len(old_ids), np.bool_)
    is_matched[matched] = True
    return _Pairing(old_ids[~is_matched], new_ids[found < 0], old_ids[matched], new_ids[found >= 0])


def _read(table: TableScan, names: Sequence[str]) -> pa.Table:
    options = ScanOptions(columns=list(names))
    return table.reader(table.plan(options), options).read_all()


def _rows(table: TableScan, ids: UInt64s, names: Sequence[str]) -> pa.Table:
    return table.taker.table(table.taker.by_row_id, ids, table.projection([*names, ROW_ID]))


def _changed(table: TableScan, change: str, ids: UInt64s, schema: pa.Schema) -> pa.Table:
    """Return rows with their change. Columns that the version lacks are null."""
    names = [name for name in schema.names[2:] if name in table.snapshot.schema.names]
    rows = _rows(table, ids, names)

    def columns() -> Iterator[pa.ChunkedArray]:
        yield pa.chunked_array([pa.array([change] * len(ids), pa.string())])
        for field in list(schema)[1:]:
            known = field.name in names or field.name == ROW_ID
            yield rows.column(field.name) if known else pa.chunked_array([pa.nulls(len(ids), field.type)])

    return pa.table(list(columns()), schema=schema)
