"""Processes transfer amounts between tables, and are killed, while pylance appends to single tables.

Everybody who reads the folder as a database sees the same sum over all tables, at each read.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from concurrency.children import start
from concurrency.transferring import ACCOUNTS, SUM, TABLES, TOTAL, open_bank, transfer

import lance_duck as ld
from lance_duck.groups.finish import settle
from lance_duck.groups.log import PUBLISHED, CommitLog

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no signals")

FULL = os.environ.get("LANCE_DUCK_PROFILE") == "full"
WRITERS, TRANSFERS, KILLS = 3, 200 if FULL else 30, 20 if FULL else 4


def test_the_sum_over_all_tables_never_changes(tmp_path: Path) -> None:
    open_bank(tmp_path)
    rng, counts = random.Random(7), Counter[str]()
    writers: dict[Connection, tuple[Any, int]] = {}
    kills = sorted(rng.sample(range(WRITERS * TRANSFERS), KILLS))

    def begin(count: int) -> None:
        process, connection = start(transfer, tmp_path, rng.randrange(2**32), count)
        writers[connection] = process, count

    for _ in range(WRITERS):
        begin(TRANSFERS)
    with ld.connect(tmp_path) as con:
        while writers:
            for connection in wait(list(writers), timeout=0):
                assert isinstance(connection, Connection)
                process, left = writers.pop(connection)
                try:
                    heard = connection.recv()
                except EOFError:
                    process.join()
                    assert process.exitcode == 0
                    continue
                counts[heard] += 1
                if kills and counts.total() - counts["reads"] >= kills[0]:
                    kills.pop(0)
                    process.kill()
                    process.join()
                    counts.update(_last_words(connection))
                    begin(left - 1)
                else:
                    writers[connection] = process, left - 1
            _check_sum(con, tmp_path, counts)
            counts["reads"] += 1
            if counts["reads"] % 4 == 0:
                _append(tmp_path, rng)
    _check_end(tmp_path, counts)


def _last_words(connection: Connection) -> Counter[str]:
    """Return the transfers that a killed process has reported, and nobody has read."""
    words = Counter[str]()
    try:
        while True:
            words[connection.recv()] += 1
    except (EOFError, OSError):
        return words


def _check_sum(con: ld.Connection, folder: Path, counts: Counter[str]) -> None:
    """Read the sum in one of three ways: in a statement, in a transaction, or with a new connection."""
    match counts["reads"] % 3:
        case 0:
            assert con.execute(SUM).fetchall() == [(TOTAL,)]
        case 1:
            con.execute("BEGIN")
            sums = [con.execute(f"SELECT sum(v)::BIGINT FROM {name}").fetchall()[0][0] for name in TABLES]
            con.execute("COMMIT")
            assert sum(sums) == TOTAL
        case 2:
            with ld.connect(folder) as fresh:
                assert fresh.execute(SUM).fetchall() == [(TOTAL,)]


def _append(folder: Path, rng: random.Random) -> None:
    """Append rows with the sum 0 to one table."""
    amount = rng.randrange(1000)
    table = lance.dataset(folder / f"{rng.choice('abc')}.lance")
    table.insert(pa.table({"id": [900, 901], "v": [amount, -amount]}))


def _check_end(folder: Path, counts: Counter[str]) -> None:
    """Check that all groups are finished, and that other programs see the same rows."""
    log = CommitLog(str(folder))
    settle(log, wait=0)
    outcomes = Counter(log.outcome(number) for number in log.numbers())
    assert outcomes.keys() == {PUBLISHED}
    assert counts["moved"] <= outcomes[PUBLISHED] <= counts["moved"] + counts["gathered"] + KILLS
    assert not [number for number in log.numbers() if (folder / f"__lance_duck/staged/{log.read(number).id}").exists()]
    places = ld.DirectoryNamespace(str(folder))
    tables = [lance.dataset(places.describe_table(name.replace(".", "$")).location).to_table() for name in TABLES]
    assert sum(sum(table["v"].to_pylist()) for table in tables) == TOTAL
    for table in tables:
        accounts = [key for key in table["id"].to_pylist() if 0 <= key < 900]
        assert sorted(accounts) == list(range(ACCOUNTS))
    with ld.connect(folder) as con:
        assert con.execute(SUM).fetchall() == [(TOTAL,)]
        assert con.execute("SELECT count(*) FROM lance_commits() WHERE outcome <> 'published'").fetchall() == [(0,)]
    assert not ld.DirectoryNamespace(str(folder)).find_problems()
    print(dict(counts), outcomes)
