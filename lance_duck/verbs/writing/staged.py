"""Rows that are written first and committed afterwards, possibly by another process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

import pyarrow as pa

from lance_duck import lazy
from lance_duck.arrow.pandas_metadata import PANDAS, LabelledColumn, fitted
from lance_duck.commit import REFUSALS, commit, create_table, run_again
from lance_duck.commit.committer import Amend, Guard
from lance_duck.commit.operations import Append, Overwrite
from lance_duck.errors import (
    AlreadyExistsError,
    InvalidInputError,
    StoreError,
)
from lance_duck.scan.projection import HIDDEN
from lance_duck.snapshot import Location, Snapshot, derived
from lance_duck.store import Store
from lance_duck.verbs.public.bases import target_bases
from lance_duck.verbs.writing.schema_compat import check_still_fits, fitting
from lance_duck.verbs.writing.settings import WriteSettings, auto_cleanup_config
from lance_duck.wire import flags
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.manifest import BasePath
from lance_duck.wire.schema import EMBEDDING_FUNCTIONS, Schema
from lance_duck.wire.schema_write import refuse_mixed_lists, schema_from_arrow
from lance_duck.write.files import discard_fragments, write_new_fragments
from lance_duck.write.options import Base, storage_version
from lance_duck.write.relations import refuse_enums

if TYPE_CHECKING:
    from lance_duck import embedders
else:
    embedders = lazy.modules(globals(), "lance_duck", "embedders")

_T = TypeVar("_T")


@dataclass(frozen=True)
class StagedRows:
    """Rows in uncommitted fragments. Call `sync` before another process commits them.

    Attributes:
        schema: Schema of the written rows. For an existing table, the table columns that the data contains.
        fragments: The fragments, without ids.
        location: The table.
        bases: Locations of the files. None is the table root.
        initial: Base paths of a new table.
        transaction: UUID of the transaction that must commit them. None allows any.
    """

    schema: Schema
    fragments: tuple[Fragment, ...]
    location: Location
    bases: tuple[Base | None, ...] = ()
    initial: tuple[BasePath, ...] = ()
    transaction: UUID | None = None

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return sum(fragment.physical_rows for fragment in self.fragments)

    def sync(self) -> None:
        """Sync the files to disk. Deletes them if that fails."""
        try:
            self.location.store().sync()
        except StoreError:
            self.discard()
            raise

    def discard(self) -> None:
        """Delete the files. Never raises."""
        discard_fragments(self.location.store(), self.fragments, self.bases)

    def commit(self, do: Callable[[str | None], _T]) -> _T:
        """Commit under the transaction's UUID. The files are deleted if the commit is known to have failed."""
        try:
            return do(None if self.transaction is None else str(self.transaction))
        except (*REFUSALS, AlreadyExistsError):
            self.discard()
            raise


@dataclass(frozen=True)
class StagingWriter:
    """Writes rows that are committed later. Can be pickled for use in many processes.

    Attributes:
        schema: Schema of the rows. For an existing table, the table columns that the data contains.
        location: The table.
        bases: Base paths of the table, by id.
        settings: Settings of `write_dataset`.
        version: Version of the files, used if the settings do not specify one. None is the default.
        is_new: Whether the columns belong to a new or replaced table.
        transaction: UUID of the transaction that will commit the rows. File names start with it. None allows any.
        committed_here: Whether this process commits the rows. If so, the file names do not have to be synced before the
            commit.
    """

    schema: Schema
    location: Location
    bases: Mapping[int, BasePath]
    settings: WriteSettings
    version: str | None
    is_new: bool = False
    transaction: UUID | None = None
    committed_here: bool = True

    def write(self, batches: Iterable[pa.RecordBatch], store: Store | None = None) -> StagedRows:
        """Write rows.

        Args:
            batches: The rows.
            store: The open store of the table. If None, it is opened.

        Raises:
            InvalidInputError: The data does not fit the table.
        """
        targets = target_bases(self.location, self.bases, self.settings.target_bases, self.settings.target_all_bases)
        options = self.settings.options(self.version, targets, self.settings.blobs(self.location, self.bases))
        options = replace(options, transaction=self.transaction, committed_here=self.committed_here)
        fragments = write_new_fragments(store or self.location.store(), self.schema, batches, options)
        return self.staged(fragments, targets)

    def staged(self, fragments: Iterable[Fragment], bases: Iterable[Base | None] = ()) -> StagedRows:
        """Return fragments that this or another process wrote, as `StagedRows`."""
        initial = tuple(self.bases.values()) if self.is_new else ()
        return StagedRows(self.schema, tuple(fragments), self.location, tuple(bases), initial, self.transaction)


def stage_append(reader: pa.RecordBatchReader, snapshot: Snapshot, settings: WriteSettings) -> StagedRows:
    """Write rows for an existing table. Nullable columns may be missing.

    Missing vector columns are filled by the embedders that the table's metadata names.

    Raises:
        InvalidInputError: The data does not fit the table, or an embedder is not registered.
    """
    if EMBEDDING_FUNCTIONS in snapshot.schema.metadata:
        reader = embedders.with_embeddings(reader, snapshot.schema)
    store = None if snapshot.base_paths else snapshot.store  # that store may follow links to base paths
    return staging_append(reader.schema, snapshot, settings).write(reader, store)


def staging_append(source: pa.Schema, snapshot: Snapshot, settings: WriteSettings) -> StagingWriter:
    """Return a writer of rows with this schema for an existing table: see `stage_append`."""
    schema = fitting(snapshot.schema, source)
    derived.warn_of_computed(snapshot, source.names)
    return StagingWriter(schema, snapshot.location, dict(snapshot.base_paths), settings, snapshot.data_storage_version)


