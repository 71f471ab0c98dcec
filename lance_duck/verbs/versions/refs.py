"""Tags and branches of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote

import pyarrow as pa

from lance_duck import lazy
from lance_duck.arguments import checked_calls
from lance_duck.errors import CorruptError, InvalidInputError, NotFoundError, ReferencedError, UnsupportedError
from lance_duck.snapshot import Snapshot, Version, refs
from lance_duck.snapshot.publish import forget_table
from lance_duck.snapshot.versions import load_all
from lance_duck.store import Store
from lance_duck.wire import paths

if TYPE_CHECKING:
    from lance_duck.verbs.versions import branch_diff
else:
    branch_diff = lazy.modules(globals(), "lance_duck.verbs.versions", "branch_diff")

Ordered: TypeAlias = list[tuple[str, dict[str, Any]]]


@checked_calls
class Tags:
    """Tags of a table. Each tag names a version."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def list(self) -> dict[str, dict[str, Any]]:
        """Map each tag name to its description: {"version", "branch", "manifest_size", …}.

        Raises:
            CorruptError: A tag is damaged; `delete` and `update` still work.
        """
        return {name: tag.as_dict() for name, tag in self._snapshot.tags().items()}

    def list_ordered(self, order: str | None = None) -> Ordered:
        """Return (name, description) pairs of all tags, ordered by version: "desc" (default) or "asc"."""
        return _ordered(self.list(), "version", order)

    def get_version(self, tag: str) -> int:
        """Return the version of a tag.

        Raises:
            NotFoundError: The tag does not exist.
        """
        return refs.read_tag(self._store, tag).version

    def create(self, tag: str, reference: Version | None = None) -> None:
        """Create a tag.

        Args:
            tag: Name of the tag. It must be unused.
            reference: The version: a number, another tag, or (branch, number or tag). (branch, None) is the latest
                version of the branch. Defaults to this handle's version.

        Raises:
            AlreadyExistsError: The tag already exists.
            NotFoundError: The version does not exist.
            InvalidInputError: The name is not valid for a tag.
        """
        refs.check_tag_name(tag)
        now = datetime.now(UTC)
        refs.write_tag(self._store, tag, _tag_of(_resolve(self._snapshot, reference), now, now), new=True)

    def update(self, tag: str, reference: Version | None = None) -> None:
        """Move a tag to another version: see `create`.

        A damaged tag is rewritten if `reference` is given. Its metadata is lost.

        Raises:
            NotFoundError: The tag or the version does not exist.
            CorruptError: The tag is damaged, and `reference` is not given.
        """
        now = datetime.now(UTC)
        try:
            old = refs.read_tag(self._store, tag)
        except CorruptError:
            if reference is None:
                raise
            old = refs.Tag(None, 0, created_at=now)
        new_tag = _tag_of(_resolve(self._snapshot, reference), old.created_at, now)
        refs.write_tag(self._store, tag, replace(new_tag, metadata=old.metadata), new=False)

    def replace_metadata(self, tag: str, metadata: Mapping[str, str]) -> None:
        """Replace all metadata of a tag.

        Raises:
            NotFoundError: The tag does not exist.
        """
        old = refs.read_tag(self._store, tag)
        refs.write_tag(self._store, tag, replace(old, metadata=texts(metadata, "metadata")), new=False)

    def delete(self, tag: str) -> None:
        """Delete a tag, even a damaged one. The version is kept.

        Raises:
            NotFoundError: The tag does not exist.
        """
        store = self._store
        store.delete([refs.find(store, refs.TAG, tag)])
        store.sync()

    @property
    def _store(self) -> Store:
        return self._snapshot.location.root.store()


