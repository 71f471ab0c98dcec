"""Changes of names that a transaction commits together with changes of tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lance_duck.duck.databases.drafts import DraftNames, database_folder
from lance_duck.errors import UnsupportedError
from lance_duck.groups.entry import FolderMove
from lance_duck.groups.write import folder_moves
from lance_duck.namespaces import CatalogDraft, DirectoryNamespace
from lance_duck.verbs.pending_changes import PreparedChange


@dataclass
class NamesOfGroup:
    """The changes of names of a transaction that also changes tables, or makes several steps.

    Attributes:
        drafts: The changes.
        namespace: The folder.
        moves: See `GroupNames`. Computed by `check`.
    """

    drafts: DraftNames
    namespace: DirectoryNamespace
    moves: Sequence[FolderMove] = ()
    _after: CatalogDraft | None = None

    @classmethod
    def of(cls, drafts: DraftNames) -> NamesOfGroup:
        """Return the changes of a transaction. Raises UnsupportedError for a REST service."""
        folder = database_folder(drafts.changes[0].schema)
        if not isinstance(folder.namespace, DirectoryNamespace):
            raise UnsupportedError(
                "names of a REST service cannot be changed together with other changes",
                where=folder.uri,
                remedy="COMMIT or ROLLBACK first",
            )
        return cls(drafts, folder.namespace)

    def check(self) -> None:
        """See `GroupNames.check`."""
        self.drafts.check()
        moved = [change.move for change in self.drafts.changes if change.move is not None]
        self.moves = folder_moves(self.namespace.root, moved)

    def prepare(self) -> PreparedChange | None:
        """See `GroupNames.prepare`."""
        change, self._after = self.drafts.prepare(self.namespace)
        return change

    def keep_files(self) -> None:
        """See `GroupNames.keep_files`."""
        self.drafts.keeps_files = True

    def remove_dropped(self) -> None:
        """Remove the files of dropped tables, after the group was published."""
        if self._after is not None:
            self.namespace.remove_dropped(self._after)
