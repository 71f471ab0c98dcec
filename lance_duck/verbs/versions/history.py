"""The versions of a table, their transactions, and their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lance_duck import lazy
from lance_duck.arguments import checked_calls
from lance_duck.markup import rows_html, size_text
from lance_duck.snapshot.versions import describe_version
from lance_duck.verbs.handle import TableMethods

if TYPE_CHECKING:
    from lance_duck.verbs.public import bases, lance_operation, operation_convert
    from lance_duck.verbs.versions import refs
else:
    bases, lance_operation, operation_convert = lazy.modules(
        globals(), "lance_duck.verbs.public", "bases", "lance_operation", "operation_convert"
    )
    refs = lazy.modules(globals(), "lance_duck.verbs.versions", "refs")


class VersionList(list[dict[str, Any]]):
    """The versions of a table. Notebooks display it as a table."""

    def _repr_html_(self) -> str:
        """Return an HTML table with one row per version, newest first."""
        counts = ("total_rows", "total_fragments")
        rows = (
            (
                str(entry["version"]),
                f"{entry['timestamp']:%Y-%m-%d %H:%M:%S}",
                *(_number(entry["metadata"].get(name)) for name in counts),
                size_text(int(entry["metadata"].get("total_files_size", 0))),
            )
            for entry in reversed(self)
        )
        return rows_html(("version", "committed, local time", "rows", "fragments", "size"), rows)


@checked_calls
class History(TableMethods):
    """Methods about the versions of a table."""

    @property
    def latest_version(self) -> int:
        """Number of the newest version."""
        return self.handle.snapshot.latest_version()

    def versions(self) -> list[dict[str, Any]]:
        """Return all versions, oldest first: {"version", "timestamp", "metadata"}."""
        return VersionList(self.handle.snapshot.versions())

    def get_version(self) -> dict[str, Any]:
        """Return the entry of this version in `versions`."""
        return describe_version(self.handle.snapshot.manifest)

    def version_refs(self) -> list[dict[str, int]]:
        """Return all version numbers as {"version"}, oldest first, without reading the manifests."""
        return [{"version": number} for number in self.handle.snapshot.version_numbers()]

    def base_paths(self) -> dict[int, bases.DatasetBasePath]:
        """Return the table's base paths by id: locations of files outside the table root."""
        return bases.known_bases(self.handle.snapshot.base_paths)

    @property
    def tags(self) -> refs.Tags:
        """Tags of the table. Each names a version."""
        return refs.Tags(self.handle.snapshot)

    @property
    def branches(self) -> refs.Branches:
        """Branches of the table."""
        return refs.Branches(self.handle.snapshot)

    def read_transaction(self, version: int) -> lance_operation.Transaction | None:
        """Return the transaction of a version, or None if it was not kept.

        Raises:
            NotFoundError: The version does not exist.
        """
        transaction = self.handle.snapshot.checkout(version).transaction()
        return None if transaction is None else operation_convert.from_transaction(transaction)

    def get_transactions(self, recent_transactions: int = 10) -> list[lance_operation.Transaction | None]:
        """Return the newest transactions up to this version, newest first.

        An entry is None if its transaction was not kept.
        """
        current = self.handle.snapshot.version
        numbers = [n for n in self.handle.snapshot.version_numbers() if n <= current]
        return [self.read_transaction(n) for n in reversed(numbers[-recent_transactions:])]


def _number(text: str | None) -> str:
    return "" if text is None else f"{int(text):,}"
