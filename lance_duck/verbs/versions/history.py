"""Which versions of a table there are, what each changed, and the names they have."""

from __future__ import annotations

from typing import Any

from lance_duck.arguments import checked_calls
from lance_duck.snapshot.versions import describe
from lance_duck.verbs.handle import TableMethods
from lance_duck.verbs.public.bases import DatasetBasePath, known_bases
from lance_duck.verbs.public.lance_operation import Transaction
from lance_duck.verbs.public.operation_convert import from_transaction
from lance_duck.verbs.versions.refs import Branches, Tags


@checked_calls
class History(TableMethods):
    """The versions of a table, for a handle on one of them."""

    @property
    def latest_version(self) -> int:
        """Number of the newest version there is now."""
        return self.handle.snapshot.latest_version()

    def versions(self) -> list[dict[str, Any]]:
        """Return all versions, oldest first: {"version", "timestamp", "metadata"}."""
        return self.handle.snapshot.versions()

    def get_version(self) -> dict[str, Any]:
        """Return this version as `versions` lists it."""
        return describe(self.handle.snapshot.manifest)

    def version_refs(self) -> list[dict[str, int]]:
        """Return the numbers of all versions, oldest first, without reading them: {"version"}."""
        return [{"version": number} for number in self.handle.snapshot.version_numbers()]

    def base_paths(self) -> dict[int, DatasetBasePath]:
        """Return the other places where files of the table may lie, by id."""
        return known_bases(self.handle.snapshot.base_paths)

    @property
    def tags(self) -> Tags:
        """Names of versions."""
        return Tags(self.handle.snapshot)

    @property
    def branches(self) -> Branches:
        """Branches of the table."""
        return Branches(self.handle.snapshot)

    def read_transaction(self, version: int) -> Transaction | None:
        """Return what a version changed; None when it was not kept.

        Raises:
            NotFoundError: There is no such version.
        """
        transaction = self.handle.snapshot.checkout(version).transaction()
        return None if transaction is None else from_transaction(transaction)

    def get_transactions(self, recent_transactions: int = 10) -> list[Transaction | None]:
        """Return what this version and those before it changed, newest first."""
        current = self.handle.snapshot.version
        numbers = [n for n in self.handle.snapshot.version_numbers() if n <= current]
        return [self.read_transaction(n) for n in reversed(numbers[-recent_transactions:])]
