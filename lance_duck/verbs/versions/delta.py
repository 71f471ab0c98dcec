"""Row changes between two versions of a table with stable row ids."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck import lazy
from lance_duck.arguments import checked_calls
from lance_duck.errors import InvalidInputError
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.projection import CREATED_AT, LAST_UPDATED_AT, ROW_ID
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.handle import TableMethods
from lance_duck.wire.fragment import Fragment

if TYPE_CHECKING:
    from lance_duck.verbs.public import lance_operation, operation_convert
else:
    lance_operation, operation_convert = lazy.modules(
        globals(), "lance_duck.verbs.public", "lance_operation", "operation_convert"
    )

_IDS = pa.schema([pa.field(ROW_ID, pa.uint64())])


@checked_calls
class Lineage(TableMethods):
    """Comparisons between versions."""

    def delta(
        self, compared_against: int | None = None, *, begin_version: int | None = None, end_version: int | None = None
    ) -> DatasetDelta:
        """Compare two versions.

        Args:
            compared_against: The older version. The newer one is this handle's version.
            begin_version: The older version, used with `end_version`. Changes that created this version are excluded.
            end_version: The newer version.

        Raises:
            InvalidInputError: The arguments are neither `compared_against` alone nor the other two together, or the
                versions are in the wrong order.
        """
        if compared_against is not None:
            if begin_version is not None or end_version is not None:
                raise InvalidInputError(
                    "delta", expected="either compared_against, or begin_version and end_version", found="both"
                )
            begin_version, end_version = compared_against, self.handle.snapshot.version
        if begin_version is None or end_version is None:
            raise InvalidInputError("delta", expected="compared_against, or both begin_version and end_version")
        if begin_version > end_version:
            raise InvalidInputError(
                "delta", expected="begin_version <= end_version", found=f"{begin_version} and {end_version}"
            )
        return DatasetDelta(self.handle.snapshot, begin_version, end_version)


@checked_calls
class DatasetDelta:
    """The changes from a version to a newer one on the same branch, read lazily.

    A row that was inserted and then updated counts as inserted. A row that was inserted and then deleted is ignored.

    Args:
        snapshot: Any version of the branch.
        begin: The older version, or 0 to include the first version.
        end: The newer version.
    """

    def __init__(self, snapshot: Snapshot, begin: int, end: int) -> None:
        self._snapshot = snapshot
        self._begin = begin
        self._end = end

    def list_transactions(self) -> list[lance_operation.Transaction | None]:
        """Return the transactions of the versions, oldest first. An entry is None if its transaction was not kept.

        Raises:
            NotFoundError: A version was cleaned up.
        """
        transactions = (self._snapshot.checkout(n).transaction() for n in range(self._begin + 1, self._end + 1))
        return [
            None if transaction is None else operation_convert.from_transaction(transaction)
            for transaction in transactions
        ]

    def get_inserted_rows(self) -> pa.RecordBatchReader:
        """Return the rows that were inserted, with `_rowid` and row versions.

        Raises:
            InvalidInputError: The table does not have stable row ids.
            NotFoundError: The version does not exist.
        """
        return self._rows(f"{CREATED_AT} > {self._begin}")

    def get_updated_rows(self) -> pa.RecordBatchReader:
        """Return the updated rows with their newer values: see `get_inserted_rows`."""
        return self._rows(f"{CREATED_AT} <= {self._begin} AND {LAST_UPDATED_AT} > {self._begin}")

    def get_deleted_row_ids(self) -> pa.RecordBatchReader:
        """Return the stable row ids of deleted rows, as column `_rowid`.

        Raises:
            InvalidInputError: The table does not have stable row ids.
            NotFoundError: A version does not exist.
        """
        ids = (pa.record_batch([pa.array(row_ids)], _IDS) for row_ids in self._gone())
        return pa.RecordBatchReader.from_batches(_IDS, ids)

    def get_deleted_rows(self) -> pa.RecordBatchReader:
        """Return the deleted rows with their old values. The columns are as in `get_inserted_rows`."""
        table = TableScan(self._older)
        projection = table.projection(_columns(self._older))
        taker = table.taker
        rows = (batch for ids in self._gone() for batch in taker.batches(taker.by_row_id, ids, projection))
        return pa.RecordBatchReader.from_batches(projection.schema, rows)

    @cached_property
    def _older(self) -> Snapshot:
        return _stable(self._snapshot.checkout(self._begin))

    @cached_property
    def _newer(self) -> Snapshot:
        return _stable(self._snapshot.checkout(self._end))

    def _rows(self, condition: str) -> pa.RecordBatchReader:
        table = TableScan(self._newer)
        return table.reader(table.plan(ScanOptions(columns=_columns(self._newer), filter=condition)))

    def _gone(self) -> Iterator[NDArray[np.uint64]]:
        """Yield the stable row ids of deleted rows, fragment by fragment. Empty arrays are skipped."""
        if self._begin == 0:
            return
        older, newer = self._older, self._newer
        newer_by_id = {fragment.id: fragment for fragment in newer.fragments}
        index = newer.row_id_index
        assert index is not None
        for fragment in older.fragments:
            now = newer_by_id.get(fragment.id)
            if now is not None and now.deletion_file == fragment.deletion_file and now.row_ids == fragment.row_ids:
                continue
            ids = _live_ids(older, fragment)
            lost_ids = ids[~index.addresses(ids)[1]]
            if len(lost_ids):
                yield lost_ids


def _columns(snapshot: Snapshot) -> list[str]:
    return [*snapshot.schema.names, ROW_ID, CREATED_AT, LAST_UPDATED_AT]


def _live_ids(snapshot: Snapshot, fragment: Fragment) -> NDArray[np.uint64]:
    ids = snapshot.row_ids(fragment)
    deletions = snapshot.deletion_vector(fragment)
    assert ids is not None
    return ids.slice(0, len(ids)) if deletions is None else ids.take(deletions.live_offsets(0, len(ids)))


def _stable(snapshot: Snapshot) -> Snapshot:
    if not snapshot.has_stable_row_ids:
        raise InvalidInputError(
            "the table does not have stable row ids",
            where=snapshot.uri,
            remedy="create it with enable_stable_row_ids=True",
        )
    return snapshot
