"""Primary keys in small fragments, remembered by this process.

Each INSERT of a few rows adds a small fragment. Without this module, each further INSERT would read all of them again.
Keys are remembered as hashes. If a new key has a known hash, the fragments are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from lance_duck.cache import LruCache
from lance_duck.forks import Lock
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.costs import KNOWN_KEYS, KNOWN_KEYS_OF_FRAGMENT
from lance_duck.verbs.rows.key_bytes import key_bytes
from lance_duck.wire.fragment import Fragment

_TABLES: Final = 16


class KnownKeys:
    """Hashes of the keys in small fragments of one table.

    A fragment is identified by its data files and overlays, which never change. Deleted rows keep their hashes.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._fragments: set[tuple[str, ...]] = set()
        self._hashes: set[int] = set()

    def fragments_with(self, keys: pa.Table, snapshot: Snapshot) -> list[int] | None:
        """Return the fragments that may contain one of the keys. Returns None for all fragments.

        Args:
            keys: The key columns of new rows, with the table's types.
            snapshot: The version to search.
        """
        with self._lock:
            unread = self._unread(snapshot)
            small = [f for f in unread if 0 < f.physical_rows <= KNOWN_KEYS_OF_FRAGMENT]  # unknown counts are 0
            self._read(small, snapshot, keys.column_names)
            if not self._hashes.isdisjoint(_hashes(keys)):
                return None
            return [fragment.id for fragment in unread if _paths(fragment) not in self._fragments]

    def add(self, fragments: Sequence[Fragment], keys: pa.Table) -> None:
        """Remember the keys of fragments."""
        if keys.num_rows <= min(KNOWN_KEYS_OF_FRAGMENT, KNOWN_KEYS - len(self._hashes)):
            with self._lock:
                self._hashes.update(_hashes(keys))
                self._fragments.update(map(_paths, fragments))

    def _unread(self, snapshot: Snapshot) -> list[Fragment]:
        """Return the fragments that are not remembered. If most of the remembered ones are gone, all are forgotten."""
        fragments = snapshot.fragments
        unread = [i for i, paths in enumerate(fragments.paths()) if paths not in self._fragments]
        if 2 * (len(fragments) - len(unread)) < len(self._fragments):
            self._fragments, self._hashes = set(), set()
            return list(fragments)
        return [fragments[i] for i in unread]

    def _read(self, fragments: Sequence[Fragment], snapshot: Snapshot, names: Sequence[str]) -> None:
        """Remember the keys of more fragments, up to the limit."""
        rows = KNOWN_KEYS - len(self._hashes)
        chosen = []
        for fragment in fragments:
            rows -= fragment.physical_rows
            if rows < 0:
                break
            chosen.append(fragment)
        if not chosen:
            return
        table = TableScan(snapshot)
        options = ScanOptions(columns=names, fragments=[fragment.id for fragment in chosen])
        self._hashes.update(_hashes(table.reader(table.plan(options)).read_all().select(names)))
        self._fragments.update(map(_paths, chosen))


_KNOWN: Final[LruCache[KnownKeys]] = LruCache(_TABLES)


def known_keys(snapshot: Snapshot, fields: Sequence[int]) -> KnownKeys:
    """Return the remembered keys of a table.

    Args:
        snapshot: A version of the table.
        fields: Ids of the key fields.
    """
    return _KNOWN.get((snapshot.uri, *fields), KnownKeys)


def _paths(fragment: Fragment) -> tuple[str, ...]:
    return tuple(file.path for file in fragment.all_files)


def _hashes(keys: pa.Table) -> list[int]:
    return list(map(hash, key_bytes(keys.columns, keys.column_names).to_pylist()))
