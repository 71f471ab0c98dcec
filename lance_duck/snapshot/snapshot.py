"""A single, immutable version of a table. All reads go through it.

Each file in the manifest lies below the table root, or below a base path if its entry has a base id:

    base path is a dataset root      {base}/data/…, {base}/_deletions/…, {base}/_indices/…
    base path is a plain directory   {base}/…
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from functools import cached_property
from os import PathLike
from types import MappingProxyType
from typing import Any, TypeVar, cast

from lance_duck.cache import LruCache, SizedCache
from lance_duck.errors import CorruptError, InvalidInputError, LanceDuckError, NotFoundError, UnsupportedError
from lance_duck.file.open import LanceFile, open_data_file
from lance_duck.file.reader import with_blob_files
from lance_duck.redact import shown
from lance_duck.rows import (
    DeletionVector,
    RowIdIndex,
    RowIdSequence,
    VersionSequence,
    read_deletion_vector,
    read_row_ids,
    read_versions,
)
from lance_duck.snapshot import refs, versions
from lance_duck.snapshot.costs import CACHED_DERIVED, CACHED_FILES, CACHED_SEQUENCES, SHARED_BYTES
from lance_duck.snapshot.location import Location
from lance_duck.snapshot.publish import CommitLock
from lance_duck.store import ByteSource, Store, join_uri, open_source, run
from lance_duck.wire import flags, paths
from lance_duck.wire.fragment import DataFile, DeletionFile, ExternalFile, Fragment, Fragments
from lance_duck.wire.index import IndexMetadata
from lance_duck.wire.manifest import BasePath, Manifest
from lance_duck.wire.schema import Schema
from lance_duck.wire.transaction import Transaction, read_transaction, transaction_from_proto

Version = int | str | tuple[str | None, int | str | None]
_T = TypeVar("_T")


def open_snapshot(
    uri: str | PathLike[str],
    version: Version | None = None,
    asof: datetime | date | str | None = None,
    storage_options: Mapping[str, str] | None = None,
    commit_lock: CommitLock | None = None,
) -> Snapshot:
    """Open one version of a table.

    Args:
        uri: Path or URI of the table.
        version: A number (on the branch at `uri`), a tag, or (branch, number, tag or None). None selects the latest
            version.
        asof: Open the newest version committed before this time. Ignored if `version` is given.
        storage_options: Object store settings. "base_{id}.{name}" is a setting for a single base path.
        commit_lock: See `Location`.

    Raises:
        NotFoundError: The table, version, tag or branch does not exist.
        FormatError: The manifest cannot be read.
    """
    return _open(Location.of(uri, storage_options, commit_lock), version, asof)


class Snapshot:
    """One version of a table. Thread-safe.

    Args:
        location: Location of the branch.
        manifest: Manifest of the version.
        store: The store from which the manifest was read. If None, the store is opened on demand.

    Attributes:
        base: The committed version on which an uncommitted version is based. None for a committed version.
        collect: Takes an operation that is committed on this version, and whether newer versions would have to be
            checked. Returns the next version in memory. The operations are committed together later. None for a
            version whose operations are committed at once.
        log: Which rows of the write-ahead log a `LogView` contains, or None.
        moved: New ids of the fragments of SSTables, by base id and old id.
    """

    log: str | None = None
    moved: Mapping[int, Mapping[int, int]] = MappingProxyType({})

    def __init__(self, location: Location, manifest: Manifest, store: Store | None = None) -> None:
        self.location = location
        self.manifest = manifest
        self.base: Snapshot | None = None
        self.collect: Callable[[Any, bool], Snapshot] | None = None
        self._files: LruCache[LanceFile] = LruCache(CACHED_FILES)
        self._deletions: LruCache[DeletionVector] = LruCache(CACHED_SEQUENCES)
        self._sequences: LruCache[Any] = LruCache(CACHED_SEQUENCES)
        self._derived: LruCache[Any] = LruCache(CACHED_DERIVED)
        self._shared: SizedCache[Any] = SizedCache(SHARED_BYTES, lambda thing: int(thing.nbytes), grows=True)
        self._bases = _Bases(location, manifest, store)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.location, self.manifest.path)

    def __repr__(self) -> str:
        return f"<Snapshot {shown(self.uri)} version {self.version}>"

    @property
    def uri(self) -> str:
        """Path or URI of the table, or of the version's branch."""
        return self.store.uri

    @property
    def version(self) -> int:
        """Number of the version."""
        return self.manifest.version

    @property
    def state(self) -> Hashable:
        """A value that is equal for equal states of one table."""
        return self.version

    @property
    def branch(self) -> str | None:
        """Branch of the version, or None for main."""
        return self.manifest.branch

    @property
    def timestamp(self) -> datetime:
        """Commit time in UTC."""
        return self.manifest.timestamp

    @property
    def schema(self) -> Schema:
        """Fields of the table."""
        return self.manifest.schema

    @property
    def fragments(self) -> Fragments:
        """Fragments, in scan order."""
        return self.manifest.fragments

    @property
    def config(self) -> Mapping[str, str]:
        """Settings of the table."""
        return self.manifest.config

    @property
    def metadata(self) -> Mapping[str, str]:
        """Metadata of the table."""
        return self.manifest.metadata

    @property
    def indices(self) -> tuple[IndexMetadata, ...]:
        """Index segments."""
        return self.manifest.indices

    @property
    def base_paths(self) -> Mapping[int, BasePath]:
        """Locations of files outside the table root, by id."""
        return self.manifest.base_paths

    @property
    def data_storage_version(self) -> str:
        """File format version of new data files."""
        return self.manifest.data_storage_version

    @property
    def has_stable_row_ids(self) -> bool:
        """Whether rows keep their ids when they move."""
        return self.manifest.has_stable_row_ids

    @property
    def store(self) -> Store:
        """Root of the table."""
        return self._bases.root

    def count_rows(self) -> int:
        """Return the number of live rows. Reads only metadata, unless an old manifest does not store the count."""
        return sum(self.row_counts())

    def row_counts(self) -> Sequence[int]:
        """Return the live row count of each fragment: see `count_rows`."""
        counts = self.fragments.row_counts()
        return [self.num_rows(f) for f in self.fragments] if counts is None else counts

    def fragment(self, fragment_id: int) -> Fragment:
        """Return a fragment by id. Raises InvalidInputError."""
        place = self._places.get(fragment_id)
        if place is None:
            raise InvalidInputError(f"no fragment {fragment_id}", where=self.uri)
        return self.fragments[place]

    def physical_rows(self, fragment: Fragment) -> int:
        """Return a fragment's row count, including deleted rows. For an old manifest, reads the data file."""
        if fragment.physical_rows or not fragment.files:
            return fragment.physical_rows
        return self.data_file(fragment.files[0]).num_rows

    def num_rows(self, fragment: Fragment) -> int:
        """Return a fragment's live row count. Reads its files if an old manifest does not store the count."""
        physical = self.physical_rows(fragment)
        if fragment.deletion_file is None or fragment.num_deletions:
            return physical - fragment.num_deletions
        vector = self.deletion_vector(fragment)
        return physical - (vector.count if vector is not None else 0)

    def data_file(self, data_file: DataFile) -> LanceFile:
        """Open a data file. The most recently used files remain open.

        Raises:
            UnsupportedError: The file version is not supported.
            CorruptError: The file does not match the manifest.
            NotFoundError: The file does not exist.
        """

        def open_() -> LanceFile:
            store, base = self.place(data_file.base_id)
            is_root = base is None or base.is_dataset_root
            path = paths.data_file(data_file.path, is_dataset_root=is_root)
            file = run(open_data_file(store.open(path, data_file.exact_size), data_file, checksums=store.checksums))
            return with_blob_files(file, store, data_file.path, is_root, self._bases.open_external)

        return self._files.get((data_file.base_id, data_file.path), open_)

    def deletion_vector(self, fragment: Fragment) -> DeletionVector | None:
        """Return the deleted rows of a fragment, or None if no row is deleted.

        Raises:
            CorruptError: The file does not match the manifest.
            NotFoundError: The file does not exist.
        """
        file = fragment.deletion_file
        if file is None:
            return None
        path = file.path(fragment.id)

        def read() -> DeletionVector:
            store, _ = self.place(file.base_id)
            physical = self.physical_rows(fragment)
            where = join_uri(store.uri, path)
            return read_deletion_vector(store.get(path), file.suffix, where, physical, file.num_deleted_rows or None)

        return self._deletions.get((file.base_id, path), read)

    def keep_deletions(self, file: DeletionFile, path: str, vector: DeletionVector) -> None:
        """Cache the rows of a deletion file that was just written, to avoid reading it."""
        self._deletions.put((file.base_id, path), vector)

    def row_ids(self, fragment: Fragment) -> RowIdSequence | None:
        """Return the stable row ids of a fragment's physical rows, or None for a table without stable row ids.

        Raises:
            CorruptError: The ids are missing, or their number differs from the row count.
            UnsupportedError: The storage of the ids is not supported.
        """
        if not self.has_stable_row_ids:
            return None
        where = self._where(fragment)
        if fragment.row_ids is None:
            if self.manifest.reader_flags & flags.SPILLED_ROW_LINEAGE:
                raise UnsupportedError("row ids in data files are not supported", where=where)
            raise CorruptError(
                "the fragment does not have row ids", where=where, expected="stable row ids on every fragment"
            )
        return self._sequence(fragment, fragment.row_ids, read_row_ids, "row ids")

    def created_at(self, fragment: Fragment) -> VersionSequence | None:
        """Return the version that created each physical row, or None if it is not stored."""
        if fragment.created_at is None:
            return None
        return self._sequence(fragment, fragment.created_at, read_versions, "created at")

    def last_updated_at(self, fragment: Fragment) -> VersionSequence | None:
        """Return the version that last updated each physical row, or None if it is not stored."""
        if fragment.last_updated_at is None:
            return None
        return self._sequence(fragment, fragment.last_updated_at, read_versions, "last updated at")

    @cached_property
    def row_id_index(self) -> RowIdIndex | None:
        """Index from stable row ids to row addresses. None for a table without stable row ids."""
        if not self.has_stable_row_ids:
            return None
        sequences = [(f.id, ids) for f in self.fragments if (ids := self.row_ids(f)) is not None]
        return RowIdIndex(sequences, lambda place: self.deletion_vector(self.fragments[place]))

    def transaction(self) -> Transaction | None:
        """Return the transaction of this version, or None if it is not stored."""
        inline = self.manifest.inline_transaction
        if inline is not None:
            return transaction_from_proto(inline)
        name = self.manifest.transaction_name
        if name is None:
            return None
        path = paths.transaction_file(name)
        try:
            return read_transaction(self.store.get(path), join_uri(self.uri, path))
        except NotFoundError:
            return None

    def place(self, base_id: int | None) -> tuple[Store, BasePath | None]:
        """Return the store for a base id, and the base path. The id None selects the table root.

        Raises:
            CorruptError: The manifest does not contain the base path.
        """
        return self._bases.place(base_id)

    def derived(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """Return a value that depends only on this version. The value is computed once and cached with the version."""
        return cast("_T", self._derived.get(key, make))

    def shared(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """Return a value that is the same in all versions of the table. They cache up to `SHARED_BYTES` of values."""
        return cast("_T", self._shared.get(key, make))

    def shared_bytes(self) -> int:
        """Return the total size of the values of `shared`, in bytes."""
        return self._shared.nbytes

    def checkout(self, version: Version | None = None, asof: datetime | date | str | None = None) -> Snapshot:
        """Open another version, or return this one: see `open_snapshot`. A number refers to this version's branch."""
        if isinstance(version, int) and version == self.version:
            return self
        if version is None and asof is None:
            return self._newest()
        snapshot = _open(self.location, version, asof)
        return self.followed_by(snapshot.manifest) if snapshot.location == self.location else snapshot

    def _newest(self) -> Snapshot:
        if self.collect is not None:
            return self  # the newest version within its transaction
        latest = versions.latest_version(self.store)
        if latest.version == self.version and versions.is_present(self.store, self.manifest):
            return self
        return self.followed_by(versions.load_manifest(self.store, latest.path))

    def followed_by(self, manifest: Manifest) -> Snapshot:
        """Return another version of the branch from its manifest: see `sharing_files`.

        Segments that a later version does not contain are released, because each of them keeps several files open.
        """
        snapshot = self.sharing_files(manifest)
        if snapshot._shared is self._shared and self.version < snapshot.version:
            self._let_go(snapshot)
        return snapshot

    def sharing_files(self, manifest: Manifest) -> Snapshot:
        """Return another version of the branch, committed or not. Both versions share open files and stores."""
        snapshot = Snapshot(self.location, manifest)
        if snapshot.base_paths == self.base_paths:
            snapshot.share_with(self)
            snapshot._bases.stores = self._bases.stores
        return snapshot

    def share_with(self, other: Snapshot) -> None:
        """Use the open files and the store of another version of the table with the same root."""
        self._files, self._deletions, self._shared = other._files, other._deletions, other._shared
        self._bases.root = other._bases.root

    def _let_go(self, after: Snapshot) -> None:
        """Release segments that a later version does not contain. Does nothing if a segment list cannot be read."""
        with suppress(LanceDuckError):
            gone = {segment.uuid for segment in self.indices} - {segment.uuid for segment in after.indices}
            if gone:
                self._shared.drop_where(lambda key: isinstance(key, tuple) and not gone.isdisjoint(key))

    def forget_files(self, names: Collection[str]) -> None:
        """Close deleted files. Paths are relative to the table root.

        The operating system does not free their disk space while they are open.
        """
        gone = frozenset(names)
        self._files.drop_where(lambda key: key[0] is None and paths.data_file(key[1]) in gone)
        self._deletions.drop_where(lambda key: key[0] is None and key[1] in gone)

    def latest_version(self) -> int:
        """Return the newest version number of this version's branch."""
        return versions.latest_version(self.store).version

    def versions(self) -> list[dict[str, Any]]:
        """Return all versions of the branch, oldest first: {"version", "timestamp", "metadata"}, like pylance."""
        return [versions.describe_version(m) for m in versions.load_all(self.store)]

    def version_numbers(self) -> list[int]:
        """Return all version numbers of the branch, oldest first, without reading the manifests."""
        return [name.version for name in versions.all_versions(self.store)]

    def tags(self) -> dict[str, refs.Tag]:
        """Return the tags of the table, by name."""
        return refs.list_tags(self.location.root.store())

    def branches(self) -> dict[str, refs.Branch]:
        """Return the branches of the table by name, without main."""
        return refs.list_branches(self.location.root.store())

    @cached_property
    def _places(self) -> Mapping[int, int]:
        return self.fragments.places

    def _where(self, fragment: Fragment) -> str:
        return f"{self.manifest.path}: fragment {fragment.id}"

    def _sequence(
        self, fragment: Fragment, stored: bytes | ExternalFile, read: Callable[[bytes, str, int], _T], what: str
    ) -> _T:
        def parse() -> _T:
            data = stored if isinstance(stored, bytes) else self._external(stored)
            return read(data, f"{self._where(fragment)} ({what})", self.physical_rows(fragment))

        return cast("_T", self._sequences.get((fragment.id, what), parse))

    def _external(self, file: ExternalFile) -> bytes:
        return self.store.open(file.path).read([(file.offset, file.size)])[0].tobytes()


class _Bases:
    """The stores of a table's files: its root and its base paths."""

    def __init__(self, location: Location, manifest: Manifest, store: Store | None) -> None:
        self._location = location
        self._manifest = manifest
        self.stores: dict[int, Store] = {}
        if store is not None and not manifest.base_paths:  # symbolic links in the root may lead to base paths
            self.root = store

    @cached_property
    def root(self) -> Store:
        """Root of the table."""
        return self._location.store(allowed=self._uris())

    def place(self, base_id: int | None) -> tuple[Store, BasePath | None]:
        """See `Snapshot.place`."""
        if base_id is None:
            return self.root, None
        base = self._manifest.base_paths.get(base_id)
        if base is None:
            raise CorruptError(f"no base path {base_id}", where=self._manifest.path)
        store = self.stores.get(base_id)
        if store is None:
            allowed = (self._location.uri, *self._uris())
            store = self.stores[base_id] = self._location.store(self._location.base_uri(base), base_id, allowed)
        return store, base

    def open_external(self, base_id: int, name: str) -> ByteSource:
        """Open a file that the table refers to but does not own: below a base path, or at any URI if the id is 0."""
        if base_id:
            return self.place(base_id)[0].open(name)
        return open_source(name, self._location.options_for(name))

    def _uris(self) -> tuple[str, ...]:
        return tuple(self._location.base_uri(base) for base in self._manifest.base_paths.values())


def _open(location: Location, version: Version | None, asof: datetime | date | str | None) -> Snapshot:
    location, number = _resolve(location, version)
    store = location.store()
    if number is not None:
        manifest = versions.load_version(store, number)
    elif asof is not None:
        manifest = versions.load_asof(store, asof)
    else:
        manifest = versions.load_manifest(store, versions.latest_version(store).path)
    return Snapshot(location, manifest, store)


def _resolve(location: Location, version: Version | None) -> tuple[Location, int | None]:
    """Resolve a version to its location and number. None selects the latest version."""
    if version is None or (isinstance(version, int) and not isinstance(version, bool)):
        return location, version
    root = location.root
    if isinstance(version, str):
        tag = refs.suggested_tag(root.store(), root.uri, version)
        return root.at(refs.branch_uri(root.uri, tag.branch)), tag.version
    if isinstance(version, tuple) and len(version) == 2:
        branch, number = version
        if branch not in (None, refs.MAIN):
            refs.read_branch(root.store(), str(branch))
        if isinstance(number, str):
            tag = refs.read_tag(root.store(), number)
            if (tag.branch or refs.MAIN) != (branch or refs.MAIN):
                raise NotFoundError(f"tag {number!r} is not on branch {branch!r}", where=root.uri, found=tag.branch)
            number = tag.version
        return root.at(refs.branch_uri(root.uri, branch)), number
    raise InvalidInputError(
        "not a version", where="version", expected="a number, a tag or (branch, number or tag)", found=repr(version)
    )


def _reopen(location: Location, manifest_path: str) -> Snapshot:
    store = location.store()
    return Snapshot(location, versions.load_manifest(store, manifest_path.removeprefix(store.uri).lstrip("/")), store)
