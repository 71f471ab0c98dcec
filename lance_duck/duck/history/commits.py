"""The commit log of a folder as rows."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from lance_duck.errors import LanceDuckError
from lance_duck.groups.entry import GroupEntry
from lance_duck.groups.log import PARTLY, PUBLISHED, UNDONE, CommitLog

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
    """Return a row for each entry of a commit log, newest first. Damaged entries say why in `reason`."""
    numbers = [] if log is None else log.numbers()
    return pa.Table.from_pylist([_row(log, number) for number in numbers if log is not None], schema=_SCHEMA)


def _row(log: CommitLog, number: int) -> dict[str, Any]:
    try:
        entry = log.read(number)
        return {**_values(entry), "outcome": _outcome(log, number), "reason": log.reason(number) or None}
    except (LanceDuckError, ValueError) as error:
        return {"number": number, "outcome": "unreadable", "reason": str(error)}


def _values(entry: GroupEntry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "id": entry.id,
        "timestamp": datetime.fromisoformat(entry.time),
        "tables": [table.place for table in entry.tables],
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
