"""Methods that restore, branch and clone versions, and drop a table."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from lance_duck import lazy
from lance_duck.arguments import checked_calls
from lance_duck.errors import AlreadyExistsError, FormatError, InvalidInputError, NotFoundError, UnsupportedError
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Location, Snapshot, Version, open_snapshot, refs
from lance_duck.snapshot.publish import forget_table
from lance_duck.snapshot.versions import all_versions, latest_version, load_manifest
from lance_duck.store import Store, local_path
from lance_duck.verbs.handle import TableMethods
from lance_duck.wire import paths
from lance_duck.wire.paths import ManifestName

if TYPE_CHECKING:
    from lance_duck import commit as commits
    from lance_duck.verbs import change
    from lance_duck.verbs.public import bases as public_bases
    from lance_duck.verbs.versions import clone as cloning
else:
    commits = lazy.modules(globals(), "lance_duck", "commit")
    change = lazy.modules(globals(), "lance_duck.verbs", "change")
    public_bases = lazy.modules(globals(), "lance_duck.verbs.public", "bases")
    cloning = lazy.modules(globals(), "lance_duck.verbs.versions", "clone")


@checked_calls
class VersionChanges(TableMethods):
    """Changes to the versions of a table."""

    def restore(
        self, *, commit_message: str | None = None, transaction_properties: Mapping[str, str] | None = None
    ) -> None:
        """Restore this handle's version as a new version."""
        operation = commits.Restore(self.handle.snapshot.version)
        properties = change.transaction_properties(commit_message, transaction_properties)
        newest = self.handle.snapshot.checkout()
        self.handle.move_to(
            commits.run_again(newest, lambda snapshot: commits.commit(snapshot, operation, properties=properties))
        )

    def add_bases(self, new_bases: Sequence[Any], transaction_properties: Mapping[str, str] | None = None) -> Self:
        """Add base paths: locations for data files, which writes select with `target_bases`.

        Args:
            new_bases: Base paths, as `DatasetBasePath`.
            transaction_properties: Key-value pairs of strings to store with the transaction.

        Returns:
            This dataset.

        Raises:
            InvalidInputError: A path, name or id is taken.
        """
        change.commit_change(
            self.handle, lambda snapshot: _update_bases(snapshot, new_bases), None, transaction_properties
        )
        return self

    def create_branch(
        self,
        branch: str,
        reference: Version | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> Self:
        """Create a branch: a separate line of versions that shares the files of its first version.

        Args:
            branch: Name of the branch. It must be unused.
            reference: First version: a number, a tag, or (branch, number or tag). (branch, None) is the latest version
                of the branch. Defaults to this handle's version.
            storage_options: Object store settings that replace the handle's.

        Returns:
            A dataset on the branch.

        Raises:
            AlreadyExistsError: The branch already exists.
            NotFoundError: The version does not exist.
            InvalidInputError: The name is not valid for a branch.
        """
        start = start_branch(self.handle.main, branch, reference, storage_options)
        return type(self)(start.uri, table=TableScan(start))

    def shallow_clone(
        self,
        target_path: str | os.PathLike[str],
        reference: Version | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> Self:
        """Create a table from a version of this table. It refers to the original files instead of copying them.

        Args:
            target_path: Path or URI of the new table.
            reference: The version. See `create_branch`.
            storage_options: Object store settings of the new table. Defaults to this table's settings.

        Returns:
            A dataset on the new table.

        Raises:
            AlreadyExistsError: The path already contains a table.
            NotFoundError: The version does not exist.
        """
        clone = copy_version(self.handle.main, target_path, reference, storage_options, shallow=True)
        return type(self)(os.fspath(target_path), table=TableScan(clone))

    def deep_clone(
        self,
        target_path: str | os.PathLike[str],
        reference: Version | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> Self:
        """Create a table from a version of this table, with copies of all files: see `shallow_clone`."""
        clone = copy_version(self.handle.main, target_path, reference, storage_options, shallow=False)
        return type(self)(os.fspath(target_path), table=TableScan(clone))

    @staticmethod
    def drop(
        base_uri: str | os.PathLike[str],
        storage_options: Mapping[str, str] | None = None,
        ignore_not_found: bool | None = None,
    ) -> None:
        """Delete a table with all its versions, branches and all other files in its directory.

        Raises:
            NotFoundError: The table does not exist, unless `ignore_not_found`. Directories without a manifest do not
                count as tables and are not deleted. If no manifest is readable, other files must not be there either.
        """
        drop_table(base_uri, storage_options, ignore_not_found)

    def migrate_manifest_paths_v2(self) -> None:
        """Rename the manifests of all versions so that the newest is found without a full listing.

        No other process may change the table meanwhile. If interrupted, it can be run again.
        """
        store = self.handle.main.store
        for name in all_versions(store):
            if name.naming == 1:
                store.copy(name.path, ManifestName(name.version, 2).path)
                store.sync()
                store.delete([name.path])
        location = self.handle.main.location
        self.handle.move_to(
            open_snapshot(location.uri, self.handle.main.version, storage_options=location.storage_options)
        )


def start_branch(
    snapshot: Snapshot,
    name: str,
    reference: Version | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Snapshot:
    """Create a branch: see `LanceDataset.create_branch`."""
    refs.check_branch_name(name)
    source = _committed(snapshot, reference)
    root = source.location.root
    if storage_options is not None:
        root = Location(root.uri, dict(storage_options))
    store = root.store()
    branches = refs.branch_names(store)
    if name in branches:
        raise AlreadyExistsError(f"branch {name!r} already exists", where=root.uri)
    parent = refs.read_branch(store, source.branch) if source.branch in branches else None
    try:
        branch = cloning.clone(source, root.at(refs.branch_uri(root.uri, name)), shallow=True, branch=name)
    except AlreadyExistsError:
        raise AlreadyExistsError(
            f"branch {name!r} is not completely created",
            where=root.uri,
            remedy="wait for the other writer, or remove the remains with branches.delete()",
        ) from None
    before = [] if parent is None else parent.branch_identifier
    identifier = [*before, (source.version, uuid4().hex)]
    about = refs.Branch(source.branch, identifier, source.version, int(time.time()), source.manifest.size)
    refs.write_branch(store, name, about, new=True)
    return branch


def copy_version(
    snapshot: Snapshot,
    target: str | os.PathLike[str],
    reference: Version | None,
    storage_options: Mapping[str, str] | None,
    *,
    shallow: bool,
) -> Snapshot:
    """Clone a version: see `LanceDataset.shallow_clone`."""
    source = _committed(snapshot, reference)
    options = snapshot.location.storage_options if storage_options is None else storage_options
    return cloning.clone(source, Location.of(target, options), shallow=shallow)


def _committed(snapshot: Snapshot, reference: Version | None) -> Snapshot:
    """Return the version to clone. Raises UnsupportedError for a version of an open transaction."""
    if snapshot.collect is not None:
        raise UnsupportedError(
            "a branch or clone needs a committed version", where=snapshot.uri, remedy="commit the transaction"
        )
    return snapshot if reference is None else snapshot.checkout(reference)


def drop_table(
    uri: str | os.PathLike[str],
    storage_options: Mapping[str, str] | None = None,
    ignore_not_found: bool | None = None,
) -> None:
    """Delete a table with all its versions, branches and all other files in its directory.

    Raises:
        NotFoundError: The table does not exist, unless `ignore_not_found`. Directories without a manifest do not count
            as tables and are not deleted. If no manifest is readable, other files must not be there either.
    """
    location = Location.of(uri, storage_options)
    store = location.store()
    is_empty = next(iter(store.walk()), None) is None
    if is_empty and ignore_not_found:
        return
    check_is_table(store)
    # Manifests are deleted last, so that an interrupted drop can be repeated.
    names = [entry.path for entry in store.walk()]
    branches = filter(refs.has_folder, refs.branch_names(store))
    store.delete([name for name in names if not name.startswith(paths.VERSIONS)])
    store.delete([name for name in names if name.startswith(paths.VERSIONS)])
    for branch in (None, *branches):
        forget_table(location.at(refs.branch_uri(location.uri, branch)).store())
    path = local_path(store.uri)
    if path is not None:
        shutil.rmtree(path, ignore_errors=True)


def refuse_both(version: object, asof: object, where: str) -> None:
    """Reject a version together with a time. Raises InvalidInputError."""
    if version is not None and asof is not None:
        raise InvalidInputError("version and asof exclude each other", where=where, expected="one of them")


def check_is_table(store: Store) -> None:
    """Check that a directory is a table that can be dropped. Raises NotFoundError."""
    try:
        newest = latest_version(store)
    except (NotFoundError, FormatError) as error:
        raise _not_dropped(store) from error
    try:
        load_manifest(store, newest.path)
    except (NotFoundError, FormatError) as error:
        others = {entry.path.partition("/")[0] for entry in store.walk()} - paths.ROOT_ENTRIES
        if others:
            raise _not_dropped(store, f"a damaged manifest, and {', '.join(sorted(others)[:3])}") from error


def _not_dropped(store: Store, found: str | None = None) -> NotFoundError:
    return NotFoundError(
        "not a Lance table, and nothing was dropped",
        where=store.uri,
        expected=f"a directory with manifests in {paths.VERSIONS}",
        found=found,
        remedy="check the path",
    )


def _update_bases(snapshot: Snapshot, bases: Sequence[Any]) -> commits.UpdateBases:
    ids = [getattr(base_path, "id", None) for base_path in bases]
    new = public_bases.new_bases(bases, snapshot.base_paths, "new_bases")
    return commits.UpdateBases(tuple(replace(base, id=i or 0) for base, i in zip(new, ids, strict=True)))
