"""The guard that prevents two changes from inserting the same key."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lance_duck.errors import LanceDuckError, RetryableError
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
        found: Returns the error for a version and a row of the source whose key the version contains. Defaults to a
            RetryableError.
    """

    def __init__(
        self,
        base: Snapshot,
        keys: KeyIndex | None,
        on: Sequence[str],
        found: Callable[[Snapshot, int], LanceDuckError] | None = None,
    ) -> None:
        self._found = found
        self._keys = keys
        self._on = list(on)
        self._base = base
        self._seen: set[tuple[object, ...]] | None = None

    def __call__(self, newer: Snapshot) -> None:
        """Search the fragments of a newer version that were not searched before.

        Raises:
            LanceDuckError: A fragment contains or may contain one of the keys.
        """
        if newer.manifest is self._base.manifest:
            return
        if self._seen is None:
            self._seen = {_identity(fragment) for fragment in self._base.fragments}
        fresh = [fragment for fragment in newer.fragments if _identity(fragment) not in self._seen]
        if not fresh:
            return
        if self._keys is None:
            raise _same_key(newer)
        table = TableScan(newer, self._keys.sieve([(name,) for name in self._on]))
        options = ScanOptions(columns=self._on, fragments=[fragment.id for fragment in fresh])
        for batch in table.reader(table.plan(options)):
            codes = self._keys.find(batch.columns)
            known = codes[codes >= 0]
            if len(known):
                row = int(self._keys.first_rows[known[0]])
                raise _same_key(newer) if self._found is None else self._found(newer, row)
        self._seen |= {_identity(fragment) for fragment in fresh}


def _same_key(newer: Snapshot) -> RetryableError:
    return RetryableError(
        "a concurrent commit inserted a row with the same key",
        where=f"{newer.uri} version {newer.version}",
        remedy="run the change again",
    )


def _identity(fragment: Fragment) -> tuple[object, ...]:
    """Return a key that identifies a fragment's values."""
    return fragment.id, fragment.files, fragment.overlays
