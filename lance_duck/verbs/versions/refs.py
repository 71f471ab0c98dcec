"""Tags and branches of a table, as users see and change them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

from lance_duck.arguments import checked_calls
from lance_duck.errors import InvalidInputError, NotFoundError, ReferencedError
from lance_duck.snapshot import Snapshot, Version, refs
from lance_duck.snapshot.publish import forget_table
from lance_duck.store import Store
from lance_duck.wire import paths

Ordered: TypeAlias = list[tuple[str, dict[str, Any]]]


@checked_calls
class Tags:
    """Names of versions of a table."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def list(self) -> dict[str, dict[str, Any]]:
        """Return all tags by name: {"version", "branch", "manifest_size", …}."""
        return {name: tag.as_dict() for name, tag in self._snapshot.tags().items()}

    def list_ordered(self, order: str | None = None) -> Ordered:
        """Return all tags as (name, what `list` says), by version: "desc", which is the default, or "asc"."""
        return _ordered(self.list(), "version", order)

    def get_version(self, tag: str) -> int:
        """Return the version that a tag names.

        Raises:
            NotFoundError: There is no such tag.
        """
        tags = self._snapshot.tags()
        if tag not in tags:
            raise NotFoundError(f"no tag {tag!r}", where=self._snapshot.uri, expected=", ".join(tags) or "none")
        return tags[tag].version

    def create(self, tag: str, reference: Version | None = None) -> None:
        """Give a version a name.

        Args:
            tag: A name that no tag has.
            reference: A number, another tag or (branch, number or tag or None for its latest); None: the version of
                this handle.

        Raises:
            AlreadyExistsError: There is a tag of this name.
            NotFoundError: There is no such version.
            InvalidInputError: The name cannot be one.
        """
        refs.check_tag_name(tag)
        now = datetime.now(UTC)
        refs.write_tag(self._store, tag, _tag_of(_resolve(self._snapshot, reference), now, now), new=True)

    def update(self, tag: str, reference: Version | None = None) -> None:
        """Let a tag name another version; see `create`.

        Raises:
            NotFoundError: There is no such tag or version.
        """
        old = refs.read_tag(self._store, tag)
        target = _resolve(self._snapshot, reference)
        new_tag = _tag_of(target, old.created_at, datetime.now(UTC))
        refs.write_tag(self._store, tag, replace(new_tag, metadata=old.metadata), new=False)

    def replace_metadata(self, tag: str, metadata: Mapping[str, str]) -> None:
        """Give a tag other metadata, in place of all that it has.

        Raises:
            NotFoundError: There is no such tag.
        """
        old = refs.read_tag(self._store, tag)
        refs.write_tag(self._store, tag, replace(old, metadata=texts(metadata, "metadata")), new=False)

    def delete(self, tag: str) -> None:
        """Take a name away; the version stays.

        Raises:
            NotFoundError: There is no such tag.
        """
        refs.read_tag(self._store, tag)
        store = self._store
        store.delete([paths.tag_file(tag)])
        store.sync()

    @property
    def _store(self) -> Store:
        return self._snapshot.location.root.store()


@checked_calls
class Branches:
    """Branches of a table; main is not among them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def list(self) -> dict[str, dict[str, Any]]:
        """Return all branches by name: {"parent_branch", "parent_version", "create_at", …}."""
        return {name: branch.as_dict() for name, branch in self._snapshot.branches().items()}

    def list_ordered(self, order: str | None = None) -> Ordered:
        """Return branches as (name, what `list` says), by parent version, "desc" by default, or "asc"."""
        return _ordered(self.list(), "parent_version", order)

    def delete(self, branch: str) -> None:
        """Delete a branch with all its versions, or what a writer that was stopped has left of one.

        Raises:
            NotFoundError: There is no such branch.
            ReferencedError: A tag names a version of it, or another branch was made from it.
        """
        if branch == refs.MAIN:
            raise InvalidInputError(f"{refs.MAIN!r} cannot be deleted", where="branch", remedy="drop the table")
        store = self._store
        refs.check_branch_name(branch)
        branches = refs.list_branches(store)
        others = tuple(f"{paths.branch_root(name)}/" for name in branches if name.startswith(f"{branch}/"))
        files = (entry.path for entry in store.walk(paths.branch_root(branch)))
        own = [path for path in files if not path.startswith(others)]
        if branch in branches or not own:
            _refuse_referenced(store, branch, refs.read_branch(store, branch), branches)
            store.delete([paths.branch_file(branch)])
        store.delete(own)
        store.sync()
        forget_table(self._snapshot.location.root.at(refs.branch_uri(store.uri, branch)).store())

    def replace_metadata(self, branch: str, metadata: Mapping[str, str]) -> None:
        """Give a branch other metadata, in place of all that it has.

        Raises:
            NotFoundError: There is no such branch.
        """
        old = refs.read_branch(self._store, branch)
        refs.write_branch(self._store, branch, replace(old, metadata=texts(metadata, "metadata")), new=False)

    @property
    def _store(self) -> Store:
        return self._snapshot.location.root.store()


def texts(mapping: Mapping[str, str], where: str) -> dict[str, str]:
    """Return the metadata as they are, when all keys and values are texts; InvalidInputError otherwise."""
    wrong = [entry for entry in mapping.items() if not all(isinstance(part, str) for part in entry)]
    if wrong:
        raise InvalidInputError("not a string", where=where, expected="strings by string", found=repr(wrong[0]))
    return dict(mapping)


def _resolve(snapshot: Snapshot, reference: Version | None) -> Snapshot:
    return snapshot if reference is None else snapshot.checkout(reference)


def _tag_of(target: Snapshot, created_at: datetime | None, updated_at: datetime) -> refs.Tag:
    return refs.Tag(target.branch, target.version, created_at, updated_at, target.manifest.size)


def _refuse_referenced(store: Store, name: str, branch: refs.Branch, branches: Mapping[str, refs.Branch]) -> None:
    tags = [tag for tag, reference in refs.list_tags(store).items() if reference.branch == name]
    size = len(branch.branch_identifier)
    below = [
        other
        for other, reference in branches.items()
        if other != name and size and reference.branch_identifier[:size] == branch.branch_identifier
    ]
    if tags or below:
        raise ReferencedError(
            f"branch {name!r} is still needed",
            where=store.uri,
            found=", ".join([f"tag {tag!r}" for tag in tags] + [f"branch {other!r}" for other in below]),
            remedy="delete those first",
        )


def _ordered(entries: Mapping[str, dict[str, Any]], key: str, order: str | None) -> Ordered:
    if order not in (None, "asc", "desc"):
        raise InvalidInputError("order", expected="asc or desc", found=repr(order))
    by_name = sorted(entries.items())
    return sorted(by_name, key=lambda entry: entry[1][key], reverse=order != "asc")
