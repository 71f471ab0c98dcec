"""The limits of a version that contains the rows of a write-ahead log: see `log.view`."""

from __future__ import annotations

from typing import Final

from lance_duck.arguments import unknown_value
from lance_duck.errors import UnsupportedError
from lance_duck.snapshot.snapshot import Snapshot

FLUSHED: Final = "flushed"
"""Reads SSTables, but not the entries that are not in an SSTable yet."""
FRESH: Final = "fresh"
"""Reads SSTables and entries."""


def checked_mode(mode: str | None) -> str | None:
    """Return the argument `log`. Raises InvalidInputError for an unknown value."""
    if mode not in (None, FLUSHED, FRESH):
        raise unknown_value("log", mode, (FLUSHED, FRESH))
    return mode


def refuse_change(snapshot: Snapshot) -> None:
    """Raise UnsupportedError if a version contains the rows of a write-ahead log, because it cannot be changed."""
    if snapshot.log is not None:
        raise unchangeable(snapshot.uri)


def refuse_row_ids(snapshot: Snapshot) -> None:
    """Raise UnsupportedError if a version contains the rows of a write-ahead log, because they do not have row ids."""
    if snapshot.log is not None:
        raise UnsupportedError(
            "a table that is read with its write-ahead log (MemWAL) does not have row ids and row versions",
            where=snapshot.uri,
            remedy="use the primary key, or open the table without log",
        )


def unchangeable(uri: str) -> UnsupportedError:
    """Return the error for a change of a table that is read with its log."""
    return UnsupportedError(
        "a table that is read with its write-ahead log (MemWAL) cannot be changed or checked",
        where=uri,
        remedy="open it without log",
    )


def only_newest(uri: str) -> UnsupportedError:
    """Return the error for an older version of a table with its log."""
    return UnsupportedError(
        "a table that is read with its write-ahead log (MemWAL) has only its newest version",
        where=uri,
        remedy="open the version without log",
    )
