"""Files that a change has written but not committed."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from types import TracebackType
from uuid import UUID

from lance_duck.commit import REFUSALS, commit
from lance_duck.commit.committer import DEFAULT_RETRIES, Amend, Guard
from lance_duck.commit.operations import Operation
from lance_duck.commit.rebase import Affected
from lance_duck.errors import LanceDuckError
from lance_duck.snapshot import Snapshot
from lance_duck.wire import flags, paths
from lance_duck.wire.fragment import Fragment
from lance_duck.write.files import discard_fragments
from lance_duck.write.options import Base


class UncommittedFiles:
    """Uncommitted files of a change. A context manager that deletes them if the change fails.

    Once `commit` has begun, the files are deleted only after a lost race or a rejection. After other errors, it is
    unknown whether the commit succeeded.

    Args:
        snapshot: The version that is changed.
        bases: Locations of new data files. None is the table root.
        transaction: Name prefix of data files that other processes write (`WriteOptions.transaction`). Files with this
            prefix that are not in a recorded fragment are always deleted, because abandoned attempts left them.

    Attributes:
        snapshot: The version that is changed.

    Raises:
        UnsupportedError: The table has an unknown feature flag and must not be written.
    """

    def __init__(self, snapshot: Snapshot, bases: Sequence[Base | None] = (), transaction: UUID | None = None) -> None:
        flags.check_writable(snapshot.manifest.writer_flags, snapshot.uri)
        self.snapshot = snapshot
        self._store = snapshot.store
        self._bases = bases
        self._files: list[str] = []
        self._fragments: list[Fragment] = []
        self._committing = False
        self.transaction = transaction

    def note(self, path: str) -> None:
        """Record a file by its path relative to the table root."""
        self._files.append(path)

    def note_fragments(self, fragments: Sequence[Fragment]) -> None:
        """Record the data files of new fragments."""
        self._fragments.extend(fragments)

    def commit_elsewhere(self) -> None:
        """Record that a commit begins which `commit` does not run."""
        self._committing = True

    def commit(
        self,
        operation: Operation,
        *,
        affected: Affected | None = None,
        guard: Guard | None = None,
        amend: Amend | None = None,
        properties: Mapping[str, str] | None = None,
        retries: int = DEFAULT_RETRIES,
    ) -> Snapshot:
        """Commit the change, and return the new version: see `commit.committer.commit`.

        Raises:
            RetryableError: Another change was committed first.
        """
        self._committing = True
        return commit(
            self.snapshot,
            operation,
            affected=affected,
            guard=guard,
            amend=amend,
            properties=properties,
            retries=retries,
        )

    def __enter__(self) -> UncommittedFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and self._committing and not isinstance(error, REFUSALS):
            return
        if error is not None:
            discard_fragments(self._store, self._fragments, self._bases)
            with contextlib.suppress(LanceDuckError):
                self._store.delete(self._files)
        if self.transaction is not None:
            with contextlib.suppress(LanceDuckError):
                self._sweep(self.transaction, self._fragments if error is None else ())

    def _sweep(self, transaction: UUID, fragments: Sequence[Fragment]) -> None:
        stems = {paths.data_stem(file.path) for fragment in fragments for file in fragment.files}
        files = self._store.beginning(paths.transaction_data(transaction))
        if orphans := [path for path in files if paths.data_stem(path) not in stems]:
            self._store.delete(orphans)
