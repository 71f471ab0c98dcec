"""The procedure that restores a version.

    CALL lance_restore(table, version [, message => text])

It makes the table what it was in a version, a number or a tag, as a new version; ends in `LanceDataset.restore`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from lance_duck.duck.changes.procedure import Procedure
from lance_duck.duck.changes.result import ChangeResult
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.versions.references import open_version
from lance_duck.errors import InvalidInputError


class RestoreProcedure(Procedure):
    """A CALL that restores a version."""

    name: ClassVar[str] = "restore"
    parameters: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"table": "VARCHAR", "version": "VARCHAR", "message": "VARCHAR"}
    )
    required: ClassVar[int] = 2

    def run(self, session: ChangeSession) -> ChangeResult:
        """Restore the version, and return the number of the new one.

        Raises:
            NotFoundError: There is no such version.
            InvalidInputError: It is of another branch, or NULL.
            UnsupportedError: A transaction is open.
        """
        values = self.values(session)
        session.refuse_in_transaction(f"CALL {self.subject}")
        handle = self.table(session, values)
        if values["version"] is None:
            raise InvalidInputError(f"{self.subject} without a version", expected="a number or a tag", found="NULL")
        restored, newest = open_version(handle, values["version"]), handle.current().handle.snapshot
        if restored.handle.snapshot.branch != newest.branch:
            raise InvalidInputError(
                "a version of another branch",
                where=self.subject,
                expected=f"one of {newest.branch or 'main'}",
                found=values["version"],
            )
        restored.restore(commit_message=values["message"])
        handle.move_to(restored.handle.snapshot)
        return ChangeResult(f"SELECT {int(restored.version)}::BIGINT AS version")
