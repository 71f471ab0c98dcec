"""Changes of names in a folder that are committed together with changes of tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lance_duck.commit.races import newest_of_same_table
from lance_duck.errors import AlreadyExistsError, CommitConflictError, NotFoundError, ReferencedError
from lance_duck.groups.entry import FolderMove
from lance_duck.groups.write import folder_moves
from lance_duck.namespaces.catalog_objects import VIEW
from lance_duck.namespaces.directory import DirectoryNamespace
from lance_duck.namespaces.draft import CatalogDraft
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.pending_changes import PreparedChange


@dataclass(frozen=True)
class SeenName:
    """A table that the transaction drops or renames, as it has seen it.

    Attributes:
        name: Its name before the transaction.
        location: Its location.
        version: The version that the transaction reads.
        is_dropped: Whether the transaction drops it.
    """

    name: str
    location: str
    version: Snapshot
    is_dropped: bool

    def check(self, namespace: DirectoryNamespace) -> None:
        """Check that the name still refers to the table, and that a dropped table has no newer version.

        Raises:
            CommitConflictError: Another writer has changed the name, or the table.
        """
        try:
            found = namespace.describe_table(self.name).location
            newest = newest_of_same_table(self.version).version if found == self.location else None
        except NotFoundError:
            newest = None
        if newest is None or (self.is_dropped and newest != self.version.version):
            raise CommitConflictError(
                "another writer has changed a table that the transaction drops or renames",
                where=self.name,
                expected=f"version {self.version.version} of {self.location}",
                found="another table, or none" if newest is None else f"version {newest}",
                remedy="nothing was committed: run the transaction again",
            )


@dataclass
class PendingNames:
    """The changes of names.

    Attributes:
        namespace: The folder.
        moves: See `GroupNames`. Computed by `check`.
        moved: Locations of root tables before and after each change. None drops the table.
        edits: Changes of the rows of `__manifest`, in order.
        seen: The tables that are dropped or renamed, by location.
        created: Names of new tables of the root.
    """

    namespace: DirectoryNamespace
    moves: Sequence[FolderMove] = ()
    moved: list[tuple[str, str | None]] = field(default_factory=list)
    edits: list[Callable[[CatalogDraft], object]] = field(default_factory=list)
    seen: dict[str, SeenName] = field(default_factory=dict)
    created: set[str] = field(default_factory=set)
    _after: CatalogDraft | None = None

    def __bool__(self) -> bool:
        return bool(self.moved or self.edits)

    def see(self, name: str, version: Snapshot, location: str, *, is_dropped: bool) -> None:
        """Remember a table before it is dropped or renamed."""
        known = self.seen.get(location)
        name = name if known is None else known.name
        self.seen[location] = SeenName(name, location, version, is_dropped)

    def add(self, edit: Callable[[CatalogDraft], object]) -> None:
        """Add a change of rows. Raises the error of the change if it does not fit the names of now."""
        self.edits.append(edit)
        try:
            self.namespace.check_catalog(self._edit, tuple)
        except BaseException:
            self.edits.pop()
            raise

    def check(self) -> None:
        """See `GroupNames.check`."""
        for table in self.seen.values():
            table.check(self.namespace)
        views = {key.name for key in self.namespace.catalog().objects if key.kind == VIEW}
        for name in self.created:
            if (name,) in views:
                raise CommitConflictError("another writer has created a view of this name", where=name)
        self.moves = folder_moves(self.namespace.root, self.moved)

    def prepare(self) -> PreparedChange | None:
        """See `GroupNames.prepare`."""
        if not self.edits:
            return None
        try:
            change, self._after = self.namespace.prepare_catalog(self._edit, tuple)
        except (AlreadyExistsError, NotFoundError, ReferencedError) as error:
            raise CommitConflictError(
                "another writer has changed the same names", where=error.where, found=error.what
            ) from error
        for table in self.seen.values():  # the names may have changed since `check`
            table.check(self.namespace)
        return change

    def _edit(self, draft: CatalogDraft) -> None:
        for each in self.edits:
            each(draft)

    def keep_files(self) -> None:
        """See `GroupNames.keep_files`. Only a refused commit removes the files of new tables."""

    def remove_dropped(self) -> None:
        """Remove the files of dropped tables."""
        if self._after is not None:
            self.namespace.remove_dropped(self._after)
