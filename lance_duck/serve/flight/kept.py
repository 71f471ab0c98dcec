"""Rows that changes have returned, until their clients fetch them."""

from __future__ import annotations

import threading
import time
from typing import Final

import pyarrow as pa

from lance_duck.serve.gate.refusals import LimitError, RequestError
from lance_duck.serve.gate.tokens import Caller

_SECONDS: Final = 60.0
_MOST: Final = 64 << 20
"""Maximum size of all kept rows, in bytes."""


class KeptRows:
    """Rows by the ids of their tickets. They are fetched once, within a minute."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: dict[bytes, tuple[float, Caller, pa.Table]] = {}

    def keep(self, key: bytes, caller: Caller, table: pa.Table) -> None:
        """Keep rows.

        Raises:
            LimitError: Too many bytes are kept already.
        """
        with self._lock:
            self._expire()
            size = table.nbytes + sum(each.nbytes for _, _, each in self._tables.values())
            if size > _MOST:
                raise LimitError(
                    "the rows that changes return are too large",
                    expected=f"at most {_MOST} bytes until they are fetched",
                    found=size,
                    remedy="leave out RETURNING; the change was made",
                )
            self._tables[key] = (time.monotonic(), caller, table)

    def take(self, key: bytes, caller: Caller) -> pa.Table:
        """Return rows, and forget them.

        Raises:
            RequestError: No rows of this caller are kept under the key.
        """
        with self._lock:
            self._expire()
            found = self._tables.get(key)
            if found is None or found[1] != caller:
                raise RequestError(
                    "the rows of a change are fetched once", expected=f"within {_SECONDS:g} seconds of the change"
                )
            del self._tables[key]
            return found[2]

    def _expire(self) -> None:
        limit = time.monotonic() - _SECONDS
        for key in [key for key, (time_kept, _, _) in self._tables.items() if time_kept < limit]:
            del self._tables[key]
