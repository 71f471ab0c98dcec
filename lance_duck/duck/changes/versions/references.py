"""Tags and branches, by the methods of `LanceDataset` with these names.

    CALL lance_create_tag(table, tag [, version => …]) | lance_update_tag(…) | lance_delete_tag(table, tag)
    CALL lance_create_branch(table, branch [, version => …]) | lance_delete_branch(table, branch)

A version is a number, a tag, a branch or 'branch:number'; without it the newest is meant.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Final

from lance_duck.dataset import LanceDataset
from lance_duck.duck.changes.procedure import Procedure
from lance_duck.duck.changes.result import ChangeResult, nothing
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.tables.handle import TableHandle, VersionChoice
from lance_duck.errors import InvalidInputError
from lance_duck.snapshot.refs import MAIN

_TAG: Final = MappingProxyType({"table": "VARCHAR", "tag": "VARCHAR"})
_TAGGED: Final = MappingProxyType({**_TAG, "version": "VARCHAR"})
_BRANCH: Final = MappingProxyType({"table": "VARCHAR", "branch": "VARCHAR"})
_BRANCHED: Final = MappingProxyType({**_BRANCH, "version": "VARCHAR"})


def open_version(handle: TableHandle, version: str | None) -> LanceDataset:
    """Open a version of a table, or the newest for None.

    Raises:
        NotFoundError: There is no such version.
    """
    if version is None:
        return handle.current()
    return VersionChoice(version).open(handle.uri, handle.storage_options)


class _ReferenceProcedure(Procedure):
    """A CALL about a tag or a branch, which is named by the second argument."""

    required: ClassVar[int] = 2

    def run(self, session: ChangeSession) -> ChangeResult:
        """Carry the procedure out.

        Raises:
            NotFoundError: There is no such version, tag or branch.
            AlreadyExistsError: There is a tag or branch of this name.
            ReferencedError: Something needs the branch.
            InvalidInputError: The name cannot be one.
            UnsupportedError: A transaction is open.
        """
        values = self.values(session)
        session.refuse_in_transaction(f"CALL {self.subject}")
        kind = list(self.parameters)[1]
        if values[kind] is None:
            raise InvalidInputError(f"{self.subject} without a {kind}", found="NULL")
        self.change(open_version(self.table(session, values), values.get("version")), values[kind])
        return nothing()

    @abstractmethod
    def change(self, dataset: LanceDataset, name: str) -> None:
        """Change the tag or branch.

        Args:
            dataset: The version.
            name: Name of the tag or branch.
        """


class CreateTag(_ReferenceProcedure):
    """Gives a version a name."""

    name: ClassVar[str] = "create_tag"
    parameters: ClassVar[Mapping[str, str]] = _TAGGED

    def change(self, dataset: LanceDataset, name: str) -> None:
        """See `Tags.create`."""
        dataset.tags.create(name, _reference(dataset))


class UpdateTag(_ReferenceProcedure):
    """Lets a tag name another version."""

    name: ClassVar[str] = "update_tag"
    parameters: ClassVar[Mapping[str, str]] = _TAGGED

    def change(self, dataset: LanceDataset, name: str) -> None:
        """See `Tags.update`."""
        dataset.tags.update(name, _reference(dataset))


class DeleteTag(_ReferenceProcedure):
    """Takes a name away."""

    name: ClassVar[str] = "delete_tag"
    parameters: ClassVar[Mapping[str, str]] = _TAG

    def change(self, dataset: LanceDataset, name: str) -> None:
        """See `Tags.delete`."""
        dataset.tags.delete(name)


class CreateBranch(_ReferenceProcedure):
    """Begins a branch."""

    name: ClassVar[str] = "create_branch"
    parameters: ClassVar[Mapping[str, str]] = _BRANCHED

    def change(self, dataset: LanceDataset, name: str) -> None:
        """See `LanceDataset.create_branch`."""
        dataset.create_branch(name, _reference(dataset))


class DeleteBranch(_ReferenceProcedure):
    """Deletes a branch with its versions."""

    name: ClassVar[str] = "delete_branch"
    parameters: ClassVar[Mapping[str, str]] = _BRANCH

    def change(self, dataset: LanceDataset, name: str) -> None:
        """See `Branches.delete`."""
        dataset.branches.delete(name)


def _reference(dataset: LanceDataset) -> tuple[str, int]:
    return dataset.handle.snapshot.branch or MAIN, dataset.version


PROCEDURES: Final = (CreateTag, UpdateTag, DeleteTag, CreateBranch, DeleteBranch)
