"""The commit log of a folder as rows."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from lance_duck.duck.places import shown_place
from lance_duck.errors import LanceDuckError, NotFoundError
from lance_duck.groups.entry import GroupEntry
from lance_duck.groups.log import PARTLY, PUBLISHED, UNDONE, CommitLog
from lance_duck.store import did_you_mean_path

_SCHEMA: Final = pa.schema(
    [
        ("number", pa.uint64()),
        ("id", pa.string()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("outcome", pa.string()),
        ("tables", pa.list_(pa.string())),
        ("base_versions", pa.list_(pa.uint64())),
        ("moves", pa.list_(pa.string())),
        ("reason", pa.string()),
        ("writer", pa.string()),
    ]
)


def commits(log: CommitLog | None) -> pa.Table:
    """Return a row for each entry of a commit log, newest first. Damaged entries say why in `reason`.

    Raises:
        NotFoundError: The folder does not exist.
    """
    if log is not None and log.store.folders() is None:
        remedy = did_you_mean_path(log.root) or "pass a folder, or the name of an attached database"
        raise NotFoundError("no such folder or database", where=log.root, remedy=remedy)
    rows = [] if log is None else [_row(log, number) for number in log.numbers()]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _row(log: CommitLog, number: int) -> dict[str, Any]:
    try:
        entry = log.read(number)
        return {**_values(entry), "outcome": _outcome(log, number), "reason": shown_place(log.reason(number)) or None}
    except (LanceDuckError, ValueError) as error:
        return {"number": number, "outcome": "unreadable", "reason": shown_place(error)}


def _values(entry: GroupEntry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "id": entry.id,
        "timestamp": datetime.fromisoformat(entry.time),
        "tables": [table.folder for table in entry.tables],
        "base_versions": [table.base for table in entry.tables],
        "moves": [f"{move.source} -> {move.target or '(dropped)'}" for move in entry.moves],
        "writer": entry.writer,
    }


def _outcome(log: CommitLog, number: int) -> str:
    decided = log.outcome(number)
    if decided is None:
        return "unfinished"
    if decided == PUBLISHED:
        return PUBLISHED
    kept = log.undone(number)
    return "unfinished" if kept is None else PARTLY if kept else UNDONE
