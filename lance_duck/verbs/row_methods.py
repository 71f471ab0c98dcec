"""Dataset methods that change rows: delete, update, replace_where, merge_insert, insert, truncate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

import pyarrow as pa

from lance_duck import lazy
from lance_duck.arguments import checked_calls, declared_arguments, unknown_value
from lance_duck.scan.filters import FilterLike
from lance_duck.verbs.handle import TableMethods
from lance_duck.verbs.writing.settings import WriteArguments, WriteSettings

if TYPE_CHECKING:
    from lance_duck import commit as commits
    from lance_duck.verbs import change
    from lance_duck.verbs.merge import builder
    from lance_duck.verbs.rows import delete, overlays, replace, update
    from lance_duck.verbs.writing import write_table
else:
    commits = lazy.modules(globals(), "lance_duck", "commit")
    change = lazy.modules(globals(), "lance_duck.verbs", "change")
    builder = lazy.modules(globals(), "lance_duck.verbs.merge", "builder")
    delete, overlays, replace, update = lazy.modules(
        globals(), "lance_duck.verbs.rows", "delete", "overlays", "replace", "update"
    )
    write_table = lazy.modules(globals(), "lance_duck.verbs.writing", "write_table")

RETRIES: Final = 10
TIMEOUT: Final = timedelta(seconds=30)
UPDATE_MODES: Final = ("rewrite_rows", "data_overlay")


class DeleteResult(TypedDict):
    """Number of deleted rows."""

    num_deleted_rows: int


class UpdateResult(TypedDict):
    """Number of updated rows."""

    num_rows_updated: int


@checked_calls
class RowChanges(TableMethods):
    """Methods that change the rows of a table.

    A change is made from the handle's version and committed on top of newer versions. If it conflicts with one of them,
    it is repeated from the newest version, at most `conflict_retries` times and only within `retry_timeout`. The handle
    then moves to the new version. Other handles do not move.

    Each change creates a version, even if it does not match any row. A merge that does not change any row does not.
    """

    def delete(
        self,
        predicate: FilterLike,
        *,
        conflict_retries: int = RETRIES,
        retry_timeout: timedelta = TIMEOUT,
        commit_message: str | None = None,
        transaction_properties: Mapping[str, str] | None = None,
    ) -> DeleteResult:
        """Delete rows.

        Args:
            predicate: Condition of the rows to delete: a SQL string, (SQL string, parameters), a pyarrow expression, or
                a `lance_duck.query` full-text query.
            conflict_retries: See the class.
            retry_timeout: See the class.
            commit_message: Message to store with the transaction.
            transaction_properties: Key-value pairs of strings to store with the transaction.

        Raises:
            InvalidInputError: The condition is invalid.
            CommitConflictError: A conflicting change was committed first, or all retries lost the race.
        """
        change.check_patience(conflict_retries, retry_timeout)
        properties = change.transaction_properties(commit_message, transaction_properties)
        after, count = commits.run_again(
            self.handle.base,
            lambda snapshot: delete.delete_rows(snapshot, predicate, properties),
            conflict_retries,
            retry_timeout.total_seconds(),
        )
        self.handle.move_to(after)
        return {"num_deleted_rows": count}

    def update(
        self,
        updates: Mapping[str, str],
        where: FilterLike | None = None,
        conflict_retries: int = RETRIES,
        retry_timeout: timedelta = TIMEOUT,
        data_storage_version: str | None = None,
        *,
        update_mode: str = "rewrite_rows",
        commit_message: str | None = None,
        transaction_properties: Mapping[str, str] | None = None,
    ) -> UpdateResult:
        """Update rows. They are rewritten and keep their stable row ids.

        Args:
            updates: SQL expressions by column, over the old values of the row.
            where: Row condition. See `delete`. Defaults to all rows.
            conflict_retries: See the class.
            retry_timeout: See the class.
            data_storage_version: Version of the new data files. Defaults to the table's version.
            update_mode: "rewrite_rows" or "data_overlay". With "data_overlay", rows stay in their files and only the
                new values are written, as overlay files that a compaction merges. Readers without overlay support
                cannot open the table; pylance 14 needs LANCE_ENABLE_UNSTABLE_DATA_OVERLAY_FILES. pylance's `update`
                does not have this argument.
            commit_message: Message to store with the transaction.
            transaction_properties: Key-value pairs of strings to store with the transaction.

        Raises:
            InvalidInputError: The condition or an expression is invalid, or a value does not fit its column.
            UnsupportedError: An overlay would contain a struct or blobs, or the table uses file format 0.1.
            CommitConflictError: See `delete`.
        """
        change.check_patience(conflict_retries, retry_timeout)
        if update_mode not in UPDATE_MODES:
            raise unknown_value("update_mode", update_mode, UPDATE_MODES, "update")
        write = overlays.overlay_rows if update_mode == "data_overlay" else update.update_rows
        properties = change.transaction_properties(commit_message, transaction_properties)
        after, count = commits.run_again(
            self.handle.base,
            lambda snapshot: write(snapshot, updates, where, data_storage_version, properties),
            conflict_retries,
            retry_timeout.total_seconds(),
        )
        self.handle.move_to(after)
        return {"num_rows_updated": count}

    def replace_where(
        self,
        predicate: FilterLike,
        data: Any,
        *,
        schema: pa.Schema | None = None,
        conflict_retries: int = RETRIES,
        retry_timeout: timedelta = TIMEOUT,
        commit_message: str | None = None,
        transaction_properties: Mapping[str, str] | None = None,
    ) -> replace.ReplaceResult:
        """Replace the rows that match a condition by other rows that match it, as one version.

        `ds.replace_where("day = '2026-01-05'", rows)` can run again with the same result. Without rows, it only
        deletes. Rows that another writer adds at the same time stay, as for `delete`.

        Args:
            predicate: Condition of the rows to delete, and of all new rows: see `delete`. It only reads columns.
            data: The new rows, in any form that `write_dataset` accepts. They are written once.
            schema: Schema for data that does not include one.
            conflict_retries: See the class.
            retry_timeout: See the class.
            commit_message: Message to store with the transaction.
            transaction_properties: Key-value pairs of strings to store with the transaction.

        Raises:
            DataMismatchError: A new row does not satisfy the condition, or the data does not fit. Nothing is committed.
            InvalidInputError: The condition is invalid.
            UnsupportedError: The condition has a subquery, a full-text query or a hidden column such as `_rowid`.
            CommitConflictError: See `delete`.
        """
        change.check_patience(conflict_retries, retry_timeout)
        settings = WriteSettings(commit_message=commit_message, transaction_properties=transaction_properties)
        seconds = retry_timeout.total_seconds()
        after, result = replace.replace_rows(
            self.handle.base, predicate, data, schema, settings, conflict_retries, seconds
        )
        self.handle.move_to(after)
        return result

    def merge_insert(self, on: str | Iterable[str] | None = None) -> builder.MergeInsertBuilder:
        """Start a merge of other rows into the table: insert, update, upsert, replace.

        Args:
            on: Key columns that match rows. Defaults to the unenforced primary key.

        Returns:
            A builder. Its `execute` runs the merge.

        Raises:
            InvalidInputError: A column does not exist, or the table does not declare a key and none is given.
        """
        return builder.MergeInsertBuilder(self, on)

    def insert(
        self, data: Any, *, mode: str = "append", schema: pa.Schema | None = None, **settings: Unpack[WriteArguments]
    ) -> None:
        """Write data to the table. Vector columns that the data lacks are filled by embedders.

        See `set_embedding_function`.

        Args:
            data: Data in any form that `write_dataset` accepts.
            mode: "append" or "overwrite".
            schema: Schema for data that does not include one.
            settings: Other arguments of `write_dataset`.

        Raises:
            InvalidInputError: The data does not fit the table.
            AlreadyExistsError: The mode is "create".
        """
        write = WriteSettings.of(declared_arguments(RowChanges.insert, settings, WriteArguments))
        self.handle.move_to(write_table.write_table(data, self.handle.base, schema, mode, write))

    def truncate_table(self) -> None:
        """Delete all rows. The schema does not change."""
        self.handle.move_to(commits.run_again(self.handle.base, delete.delete_all))

    truncate = truncate_table
