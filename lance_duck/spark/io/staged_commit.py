"""Staged commits. Rows written by many tasks become one version, exactly once, and files of failed tasks are deleted.

data/{prefix from the transaction's name}-{uuid}.lance    file written by one attempt of a task, with its blob sidecars
_transactions/{version}-{uuid}.txn                        records that a commit was begun

The driver names the transaction before the first task. File names contain the transaction's name. Files of failed,
superseded or killed attempts can therefore be found and deleted. Each version stores the name of its transaction. If
the response to a commit is lost, the driver can therefore check whether the commit succeeded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from uuid import UUID, uuid4

import pyarrow as pa

from lance_duck.commit.committer import Amend, Guard
from lance_duck.errors import AlreadyExistsError, NotFoundError
from lance_duck.maintenance.auto_cleanup import auto_cleanup
from lance_duck.snapshot import Location, Snapshot, open_snapshot, versions
from lance_duck.spark.table_ref import TableRef
from lance_duck.store import Store
from lance_duck.verbs.writing.settings import WriteSettings
from lance_duck.verbs.writing.staged import (
    StagingWriter,
    commit_added,
    commit_created,
    commit_replaced,
    staging_append,
    staging_new,
)
from lance_duck.wire import flags, paths
from lance_duck.wire.fragment import Fragment
from lance_duck.write.coerce import check_fits


@dataclass(frozen=True)
class Landing:
    """A change that adds or replaces rows of a table.

    The driver begins and commits the change, and tasks write the rows. Can be pickled.

    Attributes:
        place: The table.
        staging: Settings for writing rows.
        base: Version on which the change is based, or 0 for a new table.
        mode: "create", "append" or "overwrite", as for `write_dataset`.
        uuid: Name of the transaction.
    """

    place: TableRef
    staging: StagingWriter
    base: int
    mode: str
    uuid: UUID

    @classmethod
    def begin(
        cls,
        place: TableRef,
        schema: pa.Schema,
        mode: str = "append",
        *,
        settings: WriteSettings | None = None,
        uuid: UUID | None = None,
    ) -> Landing:
        """Prepare a change on the driver, without writing anything yet.

        Args:
            place: The table. It does not have to exist.
            schema: Schema of the rows. A new or replaced table gets its columns.
            mode: "create" raises if the table exists. "append" adds rows. "overwrite" replaces rows and columns.
            settings: Write settings, as for `write_dataset`. `place` overrides the storage options.
            uuid: Name of the transaction, for a change that may be restarted. Defaults to a new name.

        Raises:
            AlreadyExistsError: The table exists, and the mode is "create".
            InvalidInputError: The rows do not match the table's columns.
            UnsupportedError: A column type or file version cannot be written, or the table has unknown writer flags.
        """
        settings = replace(settings or WriteSettings(), storage_options=dict(place.storage_options))
        current = newest(place)
        if current is not None:
            if mode == "create":
                raise exists_already(place)
            flags.check_writable(current.manifest.writer_flags, current.uri)
        if current is None or mode == "overwrite":
            location = Location.of(place.uri, dict(place.storage_options)) if current is None else current.location
            bases = {} if current is None else current.base_paths
            staging = staging_new(schema, location, bases, settings, current)
        else:
            staging = staging_append(schema, current, settings)
        check_fits(schema, staging.schema)
        uuid = uuid or uuid4()
        staging = replace(staging, transaction=uuid, committed_here=False)
        return cls(place, staging, 0 if current is None else current.version, mode, uuid)

    def named(self, uuid: UUID) -> Landing:
        """Return the same change with a different transaction name."""
        return replace(self, uuid=uuid, staging=replace(self.staging, transaction=uuid))

    def write(self, batches: Iterable[pa.RecordBatch]) -> tuple[Fragment, ...]:
        """Write rows in a task. A failed write does not leave files, unless the process is killed.

        Returns: Fragments for `land`, small enough for a message. Empty without rows.

        Raises:
            InvalidInputError: The rows do not match the table's columns.
            StoreError: A file cannot be written.
        """
        return self.staging.write(batches).fragments

    def land(
        self,
        fragments: Sequence[Fragment],
        *,
        guard: Guard | None = None,
        amend: Amend | None = None,
        config: Mapping[str, str] | None = None,
    ) -> Snapshot:
        """Commit the files of the tasks, unless they are already committed. Then delete files of failed attempts.

        Args:
            fragments: Fragments to commit, in the order of the rows.
            guard: Called with each version that the change is rebased on. It raises an error to reject the version.
            amend: See `commit.commit`. `guard` and `amend` are not called when a table is created.
            config: Initial config of a table that is created.

        Returns:
            The version that contains the rows.

        Raises:
            CommitConflictError: Another writer changed the table's columns, and the rows no longer match them.
            AlreadyExistsError: Another writer created a table with different columns.
            StoreError: The disk or the service failed. If a version was still created, `landed` returns it.
        """
        version = self.landed()
        after = self._commit(fragments, guard, amend, config) if version is None else version
        with suppress(Exception):  # the version is committed even if leftovers cannot be deleted
            self.sweep(fragments if version is None else version.fragments)
            auto_cleanup(after)
        return after

    def landed(self) -> Snapshot | None:
        """Return the version that this change committed, if any. Raises StoreError."""
        return next((version for version in self._since() if version is not None and self._made(version)), None)

    def abandon(self) -> None:
        """Delete the files of an abandoned change, unless it was committed. Called on the driver. Never raises.

        If the outcome of the commit is unknown, all files are kept until cleanup.
        """
        with suppress(Exception):
            since = list(self._since())
            if None in since:
                return
            own_version = next((version for version in since if version is not None and self._made(version)), None)
            if own_version is not None:
                self.sweep(own_version.fragments)
            elif not self._is_begun(self.base + len(since)):
                self.sweep(())

    def sweep(self, fragments: Iterable[Fragment]) -> None:
        """Delete all files of this change except the files of the given fragments. Raises StoreError."""
        stems = {paths.data_stem(file.path) for fragment in fragments for file in fragment.files}
        store = self._store
        files = store.beginning(paths.transaction_data(self.uuid))
        if orphans := [path for path in files if paths.data_stem(path) not in stems]:
            store.delete(orphans)

    def _commit(
        self,
        fragments: Sequence[Fragment],
        guard: Guard | None,
        amend: Amend | None,
        config: Mapping[str, str] | None,
    ) -> Snapshot:
        staged = self.staging.staged(fragments)
        settings = self.staging.settings
        if self.base == 0:
            return commit_created(staged, settings, self._joined, config, guard=guard, amend=amend)
        current = self._version(self.base) or newest(self.place)
        if current is None:
            raise NotFoundError("the table no longer exists", where=self.place.uri)
        change = commit_replaced if self.mode == "overwrite" else commit_added
        return change(staged, current, settings, guard=guard, amend=amend)

    def _joined(self) -> Snapshot | None:
        """Return the table that another writer has just created, if its schema equals the planned schema."""
        snapshot = newest(self.place) if self.mode == "append" else None
        return snapshot if snapshot is not None and snapshot.schema.fields == self.staging.schema.fields else None

    def _since(self) -> Iterator[Snapshot | None]:
        """Yield the versions since the change began, oldest first. A removed version is yielded as None."""
        try:
            latest = versions.latest_version(self._store).version
        except NotFoundError:
            return
        for number in range(self.base + 1, latest + 1):
            yield self._version(number)

    def _version(self, number: int) -> Snapshot | None:
        try:
            return Snapshot(self.staging.location, versions.load_version(self._store, number))
        except NotFoundError:
            return None

    def _made(self, version: Snapshot) -> bool:
        return paths.is_transaction(version.manifest.transaction_name or "", str(self.uuid))

    def _is_begun(self, latest: int) -> bool:
        """Return whether a commit may still be in progress. On an object store, a failed request may succeed later."""
        names = (paths.transaction_name(read, str(self.uuid)) for read in range(self.base, latest + 1))
        return any(self._store.exists(paths.transaction_file(name)) for name in names)

    @property
    def _store(self) -> Store:
        return self.staging.location.store()


def newest(place: TableRef) -> Snapshot | None:
    """Return the newest version of a table, or None if the table does not exist."""
    try:
        return open_snapshot(place.uri, storage_options=dict(place.storage_options))
    except NotFoundError:
        return None


def exists_already(place: TableRef) -> AlreadyExistsError:
    """Return the error for a table that must not exist, but does."""
    return AlreadyExistsError(
        "the table already exists",
        where=place.uri,
        remedy='use mode "append" to add rows, or "overwrite" to replace them',
    )