@checked_calls
class Branches:
    """Branches of a table, except main."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def list(self) -> dict[str, dict[str, Any]]:
        """Map each branch name to its description: {"parent_branch", "parent_version", "create_at", …}.

        Raises:
            CorruptError: The description of a branch is damaged; `delete` still works.
        """
        return {name: branch.as_dict() for name, branch in self._snapshot.branches().items()}

    def diff(self, first: str, second: str, on: str | Sequence[str] | None = None) -> pa.Table:
        """Return the rows that differ between the newest versions of two branches.

        Without `on`, rows are compared by stable row id: a row is the same if both branches have it from the version
        in which they diverged. With `on`, rows with equal keys are the same, in tables without stable row ids too.
        Only columns that both branches have are compared.

        Args:
            first: Name of a branch, or "main".
            second: Name of another branch.
            on: Columns that identify a row, without nulls and repeated values. One name or several.

        Returns:
            Columns `change_type`, `_rowid` (uint64) and those of `second`. The change is "delete" for rows of `first`
            only, "insert" for rows of `second` only, and "update_preimage" and "update_postimage" for the row of
            `first` and the row of `second` if values differ.

        Raises:
            NotFoundError: A branch, or the version in which they diverged, does not exist.
            UnsupportedError: There is neither a key nor stable row ids, types differ, or columns contain blobs.
            DataMismatchError: A key is null or repeated.
        """
        return branch_diff.branch_diff(self._snapshot, first, second, on)

    def list_ordered(self, order: str | None = None) -> Ordered:
        """Return (name, description) pairs of all branches, ordered by parent version: "desc" (default) or "asc"."""
        return _ordered(self.list(), "parent_version", order)

    def delete(self, branch: str) -> None:
        """Delete a branch with all its versions, or the remains of an interrupted branch creation.

        A branch with a damaged description can also be deleted. Other damaged branches count as its children if their
        versions refer to it.

        Raises:
            NotFoundError: The branch does not exist.
            ReferencedError: A tag names a version of the branch, or a different branch was created from it.
            CorruptError: A damaged tag may name a version of the branch.
        """
        if branch == refs.MAIN:
            raise InvalidInputError(
                f"{refs.MAIN!r} cannot be deleted", where="branch", remedy="to remove everything, drop the table"
            )
        store = self._store
        branches = refs.branch_names(store)
        own = _own_files(store, branch, branches)
        if branch in branches or not own:
            description = refs.find(store, refs.BRANCH, branch)
            self._refuse_referenced(branch, branches)
            store.delete([description])
        store.delete(own)
        store.sync()
        if own:
            forget_table(self._at(branch))

    def replace_metadata(self, branch: str, metadata: Mapping[str, str]) -> None:
        """Replace all metadata of a branch.

        Raises:
            NotFoundError: The branch does not exist.
        """
        old = refs.read_branch(self._store, branch)
        refs.write_branch(self._store, branch, replace(old, metadata=texts(metadata, "metadata")), new=False)

    @property
    def _store(self) -> Store:
        return self._snapshot.location.root.store()

    def _at(self, branch: str) -> Store:
        root = self._snapshot.location.root
        return root.at(refs.branch_uri(root.uri, branch)).store()

    def _refuse_referenced(self, branch: str, branches: Sequence[str]) -> None:
        tags = [tag for tag, reference in refs.list_tags(self._store).items() if reference.branch == branch]
        mine = self._read(branch)
        below = [other for other in branches if other != branch and self._is_made_from(other, branch, mine)]
        if tags or below:
            raise ReferencedError(
                f"branch {branch!r} is still needed",
                where=self._store.uri,
                found=", ".join([f"tag {tag!r}" for tag in tags] + [f"branch {other!r}" for other in below]),
                remedy="delete these branches first",
            )

    def _is_made_from(self, other: str, branch: str, mine: refs.Branch | None) -> bool:
        """Return whether `other` descends from `branch`. `mine` is None for a damaged `branch`."""
        reference = self._read(other)
        if reference is None:
            return refs.has_folder(other) and _borrows(self._at(other), branch)
        if mine is None:
            return reference.parent_branch == branch
        size = len(mine.branch_identifier)
        return size > 0 and reference.branch_identifier[:size] == mine.branch_identifier

    def _read(self, branch: str) -> refs.Branch | None:
        try:
            return refs.read_branch(self._store, branch)
        except CorruptError:
            return None


def texts(mapping: Mapping[str, str], where: str) -> dict[str, str]:
    """Validate that all keys and values are strings. Raises InvalidInputError otherwise."""
    wrong = [entry for entry in mapping.items() if not all(isinstance(part, str) for part in entry)]
    if wrong:
        raise InvalidInputError("not a string", where=where, expected="strings by string", found=repr(wrong[0]))
    return dict(mapping)


def _resolve(snapshot: Snapshot, reference: Version | None) -> Snapshot:
    if snapshot.collect is not None:
        raise UnsupportedError("a tag needs a committed version", where=snapshot.uri, remedy="commit the transaction")
    return snapshot if reference is None else snapshot.checkout(reference)


def _tag_of(target: Snapshot, created_at: datetime | None, updated_at: datetime) -> refs.Tag:
    return refs.Tag(target.branch, target.version, created_at, updated_at, target.manifest.size)


def _own_files(store: Store, branch: str, branches: Sequence[str]) -> list[str]:
    """Return the files of a branch or its remains, excluding nested and enclosing branches."""
    if not refs.has_folder(branch):
        return []
    root = f"{paths.branch_root(branch)}/"
    others = tuple(f"{paths.branch_root(name)}/" for name in branches if name.startswith(f"{branch}/"))
    files = [entry.path for entry in store.walk(root[:-1]) if not entry.path.startswith(others)]
    if paths.FOLDERS.isdisjoint(branch.split("/")):
        return files
    # The folder of branch "dev/data" also holds data files of "dev".
    return [path for path in files if path.removeprefix(root).partition("/")[0] in paths.FOLDERS]


def _borrows(store: Store, branch: str) -> bool:
    """Return whether a version in a store refers to files of a branch."""
    folder = f"/{paths.branch_root(branch)}"
    try:
        manifests = load_all(store)
    except NotFoundError:
        return False
    places = (base.path for manifest in manifests for base in manifest.base_paths.values())
    return any(unquote(place).rstrip("/").endswith(folder) for place in places)


def _ordered(entries: Mapping[str, dict[str, Any]], key: str, order: str | None) -> Ordered:
    if order not in (None, "asc", "desc"):
        raise InvalidInputError("order", expected="asc or desc", found=repr(order))
    by_name = sorted(entries.items())
    return sorted(by_name, key=lambda entry: entry[1][key], reverse=order != "asc")
