"""Tags and branches of a table, as users see and change them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from lance_duck.errors import InvalidInputError, NotFoundError
from lance_duck.snapshot import Snapshot

Ordered: TypeAlias = list[tuple[str, dict[str, Any]]]


class Tags:
    """Names of versions of a table."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def list(self) -> dict[str, dict[str, Any]]:
        """All tags by name: {"version", "branch", "manifest_size", …}."""
        return {name: tag.as_dict() for name, tag in self._snapshot.tags().items()}

    def list_ordered(self, order: str | None = None) -> Ordered:
        """All tags as (name, what `list` says), by version: "desc", which is the default, or "asc"."""
        return _ordered(self.list(), "version", order)

    def get_version(self, tag: str) -> int:
        """Version that a tag names.

        Raises:
            NotFoundError: There is no such tag.
        """
        found = self._snapshot.tags()
        if tag not in found:
            raise NotFoundError(f"no tag {tag!r}", where=self._snapshot.uri, expected=", ".join(found) or "none")
        return found[tag].version


class Branches:
    """Branches of a table; main is not among them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def list(self) -> dict[str, dict[str, Any]]:
        """All branches by name: {"parent_branch", "parent_version", "create_at", …}."""
        return {name: branch.as_dict() for name, branch in self._snapshot.branches().items()}

    def list_ordered(self, order: str | None = None) -> Ordered:
        """All branches as (name, what `list` says), by parent version: "desc", which is the default, or "asc"."""
        return _ordered(self.list(), "parent_version", order)


def _ordered(found: Mapping[str, dict[str, Any]], key: str, order: str | None) -> Ordered:
    if order not in (None, "asc", "desc"):
        raise InvalidInputError("order", expected="asc or desc", found=repr(order))
    by_name = sorted(found.items())
    return sorted(by_name, key=lambda entry: entry[1][key], reverse=order != "asc")
