"""Staged files of unfinished commits of several tables. `groups.log` describes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from lance_duck.errors import LanceDuckError
from lance_duck.snapshot import Snapshot
from lance_duck.wire.fragment import Fragment, fragment_from_proto
from lance_duck.wire.paths import STAGED_GROUPS
from lance_duck.wire.pb import transaction_pb2

_FRAGMENTS = ("fragments", "updated_fragments", "new_fragments")


@dataclass(frozen=True)
class StagedChanges:
    """What the staged changes of the tables of a folder need.

    Attributes:
        fragments: Fragments with files that no version refers to yet.
        versions: Versions that the changes follow.
    """

    fragments: list[Fragment]
    versions: set[int]

    @classmethod
    def beside(cls, snapshot: Snapshot) -> StagedChanges:
        """Return the staged changes in the folder that contains a table."""
        fragments: list[Fragment] = []
        found: set[int] = set()
        for message in _transactions(snapshot):
            found.add(message.read_version)
            operation = getattr(message, message.WhichOneof("operation") or "", None)
            for name in _FRAGMENTS:
                for proto in getattr(operation, name, ()):
                    with suppress(LanceDuckError):
                        fragments.append(fragment_from_proto(proto, STAGED_GROUPS))
        return cls(fragments, found)


def _transactions(snapshot: Snapshot) -> Iterator[transaction_pb2.Transaction]:
    root = snapshot.location.root
    with suppress(LanceDuckError):
        store = root.at(root.uri.rstrip("/").rpartition("/")[0]).store()
        for entry in store.walk(STAGED_GROUPS):
            if entry.path.endswith(".txn") and entry.path.count("/") == STAGED_GROUPS.count("/") + 2:
                with suppress(LanceDuckError, DecodeError):
                    yield transaction_pb2.Transaction.FromString(store.get(entry.path))
