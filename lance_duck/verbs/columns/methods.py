"""Changes of columns: add, merge, alter, drop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_duck import lazy
from lance_duck.arguments import checked_calls
from lance_duck.errors import (
    IncompatibleError,
    InvalidInputError,
    ReferencedError,
    RetryableError,
)
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.handle import TableMethods

if TYPE_CHECKING:
    from lance_duck import commit as commits
    from lance_duck.commit import operations
    from lance_duck.verbs import change
    from lance_duck.verbs.columns import alteration, casts, schema_change
    from lance_duck.verbs.columns import files as column_files
    from lance_duck.verbs.columns import new_columns as made_columns
else:
    commits = lazy.modules(globals(), "lance_duck", "commit")
    operations = lazy.modules(globals(), "lance_duck.commit", "operations")
    change = lazy.modules(globals(), "lance_duck.verbs", "change")
    alteration, casts, column_files, made_columns, schema_change = lazy.modules(
        globals(), "lance_duck.verbs.columns", "alteration", "casts", "files", "new_columns", "schema_change"
    )

Properties = Mapping[str, str] | None


@checked_calls
class ColumnChanges(TableMethods):
    """Changes of columns, for a handle on a table. Each is committed as a version of its own."""

    def add_columns(
        self,
        transforms: Any,
        read_columns: Sequence[str] | None = None,
        reader_schema: pa.Schema | None = None,
        batch_size: int | None = None,
        *,
        commit_message: str | None = None,
        transaction_properties: Properties = None,
    ) -> None:
        """Add columns. Only files for the new columns are written; a struct may get new members.

        Args:
            transforms: What they hold. A dict: SQL expressions by the name of the new column. A function, also one
                from `batch_udf`: called with batches of the table, gives batches of the new columns. A field, fields
                or a schema: all null, and nothing is written. Data of any kind that `write_dataset` takes: one row for
                each of the table, in the order of a scan.
            read_columns: Columns that the function is given, `_rowid` and `_rowaddr` among them; None: all.
            reader_schema: Schema of data that do not know theirs.
            batch_size: Rows that are computed at a time.
            commit_message: What `read_transaction` shows.
            transaction_properties: Likewise.

        Raises:
            InvalidInputError: A column is there already, an expression is wrong, or the rows are more or fewer.
            CommitConflictError: Another change came first, and the columns cannot be computed again for it.
        """
        source = made_columns.new_columns(transforms, read_columns, reader_schema, batch_size)
        self._add(source, commit_message, transaction_properties)

    def merge(
        self,
        data_obj: Any,
        left_on: str,
        right_on: str | None = None,
        schema: pa.Schema | None = None,
        *,
        commit_message: str | None = None,
        transaction_properties: Properties = None,
    ) -> None:
        """Add the columns of other data, by a key: null where no key matches, of several equal ones the last.

        Args:
            data_obj: Data of any kind that `write_dataset` takes; read into memory.
            left_on: The key in the table: a column, `_rowid` or `_rowaddr`.
            right_on: The key in the data; None: the same name. It does not become a column.
            schema: Schema of data that do not know theirs.
            commit_message: What `read_transaction` shows.
            transaction_properties: Likewise.

        Raises:
            InvalidInputError: No such key, keys of different types, or a column is there already.
            CommitConflictError: As for `add_columns`.
        """
        source = made_columns.joined_columns(data_obj, left_on, right_on, schema)
        self._add(source, commit_message, transaction_properties)

    def alter_columns(
        self,
        *alterations: Mapping[str, Any],
        commit_message: str | None = None,
        transaction_properties: Properties = None,
    ) -> None:
        """Rename columns, allow or forbid nulls in them, or give them another type.

        Args:
            alterations: Each with "path" ("a.b.c" for members of structs, "l.item" for the values of lists) and any of
                "name", "nullable" and "data_type" (a pyarrow type of the same kind: whole numbers, floats, decimals,
                texts, bytes, times, lists of them). Only a new type writes files, for that column alone.
            commit_message: What `read_transaction` shows.
            transaction_properties: Likewise.

        Raises:
            InvalidInputError: No such column, a name that is taken, nulls where they are forbidden, a type of another
                kind, or a value that does not fit the new type.
            ReferencedError: An index is over a column that would get another type.
            CommitConflictError: Another change came first again and again.
        """
        changes = alteration.parse_alterations(alterations)
        properties = _properties(commit_message, transaction_properties)
        self.handle.move_to(
            commits.run_again(self.handle.snapshot, lambda snapshot: _alter(snapshot, changes, properties))
        )

    def drop_columns(
        self,
        columns: Iterable[str],
        *,
        commit_message: str | None = None,
        transaction_properties: Properties = None,
    ) -> None:
        """Drop columns, or members of structs; only metadata are written.

        The values go when `optimize.compact_files` and `cleanup_old_versions` have rewritten and removed the files.

        Raises:
            InvalidInputError: There is no such column, or none would be left.
        """
        if isinstance(columns, str):
            raise InvalidInputError("columns to drop", expected="a list of names", found=repr(columns))
        names = list(columns)
        change.commit_change(
            self.handle,
            lambda snapshot: operations.Project(
                schema_change.drop_fields(snapshot.schema, names), preserves_nullability=True
            ),
            commit_message,
            transaction_properties,
        )

    def _add(self, source: made_columns.NewColumns, message: str | None, properties: Properties) -> None:
        commit_properties = _properties(message, properties)
        earlier = column_files.EarlierFiles()

        def attempt(snapshot: Snapshot) -> Snapshot:
            try:
                return _add(snapshot, source, commit_properties, earlier)
            except RetryableError as error:
                if source.repeatable:
                    raise
                raise IncompatibleError(
                    f"{error.what}, and the data of the new columns can be read only once",
                    where=error.where,
                    remedy="add the columns again, with data for the rows of the newest version",
                ) from error

        try:
            self.handle.move_to(commits.run_again(self.handle.snapshot, attempt))
        finally:
            earlier.discard(self.handle.snapshot.store)
        source.committed()


def _properties(message: str | None, properties: Properties) -> dict[str, str] | None:
    return change.transaction_properties(message, properties)


def _add(
    snapshot: Snapshot, source: made_columns.NewColumns, properties: Properties, earlier: column_files.EarlierFiles
) -> Snapshot:
    table = TableScan(snapshot)
    columns = schema_change.add_fields(
        snapshot.schema,
        source.schema(table),
        snapshot.data_storage_version,
        schema_change.next_field_id(snapshot),
        lists=isinstance(source, made_columns.NullColumns),
    )
    files = column_files.ColumnFiles(snapshot, columns.new, snapshot.data_storage_version, earlier)

    def make() -> operations.Operation:
        fragments = []
        ids = {field.id for field in columns.new.walk()}
        for fragment in snapshot.fragments:
            file = source.kept(table, fragment)
            file = file if file is not None and ids.issuperset(file.fields) else None
            batches = None if file is not None else source.batches(table, fragment)
            if batches is not None:
                file = files.write(fragment, batches)
                if file is not None and source.keep(fragment, file):
                    files.keep(fragment)
            fragments.append(column_files.with_file(fragment, file, columns.whole))
        source.finish()
        return operations.Merge(tuple(fragments), columns.whole, preserves_nullability=not columns.tightens)

    return commit_files(snapshot, files, make, properties)


def _alter(snapshot: Snapshot, alterations: Sequence[alteration.Alteration], properties: Properties) -> Snapshot:
    version = snapshot.data_storage_version
    altered = alteration.alter_schema(snapshot.schema, alterations, version, schema_change.next_field_id(snapshot))
    casts.check_no_nulls(snapshot, altered.tightened)
    if not altered.casts:
        return commits.commit(
            snapshot, operations.Project(altered.schema, not altered.tightened), properties=properties
        )
    _refuse_indexed(snapshot, altered.casts)
    files, make = casts.cast_columns(snapshot, altered)
    return commit_files(snapshot, files, make, properties)


def _refuse_indexed(snapshot: Snapshot, field_ids: Iterable[int]) -> None:
    """Refuse to cast a column that an index is over, or over what is above or below it: the cast would take it away."""
    schema = snapshot.schema
    concerned: set[int] = set()
    for field_id in field_ids:
        concerned |= {field.id for field in schema.by_id(field_id).walk()}
        while (field_id := schema.by_id(field_id).parent_id) >= 0:
            concerned.add(field_id)
    names = sorted({index.name for index in snapshot.indices if not concerned.isdisjoint(index.fields)})
    if names:
        raise ReferencedError(
            "a column that is indexed cannot be cast to another type",
            where=snapshot.uri,
            found=", ".join(names),
            remedy="drop_index(…) first, and create the index again after the cast",
        )


def commit_files(
    snapshot: Snapshot,
    files: column_files.ColumnFiles,
    make: Callable[[], operations.Operation],
    properties: Properties,
) -> Snapshot:
    """Write the files of a change and commit it; they are deleted where it is known to have failed."""
    try:
        operation = make()
    except BaseException:
        files.discard()
        raise
    try:
        result = commits.commit(snapshot, operation, properties=properties)
    except RetryableError:
        files.lost()
        raise
    except commits.REFUSALS:
        files.discard()
        raise
    files.committed()
    return result
