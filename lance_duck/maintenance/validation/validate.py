"""Validation: reads all data of a version, and reports all problems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from os import cpu_count
from typing import Final

import numpy as np

from lance_duck.errors import CorruptError, LanceDuckError, NotFoundError
from lance_duck.maintenance.validation.blobs import blob_problems
from lance_duck.maintenance.validation.files import check_data_file, check_sidecars, check_transaction
from lance_duck.maintenance.validation.indexes import index_problems
from lance_duck.maintenance.validation.keys import key_problems
from lance_duck.maintenance.validation.losses import renamed_lists
from lance_duck.maintenance.validation.problems import Problem as Problem
from lance_duck.maintenance.validation.problems import problems_of
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot, refs
from lance_duck.store import Store
from lance_duck.wire import paths
from lance_duck.wire.fragment import TOMBSTONE, DataFile, Fragment
from lance_duck.wire.schema import Field

_NAMED: Final = 20


def validate(snapshot: Snapshot, fragment: Fragment | None = None) -> None:
    """Read all data in a version, or in one of its fragments.

    Raises:
        CorruptError: There are problems. The message lists them.
    """
    found = find_problems(snapshot) if fragment is None else _fragment(snapshot, fragment)
    problems = [problem for problem in found if problem.is_damage]
    if problems:
        lines = "\n  ".join(str(p) for p in problems[:_NAMED])
        more = f"\n  and {len(problems) - _NAMED} more" if len(problems) > _NAMED else ""
        raise CorruptError(
            f"{len(problems)} problem(s)",
            where=f"{snapshot.uri} version {snapshot.version}",
            found=f"\n  {lines}{more}",
            remedy="; ".join(dict.fromkeys(p.remedy for p in problems if p.remedy)) or None,
        )


def find_problems(snapshot: Snapshot) -> list[Problem]:
    """Return the problems of a version, in its manifest, references, deletion files, row ids, values, indexes and keys.

    Repeated keys are problems of tables that declare a primary key.
    """
    problems = [*_manifest(snapshot), *_references(snapshot), *_item_names(snapshot)]
    if any(problems_of("manifest", snapshot.fragments.check_ids)):
        return problems  # fragments cannot be distinguished
    checks: list[Callable[[], Iterable[Problem]]] = [partial(_fragment, snapshot, f) for f in snapshot.fragments]
    checks += [partial(index_problems, snapshot, i) for i in snapshot.indices]
    with ThreadPoolExecutor(cpu_count() or 1) as pool:
        for part in pool.map(lambda check: list(check()), checks):
            problems += part
    return [*problems, *_duplicate_ids(snapshot), *key_problems(snapshot)]


def _manifest(snapshot: Snapshot) -> Iterator[Problem]:
    where = "manifest"
    repeated = list(problems_of(where, snapshot.fragments.check_ids))
    yield from repeated
    ids = [] if repeated else snapshot.fragments.ids()
    highest = snapshot.manifest.max_fragment_id
    if ids and highest is not None and max(ids) > highest:
        yield Problem(where, f"fragment {max(ids)} is above max_fragment_id {highest}")
    fields = [field.id for field in snapshot.schema.walk()]
    if len(set(fields)) != len(fields):
        yield Problem(where, "duplicate field id")
    names = snapshot.schema.names
    if len(set(names)) != len(names):
        yield Problem(where, "duplicate column name")
    if snapshot.manifest.inline_transaction is None and snapshot.manifest.transaction_name is not None:
        yield from problems_of(
            paths.transaction_file(snapshot.manifest.transaction_name), lambda: _transaction(snapshot)
        )
    elif (transaction := check_transaction(snapshot)) is not None:
        yield from (Problem(transaction.file, what) for what in transaction.damage)


def _item_names(snapshot: Snapshot) -> Iterator[Problem]:
    for name in renamed_lists(snapshot.schema):
        what = "pylance does not use indexes of lists whose items have DuckDB's name 'l'; repair() names them 'item'"
        yield Problem(f"column {name!r}", what, is_damage=False)


def _transaction(snapshot: Snapshot) -> None:
    if snapshot.transaction() is None:
        raise NotFoundError("no such transaction file")


def _references(snapshot: Snapshot) -> Iterator[Problem]:
    numbers, store = set(snapshot.version_numbers()), snapshot.location.root.store()
    for name in refs.tag_names(store):
        yield from problems_of(f"tag {name!r}", partial(_tag, snapshot, store, name, numbers))
    for name in refs.branch_names(store):
        yield from problems_of(f"branch {name!r}", partial(refs.read_branch, store, name))


def _tag(snapshot: Snapshot, store: Store, name: str, numbers: set[int]) -> None:
    tag = refs.read_tag(store, name)
    if tag.branch == snapshot.branch and tag.version not in numbers:
        raise NotFoundError(f"names version {tag.version}, which does not exist")


def _fragment(snapshot: Snapshot, fragment: Fragment) -> Iterator[Problem]:
    where = f"fragment {fragment.id}"
    is_readable = True
    for file in fragment.files:
        problems = list(_data_file(snapshot, fragment, file))
        is_readable &= not problems
        yield from problems
    for overlay in fragment.overlays:
        damage = check_data_file(snapshot, overlay.file).damage
        is_readable &= not damage
        yield from (Problem(f"{where}: overlay", what) for what in damage)
    yield from _fields(snapshot, fragment)
    deletions = list(problems_of(f"{where}: deletion file", lambda: snapshot.deletion_vector(fragment)))
    yield from deletions
    if is_readable and not deletions:
        problems = list(problems_of(where, lambda: _columns(snapshot, fragment)))
        yield from problems or blob_problems(snapshot, fragment)
    yield from problems_of(f"{where}: row ids", lambda: _row_ids(snapshot, fragment))
    for what, read in (("created at", snapshot.created_at), ("last updated at", snapshot.last_updated_at)):
        yield from problems_of(f"{where}: {what}", partial(read, fragment))


def _data_file(snapshot: Snapshot, fragment: Fragment, file: DataFile) -> Iterator[Problem]:
    where = f"fragment {fragment.id}: {file.path}"

    def open_() -> None:
        content = snapshot.data_file(file)
        stored = snapshot.fragments.stored_rows(fragment.id) or snapshot.physical_rows(fragment)
        if content.num_rows != stored:
            only_stored = content.num_rows == snapshot.physical_rows(fragment)  # readers ignore the manifest's count
            remedy = "optimize.compact_files() writes the right number" if only_stored else None
            raise CorruptError("wrong row count", expected=stored, found=content.num_rows, remedy=remedy)
        beyond = [c for c in file.column_indices if c >= content.num_columns]
        if beyond:
            raise CorruptError("wrong column count", expected=f"below {content.num_columns}", found=beyond)

    problems = list(problems_of(where, open_))
    yield from problems or (Problem(where, what) for what in check_data_file(snapshot, file).damage)
    for check in () if problems else check_sidecars(snapshot, file):
        yield from (Problem(f"fragment {fragment.id}: {check.file}", what) for what in check.damage)


def _fields(snapshot: Snapshot, fragment: Fragment) -> Iterator[Problem]:
    field_ids: set[int] = set()
    # Each file of format 2.0 also lists the structs and lists around its fields.
    shared = {TOMBSTONE, *(field.id for field in snapshot.schema.walk() if field.children)}
    for file in fragment.files:
        for field_id in file.fields:
            if field_id not in shared and field_id in field_ids:
                yield Problem(f"fragment {fragment.id}", f"field {field_id} is in two data files")
            field_ids.add(field_id)
    for field in snapshot.schema.fields:
        if not field.nullable and not _is_held(field, field_ids):
            yield Problem(f"fragment {fragment.id}", f"column {field.name!r} is not nullable and has no data")


def _is_held(field: Field, field_ids: set[int]) -> bool:
    return any(f.id in field_ids for f in field.walk())


def _columns(snapshot: Snapshot, fragment: Fragment) -> None:
    table = TableScan(snapshot)
    options = ScanOptions(fragments=[fragment.id], use_threads=False)
    rows = 0
    for batch in table.reader(table.plan(options), options):
        batch.validate(full=True)
        rows += batch.num_rows
    if rows != snapshot.num_rows(fragment):
        raise CorruptError("wrong number of rows read", expected=snapshot.num_rows(fragment), found=rows)


def _row_ids(snapshot: Snapshot, fragment: Fragment) -> None:
    ids = snapshot.row_ids(fragment)
    if ids is None or not len(ids):
        return
    highest = max(segment.high for segment in ids.segments if segment.count)
    if highest >= snapshot.manifest.next_row_id:
        raise CorruptError("a row id is out of range", expected=f"below {snapshot.manifest.next_row_id}", found=highest)


def _duplicate_ids(snapshot: Snapshot) -> Iterator[Problem]:
    if not snapshot.has_stable_row_ids:
        return
    live = []
    for fragment in snapshot.fragments:
        try:
            ids, deletions = snapshot.row_ids(fragment), snapshot.deletion_vector(fragment)
        except LanceDuckError:
            return  # already reported
        if ids is not None:
            all_ids = ids.slice(0, len(ids))
            live.append(all_ids if deletions is None else all_ids[deletions.mask(0, len(ids))])
    values, counts = np.unique(np.concatenate(live), return_counts=True) if live else (np.empty(0), np.empty(0))
    for value in values[counts > 1][:_NAMED].tolist():
        yield Problem("row ids", f"{value} belongs to two rows")
