"""A store that does not change files."""

from __future__ import annotations

from typing import Any, Final

from lance_duck.snapshot.with_log import unchangeable
from lance_duck.store import Store

_CHANGES: Final = frozenset({"create", "put", "put_if_absent", "delete", "copy"})


class ReadOnlyStore:
    """A store with the files of another store, which cannot be changed.

    Args:
        store: The other store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        if name in _CHANGES:
            return self._refuse
        return getattr(self._store, name)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise unchangeable(self._store.uri)
