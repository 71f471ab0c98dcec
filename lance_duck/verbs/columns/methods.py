"""Dataset methods that add, merge, alter and drop columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
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
from lance_duck.snapshot import Snapshot, mem_wal
from lance_duck.verbs.handle import TableMethods

if TYPE_CHECKING:
    from lance_duck import commit as commits
    from lance_duck.commit import operations
    from lance_duck.verbs import change
    from lance_duck.verbs.columns import alteration, casts, dropping, schema_change
    from lance_duck.verbs.columns import files as column_files
    from lance_duck.verbs.columns import new_columns as made_columns
else:
    commits = lazy.modules(globals(), "lance_duck", "commit")
    operations = lazy.modules(globals(), "lance_duck.commit", "operations")
    change = lazy.modules(globals(), "lance_duck.verbs", "change")
    alteration, casts, dropping, schema_change = lazy.modules(
        globals(), "lance_duck.verbs.columns", "alteration", "casts", "dropping", "schema_change"
    )
    column_files, made_columns = lazy.modules(globals(), "lance_duck.verbs.columns", "files", "new_columns")

Properties = Mapping[str, str] | None


@checked_calls
class ColumnChanges(TableMethods):
    """Changes to columns. Each call commits a version."""

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
        """Add columns or struct fields. Only files of the new columns are written.

        Columns from SQL, or from a function without `output_schema`, only get the field metadata of their extension
        type. Data cannot declare a primary key or a computed column. Use `update_field_metadata` to declare a key.

        Args:
            transforms: Values of the new columns. A dict maps new column names to SQL expressions. A function,
                optionally from `batch_udf`, takes batches of the table and returns batches of the new columns. A field,
                a list of fields or a schema adds null columns without writing files. Other data, in any form that
                `write_dataset` accepts, must have one row for each table row, in scan order.
            read_columns: Columns passed to the function, optionally with `_rowid` and `_rowaddr`. Defaults to all.
            reader_schema: Schema for data that does not include one.
            batch_size: Number of rows per computed batch. Defaults to the scan's batch size.
            commit_message: Message to store with the transaction. See `read_transaction`.
            transaction_properties: Key-value pairs of strings to store with the transaction.

        Raises:
            InvalidInputError: A column already exists, an expression is invalid, or the row
                count differs from the table's.
            CommitConflictError: All retries lost the race.
            IncompatibleError: Another change was committed first, and the data can be read only once.
        """
        with ExitStack() as opened:
            source = made_columns.new_columns(transforms, read_columns, reader_schema, batch_size, opened=opened)
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
        """Add the columns of other data, joined by key.

        Rows without a matching key get nulls. If several rows match, the last one wins.

        Args:
            data_obj: Data in any form that `write_dataset` accepts. It is read into memory.
            left_on: Key of the table: a column, `_rowid` or `_rowaddr`.
            right_on: Key of the data. It is not added as a column. Defaults to `left_on`.
            schema: Schema for data that does not include one.
            commit_message: Message to store with the transaction. See `read_transaction`.
            transaction_properties: Key-value pairs of strings to store with the transaction.

        Raises:
            InvalidInputError: A key does not exist, the keys have different types, or a column already exists.
            CommitConflictError: See `add_columns`.
        """
        source = made_columns.joined_columns(data_obj, left_on, right_on, schema)
        self._add(source, commit_message, transaction_properties)

    def alter_columns(
        self,
        *alterations: Mapping[str, Any],
        commit_message: str | None = None,
        transaction_properties: Properties = None,
    ) -> None:
        """Rename columns, change their nullability, or change their type.

        pylance only uses indexes of lists whose item is named "item". {"path": "tags.l", "name": "item"} renames it.

        Args:
            alterations: Mappings with "path" ("a.b.c" for struct fields, "l.item" for list items) and any of "name",
                "nullable" and "data_type". "data_type" is a pyarrow type of the same kind as the old type. The kinds
                are integers, floats, decimals, strings, binary, temporal types, and lists of these. Only type changes
                write files, and only for the changed column.
            commit_message: Message to store with the transaction. See `read_transaction`.
            transaction_properties: Key-value pairs of strings to store with the transaction.

        Raises:
            InvalidInputError: A column does not exist, a name is taken, a non-nullable column would contain nulls, a
                new type is of a different kind, or a value does not fit the new type.
            ReferencedError: A column that changes its type has an index.
            CommitConflictError: All retries lost the race.
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
        """Drop columns or struct fields. Usually writes only metadata.

        Data files store the nulls of structs and the lengths of lists together with the fields inside them. If the last
        stored field is dropped while fields without values remain, the nulls of one of these are written.

        To delete the values from disk, run `optimize.compact_files` to rewrite the files, then `cleanup_old_versions`
        to remove the old files.

        Args:
            columns: Paths of the columns ("a.b.c" for struct fields, "l.item.a" inside lists). A struct, list or map is
                dropped with its last field.
            commit_message: Message to store with the transaction. See `read_transaction`.
            transaction_properties: Key-value pairs of strings to store with the transaction.

        Raises:
            InvalidInputError: A column does not exist or is a map's key or value, or no column would remain.
            CommitConflictError: All retries lost the race.
        """
        if isinstance(columns, str):
            raise InvalidInputError(
                "the columns to drop have the wrong type", expected="a list of names", found=repr(columns)
            )
        names = list(columns)
        properties = _properties(commit_message, transaction_properties)
        self.handle.move_to(
            commits.run_again(self.handle.snapshot, lambda snapshot: _drop(snapshot, names, properties))
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
                    remedy="call add_columns again, with fresh data for the newest version",
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
        keep=source.keeps,
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
                mem_wal.refuse_values(snapshot)
                file = files.write(fragment, batches)
                if file is not None and source.keep(fragment, file):
                    files.keep(fragment)
            elif file is None:
                column_files.refuse_missing_values(snapshot, fragment)
            fragments.append(column_files.with_file(fragment, file, columns.whole))
        source.finish()
        return operations.Merge(tuple(fragments), columns.whole, preserves_nullability=not columns.tightens)

    return commit_files(snapshot, files, make, properties)


def _alter(snapshot: Snapshot, alterations: Sequence[alteration.Alteration], properties: Properties) -> Snapshot:
    version = snapshot.data_storage_version
    if any(a.data_type is not None for a in alterations):
        mem_wal.refuse_values(snapshot)
    altered = alteration.alter_schema(snapshot.schema, alterations, version, schema_change.next_field_id(snapshot))
    if altered.tightened:
        mem_wal.refuse_not_null(snapshot)
    casts.check_no_nulls(snapshot, altered.tightened)
    if not altered.casts:
        return commits.commit(
            snapshot, operations.Project(altered.schema, not altered.tightened), properties=properties
        )
    refuse_indexed(snapshot, altered.casts)
    files, make = casts.cast_columns(snapshot, altered)
    return commit_files(snapshot, files, make, properties)


def _drop(snapshot: Snapshot, names: Sequence[str], properties: Properties) -> Snapshot:
    schema = schema_change.drop_fields(snapshot.schema, names)
    bearers = dropping.structure_bearers(snapshot, schema)
    if not bearers:
        return commits.commit(snapshot, operations.Project(schema, preserves_nullability=True), properties=properties)
    files, make = dropping.drop_with_structure(snapshot, schema, bearers)
    return commit_files(snapshot, files, make, properties)


def refuse_indexed(snapshot: Snapshot, field_ids: Iterable[int]) -> None:
    """Reject a cast if an index on the field, an ancestor or a descendant would lose its column."""
    schema = snapshot.schema
    concerned: set[int] = set()
    for field_id in field_ids:
        concerned |= {field.id for field in schema.by_id(field_id).walk()}
        while (field_id := schema.by_id(field_id).parent_id) >= 0:
            concerned.add(field_id)
    names = sorted({index.name for index in snapshot.indices if not concerned.isdisjoint(index.fields)})
    if names:
        raise ReferencedError(
            "an indexed column cannot be cast to another type",
            where=snapshot.uri,
            found=", ".join(names),
            remedy="drop the index first, and create it again after the cast",
        )


def commit_files(
    snapshot: Snapshot,
    files: column_files.ColumnFiles,
    make: Callable[[], operations.Operation],
    properties: Properties,
) -> Snapshot:
    """Write and commit the files of a change. The files are deleted if the commit is known to have failed."""
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
