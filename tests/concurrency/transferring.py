"""Processes that move amounts between the tables of a folder, in SQL transactions."""

from __future__ import annotations

import random
from multiprocessing.connection import Connection
from pathlib import Path

import lance_duck as ld
from lance_duck.errors import CommitConflictError

TABLES = ("a", "b", "c", "s.d")
ACCOUNTS, START = 12, 100
TOTAL = len(TABLES) * ACCOUNTS * START
SUM = "SELECT sum(v)::BIGINT FROM (FROM a UNION ALL FROM b UNION ALL FROM c UNION ALL FROM s.d)"


def open_bank(folder: Path) -> None:
    """Create the tables, each with the same accounts."""
    with ld.connect(folder) as con:
        con.execute("CREATE SCHEMA s")
        for name in TABLES:
            con.execute(f"CREATE TABLE {name} AS SELECT i AS id, {START}::BIGINT AS v FROM range({ACCOUNTS}) r(i)")


def transfer(connection: Connection, folder: Path, seed: int, count: int) -> None:
    """Make random transfers. Report each one, with "lost" if it was a conflict."""
    rng = random.Random(seed)
    with ld.connect(folder) as con:
        for _ in range(count):
            kind, changes = _transfer(rng)
            try:
                con.execute(f"BEGIN; {changes}; COMMIT")
            except CommitConflictError:
                kind = "lost"
            connection.send(kind)


def _transfer(rng: random.Random) -> tuple[str, str]:
    """Return changes of two or three tables that keep the sum: "moved", or "gathered" if maybe nothing changes."""
    first, second, third = rng.sample(TABLES, 3)
    amount, account, other = rng.randrange(1, 50), rng.randrange(ACCOUNTS), rng.randrange(ACCOUNTS)
    take = f"UPDATE {first} SET v = v - {amount} WHERE id = {account}"
    match rng.randrange(3):
        case 0:
            return "moved", f"{take}; UPDATE {second} SET v = v + {amount} WHERE id = {other}"
        case 1:
            put = f"INSERT INTO {second} VALUES ({-amount}, {amount - 7}); INSERT INTO {third} VALUES (-7, 7)"
            return "moved", f"{take}; {put}"
    gather = f"INSERT INTO {second} SELECT -1, sum(v) FROM {first} WHERE id < 0 HAVING count(*) > 0"
    return "gathered", f"{gather}; DELETE FROM {first} WHERE id < 0"
