"""The guard that prevents two changes from inserting the same key."""

from __future__ import annotations

from collections.abc import Sequence

from lance_duck.errors import RetryableError
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.rows.keys import KeyIndex
from lance_duck.wire.fragment import Fragment


class InsertGuard:
    """Searches versions newer than `base` for the keys that a merge inserts.

    Args:
        base: The version that the merge read.
        keys: Inserted keys. None if unknown, in which case any newer row may conflict.
        on: Key columns.
    """

    def __init__(self, base: Snapshot, keys: KeyIndex | None, on: Sequence[str]) -> None:
        self._keys = keys
        self._on = list(on)
        self._seen = {_identity(fragment) for fragment in base.fragments}

    def __call__(self, newer: Snapshot) -> None:
        """Search the fragments of a newer version that were not searched before.

        Raises:
            RetryableError: A fragment contains or may contain one of the keys.
        """
        fresh = [fragment for fragment in newer.fragments if _identity(fragment) not in self._seen]
        if not fresh:
            return
        if self._keys is None:
            raise _same_key(newer)
        table = TableScan(newer, self._keys.sieve([(name,) for name in self._on]))
        options = ScanOptions(columns=self._on, fragments=[fragment.id for fragment in fresh])
        for batch in table.reader(table.plan(options)):
            if (self._keys.find(batch.columns) >= 0).any():
                raise _same_key(newer)
        self._seen |= {_identity(fragment) for fragment in fresh}


def _same_key(newer: Snapshot) -> RetryableError:
    return RetryableError(
        "a concurrent commit inserted a row with the same key",
        where=f"{newer.uri} version {newer.version}",
        remedy="run the merge again",
    )


def _identity(fragment: Fragment) -> tuple[object, ...]:
    """Return a key that identifies a fragment's values."""
    return fragment.id, fragment.files, fragment.overlays
