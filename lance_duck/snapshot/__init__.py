"""Versions of a table: their list, their publication, tags and branches, and one version, immutable.

You hold: a URI and a version (number, tag, branch, time). You get: a Snapshot, the only door to reads: its schema,
fragments, deletion vectors, row ids, and data files, each opened once.
Where a store cannot put a file only if it is absent, an external manifest store claims versions (`publish`).
Never here: filters, indexes, and decisions about conflicts.
"""

from lance_duck.snapshot.location import Location
from lance_duck.snapshot.publish import CommitLock
from lance_duck.snapshot.snapshot import Snapshot, Version, open_snapshot

__all__ = ["CommitLock", "Location", "Snapshot", "Version", "open_snapshot"]