def stage_new(
    reader: pa.RecordBatchReader,
    location: Location,
    bases: Mapping[int, BasePath],
    settings: WriteSettings,
    replaced: Snapshot | None = None,
) -> StagedRows:
    """Write rows with a new schema.

    Raises:
        InvalidInputError: A name is repeated or reserved.
        UnsupportedError: A type cannot be stored.
    """
    return staging_new(reader.schema, location, bases, settings, replaced).write(reader)


def staging_new(
    source: pa.Schema,
    location: Location,
    bases: Mapping[int, BasePath],
    settings: WriteSettings,
    replaced: Snapshot | None = None,
) -> StagingWriter:
    """Return a writer of rows with a new schema: see `stage_new`."""
    refuse_enums(source)
    version = settings.data_storage_version or (None if replaced is None else replaced.data_storage_version)
    first = 0
    if replaced is not None and replaced.manifest.writer_flags & flags.KEPT_FIELD_IDS:
        first = replaced.manifest.proto.max_allocated_field_id + 1
    schema = _with_fitting_labels(schema_from_arrow(source, storage_version(version), first))
    for field in schema.fields:
        refuse_mixed_lists(field)
    reserved = [name for name in schema.names if name in HIDDEN]
    if reserved:
        raise InvalidInputError(f"column {reserved[0]!r} has a reserved name", where="schema", remedy="rename it")
    return StagingWriter(schema, location, dict(bases), settings, version, replaced is None)


def _with_fitting_labels(schema: Schema) -> Schema:
    """Return a schema whose pandas metadata matches its columns, even if the caller changed the table."""
    text = schema.metadata.get(PANDAS)
    if text is None:
        return schema
    labelled = fitted(text, [LabelledColumn(field.name, field.name, field.arrow_type) for field in schema.fields])
    others = {key: value for key, value in schema.metadata.items() if key != PANDAS}
    return replace(schema, metadata=others if labelled is None else {**others, PANDAS: labelled})


def commit_created(
    staged: StagedRows,
    settings: WriteSettings,
    other: Callable[[], Snapshot | None] | None = None,
    config: Mapping[str, str] | None = None,
    *,
    guard: Guard | None = None,
    amend: Amend | None = None,
) -> Snapshot:
    """Create a table from staged rows.

    Args:
        staged: The rows.
        settings: Settings of the table.
        other: Called if another writer created the table first. Returns the version to add the rows to, or None.
        config: Additional config of the new table.
        guard: See `commit_added`. Used if the rows are added to a table that another writer created.
        amend: See `commit_added`.

    Raises:
        AlreadyExistsError: The table already exists.
    """
    first_config = {**auto_cleanup_config(settings), **(config or {})}
    operation = Overwrite(staged.schema, staged.fragments, first_config, staged.initial)

    def create(uuid: str | None) -> Snapshot:
        try:
            return create_table(
                staged.location,
                operation,
                data_storage_version=storage_version(settings.data_storage_version),
                stable_row_ids=settings.enable_stable_row_ids,
                v2_manifest_paths=settings.enable_v2_manifest_paths,
                properties=settings.properties,
                transaction_uuid=uuid,
            )
        except AlreadyExistsError:
            snapshot = None if other is None else other()
            if snapshot is None:
                raise
            return _add(staged, snapshot, settings, uuid, guard, amend)

    return staged.commit(create)


def commit_added(
    staged: StagedRows,
    current: Snapshot,
    settings: WriteSettings,
    *,
    guard: Guard | None = None,
    amend: Amend | None = None,
) -> Snapshot:
    """Add staged rows to a table.

    Args:
        staged: The rows.
        current: Version that they were written for.
        settings: Settings of `write_dataset`.
        guard: Called with each version that the rows are applied to. Raises an error to stop the attempt.
        amend: See `commit`.

    Raises:
        IncompatibleError: The columns of the table changed.
    """
    return staged.commit(lambda uuid: _add(staged, current, settings, uuid, guard, amend))


def commit_replaced(
    staged: StagedRows,
    current: Snapshot,
    settings: WriteSettings,
    *,
    guard: Guard | None = None,
    amend: Amend | None = None,
) -> Snapshot:
    """Replace all rows and columns of a table with staged rows: see `commit_added`."""
    operation = Overwrite(staged.schema, staged.fragments)

    def replace_rows(uuid: str | None) -> Snapshot:
        def attempt(snapshot: Snapshot) -> Snapshot:
            if guard is not None:
                guard(snapshot)
            return commit(
                snapshot,
                operation,
                guard=guard,
                amend=amend,
                properties=settings.properties,
                transaction_uuid=uuid,
            )

        return run_again(current, attempt)

    return staged.commit(replace_rows)


def _add(
    staged: StagedRows,
    current: Snapshot,
    settings: WriteSettings,
    uuid: str | None,
    guard: Guard | None = None,
    amend: Amend | None = None,
) -> Snapshot:
    def check(newest: Snapshot) -> None:
        check_still_fits(staged.schema, newest)
        if guard is not None:
            guard(newest)

    def attempt(snapshot: Snapshot) -> Snapshot:
        check(snapshot)
        is_collected = snapshot.collect is not None  # whoever commits the collected changes checks the columns
        return commit(
            snapshot,
            Append(staged.fragments),
            guard=guard if is_collected else check,
            amend=amend,
            properties=settings.properties,
            transaction_uuid=uuid,
        )

    return run_again(current, attempt)
