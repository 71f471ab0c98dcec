"""Replace: deletes the rows that match a condition and adds new rows that match it, in one version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypedDict

import numpy as np
import pyarrow as pa

from lance_duck.arrow.join import joined
from lance_duck.commit import run_again
from lance_duck.commit.committer import unpublished
from lance_duck.commit.operations import Delete, Operation, Update
from lance_duck.errors import DataMismatchError, InvalidInputError, UnsupportedError
from lance_duck.rows import split_addresses
from lance_duck.scan.filters import FilterLike, make_filter
from lance_duck.scan.projection import HIDDEN, ROW_ADDRESS, readable_schema
from lance_duck.scan.subquery import has_subquery
from lance_duck.scan.text.query.tree import FullTextQuery
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.rows.delete import write_delete
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.verbs.rows.find import find_rows, rows_at
from lance_duck.verbs.rows.rows_moved import RowDeletion
from lance_duck.verbs.writing.schema_compat import check_still_fits
from lance_duck.verbs.writing.settings import WriteSettings
from lance_duck.verbs.writing.staged import StagedRows, stage_append
from lance_duck.write.inputs import reading

WHERE: Final = "replace_where"


class ReplaceResult(TypedDict):
    """Number of deleted and inserted rows, and the new version."""

    num_deleted_rows: int
    num_inserted_rows: int
    version: int


def replace_rows(
    base: Snapshot,
    predicate: FilterLike,
    data: Any,
    schema: pa.Schema | None,
    settings: WriteSettings,
    retries: int,
    timeout: float,
) -> tuple[Snapshot, ReplaceResult]:
    """Replace the rows that match a condition, and commit. The data is read and written once.

    Args:
        base: The version to start from.
        predicate: Condition of the deleted and of the new rows.
        data: The new rows, in any form that a write accepts.
        schema: Schema for data that does not include one.
        settings: Settings of the write.
        retries: Maximum number of repetitions after lost races. Each finds the rows to delete again.
        timeout: Time limit for starting attempts, in seconds.

    Raises:
        InvalidInputError: The condition is invalid, or a new row does not satisfy it.
        RetryableError: Other changes were committed first.
    """
    names = _columns_of(base, predicate)
    if schema is None and isinstance(data, Sequence) and not data:
        schema = base.schema.arrow
    with reading(data, schema) as reader:
        staged = stage_append(reader, base, settings)
    try:
        _check_rows(base, predicate, staged, names)
    except BaseException:
        staged.discard()
        raise
    return staged.commit(
        lambda _: run_again(
            base, lambda snapshot: _commit(snapshot, predicate, staged, settings.properties), retries, timeout
        )
    )


def _columns_of(snapshot: Snapshot, predicate: FilterLike) -> list[str]:
    """Return the columns of a condition. Rejects conditions that depend on more than the values of one row."""
    if predicate is None:
        raise InvalidInputError("missing condition", where=WHERE, expected="an SQL string or a pyarrow expression")
    text = predicate[0] if isinstance(predicate, tuple) and predicate else predicate
    found = "a full-text query" if isinstance(predicate, FullTextQuery) else None
    if isinstance(text, str) and has_subquery(text):
        found = "a subquery"
    condition = None if found else make_filter(predicate, readable_schema(snapshot.schema))
    names = [] if condition is None else list(dict.fromkeys(path[0] for path in condition.paths()))
    hidden = [name for name in names if name in HIDDEN and name not in snapshot.schema.names]
    if hidden:
        found = f"column {hidden[0]}, which new rows do not have yet"
    if found is not None:
        raise UnsupportedError(
            "new rows cannot be checked against this condition",
            where=WHERE,
            expected="a condition on columns of the table",
            found=found,
            remedy="run delete and insert in a lance_duck.transaction",
        )
    return names


def alone(snapshot: Snapshot, staged: StagedRows) -> Snapshot:
    """Return the table with only the staged rows, in memory."""
    return unpublished(snapshot, Update(snapshot.fragments.ids(), (), staged.fragments, ()))


def _check_rows(snapshot: Snapshot, predicate: FilterLike, staged: StagedRows, names: Sequence[str]) -> None:
    """Raise DataMismatchError if a written row does not satisfy the condition.

    The written rows are scanned like the rows to delete, so that the condition means the same for both.
    """
    if not staged.fragments:
        return
    rows = alone(snapshot, staged)
    batches = find_rows(rows, predicate, [ROW_ADDRESS])
    ids, offsets = split_addresses(joined((batch.column(ROW_ADDRESS).to_numpy() for batch in batches), np.uint64))
    for fragment in rows.fragments:
        found = offsets[ids == fragment.id]
        if len(found) < fragment.physical_rows:
            gaps = np.flatnonzero(found != np.arange(len(found)))
            offset = int(gaps[0]) if len(gaps) else len(found)
            raise other_row(rows, fragment.id << 32 | offset, str(predicate), names, WHERE)


def other_row(rows: Snapshot, address: int, condition: str, names: Sequence[str], where: str) -> DataMismatchError:
    """Return the error for a new row that does not satisfy the condition.

    Args:
        rows: The new rows: see `alone`.
        address: The address of the row.
        condition: The condition.
        names: The columns that the condition reads.
        where: The method or statement.
    """
    before = (fragment.physical_rows for fragment in rows.fragments if fragment.id < address >> 32)
    (values,) = rows_at(rows, np.array([address], np.uint64), [*names, ROW_ADDRESS])
    found = ", ".join(f"{name} = {_short(values.column(name)[0].as_py())}" for name in names)
    return DataMismatchError(
        f"row {sum(before) + (address & 0xFFFFFFFF)} of the new rows does not satisfy the condition",
        where=where,
        expected=condition,
        found=found or None,
        remedy="nothing was committed: change the rows or the condition",
    )


def _short(value: Any) -> str:
    text = "NULL" if value is None else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def replacement(snapshot: Snapshot, deletion: RowDeletion, staged: StagedRows, predicate: str) -> Operation:
    """Return the operation that deletes rows and adds staged rows."""
    if not staged.fragments:
        return Delete(deletion.updated, deletion.removed, predicate)
    return Update(
        removed_fragment_ids=deletion.removed,
        updated_fragments=deletion.updated,
        new_fragments=staged.fragments,
        fields_for_preserving_frag_bitmap=[field.id for field in snapshot.schema.walk()],
    )


def _commit(
    snapshot: Snapshot, predicate: FilterLike, staged: StagedRows, properties: Mapping[str, str] | None
) -> tuple[Snapshot, ReplaceResult]:
    check_still_fits(staged.schema, snapshot)
    with UncommittedFiles(snapshot) as draft:
        deletion = write_delete(snapshot, predicate, draft)
        is_collected = snapshot.collect is not None  # whoever commits the collected changes checks the columns
        after = draft.commit(
            replacement(snapshot, deletion, staged, str(predicate)),
            affected=deletion.affected,
            guard=None if is_collected else lambda newest: check_still_fits(staged.schema, newest),
            properties=properties,
        )
    return after, {
        "num_deleted_rows": deletion.count,
        "num_inserted_rows": staged.num_rows,
        "version": after.version,
    }
