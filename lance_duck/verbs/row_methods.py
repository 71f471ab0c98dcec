"""Changes of rows: delete, update, merge_insert, insert, truncate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

import pyarrow as pa

from lance_duck import lazy
from lance_duck.arguments import checked_calls, declared_arguments
from lance_duck.scan.filters import FilterLike
from lance_duck.verbs.handle import TableMethods
from lance_duck.verbs.writing.settings import WriteArguments, WriteSettings

if TYPE_CHECKING:
    from lance_duck import commit as commits
    from lance_duck.verbs import change
    from lance_duck.verbs.merge import builder
    from lance_duck.verbs.rows import delete, update
    from lance_duck.verbs.writing import write_table
else:
    commits = lazy.modules(globals(), "lance_duck", "commit")
    change = lazy.modules(globals(), "lance_duck.verbs", "change")
    builder = lazy.modules(globals(), "lance_duck.verbs.merge", "builder")
    delete, update = lazy.modules(globals(), "lance_duck.verbs.rows", "delete", "update")
    write_table = lazy.modules(globals(), "lance_duck.verbs.writing", "write_table")

RETRIES: Final = 10
TIMEOUT: Final = timedelta(seconds=30)


class DeleteResult(TypedDict):
    """Number of rows that were deleted."""

    num_deleted_rows: int


class UpdateResult(TypedDict):
    """Number of rows that were updated."""

    num_rows_updated: int


@checked_calls
class RowChanges(TableMethods):
    """Changes of the rows of a table, for a handle on one of its versions.

    A change is made on the version that the handle is on, and put on top of whatever came after it. Where it does not
    go together with that, it is made again on the newest version: `conflict_retries` times at most, and not after
    `retry_timeout`. The handle then is on the version that resulted; other handles stay where they are.

    Each change makes a new version, also one that finds no row.
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
            predicate: SQL text, (SQL text, parameters), a pyarrow expression, or a query of `lance_duck.query`; rows
                for which it is true, or which match, are deleted.
            conflict_retries: See the class.
            retry_timeout: See the class.
            commit_message: Kept with the transaction.
            transaction_properties: Likewise.

        Raises:
            InvalidInputError: A bad condition.
            CommitConflictError: Other changes came first, time and again, or one that this change cannot follow.
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
        commit_message: str | None = None,
        transaction_properties: Mapping[str, str] | None = None,
    ) -> UpdateResult:
        """Give rows new values. The rows are rewritten and keep their stable row ids.

        Args:
            updates: SQL expressions by column; they see the old values of the row.
            where: Which rows, as for `delete`; None: all.
            conflict_retries: See the class.
            retry_timeout: See the class.
            data_storage_version: Version of the new files; None: that of the table.
            commit_message: Kept with the transaction.
            transaction_properties: Likewise.

        Raises:
            InvalidInputError: A bad condition or expression, or values that do not fit their columns.
            CommitConflictError: As for `delete`.
        """
        change.check_patience(conflict_retries, retry_timeout)
        properties = change.transaction_properties(commit_message, transaction_properties)
        after, count = commits.run_again(
            self.handle.base,
            lambda snapshot: update.update_rows(snapshot, updates, where, data_storage_version, properties),
            conflict_retries,
            retry_timeout.total_seconds(),
        )
        self.handle.move_to(after)
        return {"num_rows_updated": count}

    def merge_insert(self, on: str | Iterable[str] | None = None) -> builder.MergeInsertBuilder:
        """Begin a merge of other rows into the table: insert, update, upsert, replace.

        Args:
            on: Key columns by which rows match; None: the unenforced primary key.

        Raises:
            InvalidInputError: No such column, or no key at all.
        """
        return builder.MergeInsertBuilder(self, on)

    def insert(
        self, data: Any, *, mode: str = "append", schema: pa.Schema | None = None, **settings: Unpack[WriteArguments]
    ) -> None:
        """Write data to the table.

        Args:
            data: Whatever `write_dataset` takes.
            mode: "append" or "overwrite".
            schema: Schema of data that do not know theirs.
            settings: The other arguments of `write_dataset`, explained there.

        Raises:
            InvalidInputError: The data do not fit the table.
            AlreadyExistsError: mode="create".
        """
        write = WriteSettings.of(declared_arguments(RowChanges.insert, settings, WriteArguments))
        self.handle.move_to(write_table.write_table(data, self.handle.base, schema, mode, write))

    def truncate_table(self) -> None:
        """Delete all rows; the schema stays."""
        self.handle.move_to(commits.run_again(self.handle.base, delete.delete_all))

    truncate = truncate_table
