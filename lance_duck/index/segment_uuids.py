"""UUIDs for segments that several processes write for one change. Their common prefix makes orphans easy to find.

_indices/{first half of the UUID of the change}{random second half}/…
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final
from uuid import UUID, uuid4

from lance_duck.snapshot import Snapshot
from lance_duck.wire import paths

_HALF: Final = 8
_HALF_OF_TEXT: Final = 18


def part_uuid(change: UUID) -> UUID:
    """Return a new UUID for a segment of a change."""
    return UUID(bytes=change.bytes[:_HALF] + uuid4().bytes[_HALF:])


def sweep_parts(snapshot: Snapshot, change: UUID, uuids: Iterable[UUID]) -> None:
    """Remove the files written for a change, except the files of the given segments. Never raises."""
    begin = f"{paths.INDICES}/{str(change)[:_HALF_OF_TEXT]}"
    stays = {paths.index_directory(uuid) for uuid in uuids}
    with suppress(Exception):  # cleanup removes the rest
        orphans = [path for path in snapshot.store.beginning(begin) if path.rpartition("/")[0] not in stays]
        if orphans:
            snapshot.store.delete(orphans)
