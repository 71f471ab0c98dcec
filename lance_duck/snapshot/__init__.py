"""Versions of a table: their list, publication, tags and branches, and single immutable versions.

You hold: a URI and a version (number, tag, branch, time). You get: a Snapshot, through which all reads go: schema,
fragments, deletion vectors, row ids, and data files, each opened once.
If a store does not support put-if-absent, an external manifest store claims versions (`publish`).
Never here: filters, indexes, and conflict decisions.
"""

from lance_duck.snapshot.location import Location
from lance_duck.snapshot.publish import CommitLock
from lance_duck.snapshot.snapshot import Snapshot, Version, open_snapshot

__all__ = ["CommitLock", "Location", "Snapshot", "Version", "open_snapshot"]
