"""Versions of a table: list, publish, tag, branch, and open them.

You hold: a URI and a version (number, tag, branch, time). You get: a Snapshot. All reads go
through it: schema, fragments, deletion vectors, row ids, and data files, which are opened once.
If a store does not support put-if-absent, writers claim versions in an external manifest store (`publish`).
Never here: filters, indexes, and conflict decisions.
"""

from lance_duck.snapshot.location import Location
from lance_duck.snapshot.publish import CommitLock
from lance_duck.snapshot.snapshot import Snapshot, Version, open_snapshot

__all__ = ["CommitLock", "Location", "Snapshot", "Version", "open_snapshot"]
