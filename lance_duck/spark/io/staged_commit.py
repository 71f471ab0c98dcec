"""Staged commits: rows of many tasks become one version, once, without leftovers.

data/{what the name of the transaction gives}-{uuid}.lance    what each attempt of a task wrote, and blobs beside it
_transactions/{version}-{uuid}.txn                            that a commit was begun

The transaction has its name from the driver, before the first task. Files say by their names whose they are, so that
those of attempts that failed, were overtaken or killed are found and deleted; a version says by its transaction that
it is the one, so that a commit whose answer was lost is not made again, nor taken for one that failed.
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
    """A change that adds rows to a table, or replaces them; pickles: the driver begins it and lands it, tasks write.

    Attributes:
        place: The table.
        staging: How rows are written.
        base: Version that it was begun from; 0: there was no table.
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
        """Decide, on the driver, how rows are written; nothing is written yet.

        Args:
            place: The table, which need not be there.
            schema: Of the rows; of a new table, or one that is replaced, the columns that it gets.
            mode: "create" refuses a table that is there; "append" adds rows, "overwrite" replaces rows and columns.
            settings: As for `write_dataset`; those of the store come from the place.
            uuid: Name of the transaction, for one that may be begun again; None: a new one.

        Raises:
            AlreadyExistsError: There is a table, and the mode is "create".
            InvalidInputError: The rows do not fit the table.
            UnsupportedError: A type, a version or a table that is not written.
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
        """Return the same change as another transaction."""
        return replace(self, uuid=uuid, staging=replace(self.staging, transaction=uuid))

    def write(self, batches: Iterable[pa.RecordBatch]) -> tuple[Fragment, ...]:
        """Write rows, in a task. What fails leaves nothing, unless it is killed.

        Returns:
            Fragments for `land`, small enough for a message; none where there are no rows.

        Raises:
            InvalidInputError: The rows do not fit the table.
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
        """Commit what the tasks wrote, on the driver, unless it has been; then delete what failed attempts left.

        Args:
            fragments: What counts, in the order of the rows.
            guard: Called with each version that the change is put on top of; raises to refuse.
            amend: See `commit.commit`; neither is called where a table is made.
            config: What a table that is made begins with in its config.

        Returns:
            The version that has the rows.

        Raises:
            CommitConflictError: The table was changed meanwhile so that the rows do not fit.
            AlreadyExistsError: Another one made a table of other columns.
            StoreError: The disk or the service failed; whether there is a new version is what `landed` tells.
        """
        version = self.landed()
        after = self._commit(fragments, guard, amend, config) if version is None else version
        with suppress(Exception):  # there is a new version, whatever becomes of leftovers
            self.sweep(fragments if version is None else version.fragments)
            auto_cleanup(after)
        return after

    def landed(self) -> Snapshot | None:
        """Return the version that this change has made, if any. Raises StoreError."""
        return next((version for version in self._since() if version is not None and self._made(version)), None)

    def abandon(self) -> None:
        """Delete what was written, unless it has landed: on the driver, when the change was given up. Never raises.

        Where that cannot be told, everything stays, for cleanup to judge.
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
        """Delete all files of this change but those of some fragments. Raises StoreError."""
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
            raise NotFoundError("the table is gone", where=self.place.uri)
        change = commit_replaced if self.mode == "overwrite" else commit_added
        return change(staged, current, settings, guard=guard, amend=amend)

    def _joined(self) -> Snapshot | None:
        """Return the table that another one has just made, where it is the one that this would have been."""
        snapshot = newest(self.place) if self.mode == "append" else None
        return snapshot if snapshot is not None and snapshot.schema.fields == self.staging.schema.fields else None

    def _since(self) -> Iterator[Snapshot | None]:
        """Yield versions since the change was begun, oldest first; None for one that is gone."""
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
        """Return whether a commit may be under way: on an object store one that failed may still succeed."""
        names = (paths.transaction_name(read, str(self.uuid)) for read in range(self.base, latest + 1))
        return any(self._store.exists(paths.transaction_file(name)) for name in names)

    @property
    def _store(self) -> Store:
        return self.staging.location.store()


def newest(place: TableRef) -> Snapshot | None:
    """Return the newest version of a table; None when there is none."""
    try:
        return open_snapshot(place.uri, storage_options=dict(place.storage_options))
    except NotFoundError:
        return None


def exists_already(place: TableRef) -> AlreadyExistsError:
    """Return the error for a table that is there and must not be."""
    return AlreadyExistsError(
        "table exists already", where=place.uri, remedy='mode "append" adds rows, "overwrite" replaces them'
    )
