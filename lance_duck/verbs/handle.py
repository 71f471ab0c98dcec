"""What a change of a table needs of the handle that it is called on."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

from lance_duck.snapshot import Snapshot


class Handle:
    """A handle on one version of a table that can move to another; base of the mixins that change tables."""

    @property
    @abstractmethod
    def _snapshot(self) -> Snapshot:
        """The version that the handle is on."""

    @property
    def _to_change(self) -> Snapshot:
        """The version that a change of rows starts from; refused on a handle that sees a part of the rows."""
        return self._snapshot

    @abstractmethod
    def _move_to(self, snapshot: Snapshot) -> None:
        """Go to another version; other handles stay where they are."""

    @classmethod
    @abstractmethod
    def _on(cls, snapshot: Snapshot, uri: str | None = None) -> Self:
        """Return another handle, on a version; `uri` is how the user calls its place."""
