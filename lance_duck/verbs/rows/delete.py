"""Delete: lists matching rows in deletion files, and removes fragments without rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from lance_duck.arrow.join import joined
from lance_duck.commit import commit
from lance_duck.commit.operations import Delete
from lance_duck.errors import InvalidInputError
from lance_duck.scan.filters import FilterLike
from lance_duck.scan.projection import ROW_ADDRESS
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.verbs.rows.find import find_rows
from lance_duck.verbs.rows.rows_moved import RowDeletion, delete_addresses

EVERYTHING: Final = "true"


def delete_rows(
    snapshot: Snapshot, predicate: FilterLike, properties: Mapping[str, str] | None = None
) -> tuple[Snapshot, int]:
    """Delete the rows that match a condition, and commit.

    Returns:
        The new version, and the number of deleted rows.

    Raises:
        InvalidInputError: The condition is invalid.
        RetryableError: Another change was committed first.
    """
    with UncommittedFiles(snapshot) as draft:
        return commit_delete(draft, write_delete(snapshot, predicate, draft), predicate, properties)


def write_delete(
    snapshot: Snapshot, predicate: FilterLike, draft: UncommittedFiles, fragments: Sequence[int] | None = None
) -> RowDeletion:
    """Find the rows of a delete and write their deletion files.

    Args:
        snapshot: The version that is changed.
        predicate: Row condition.
        draft: Records the files, and deletes them if the change fails.
        fragments: Ids of the fragments to search. Defaults to all.

    Raises:
        InvalidInputError: The condition is invalid, or missing.
    """
    if predicate is None:
        raise InvalidInputError(
            "delete needs a predicate", where="delete", expected="an SQL string or a pyarrow expression"
        )
    batches = find_rows(snapshot, predicate, [ROW_ADDRESS], fragments)
    addresses = joined((batch.column(0).to_numpy() for batch in batches), np.uint64)
    return delete_addresses(snapshot, addresses, draft)


def commit_delete(
    draft: UncommittedFiles, deletion: RowDeletion, predicate: FilterLike, properties: Mapping[str, str] | None = None
) -> tuple[Snapshot, int]:
    """Commit a delete whose deletion files are written.

    Returns:
        The new version, and the number of deleted rows.

    Raises:
        RetryableError: Another change was committed first.
    """
    operation = Delete(deletion.updated, deletion.removed, str(predicate))
    return draft.commit(operation, affected=deletion.affected, properties=properties), deletion.count


def delete_all(snapshot: Snapshot) -> Snapshot:
    """Delete all rows without reading them."""
    return commit(snapshot, Delete((), snapshot.fragments.ids(), EVERYTHING))
