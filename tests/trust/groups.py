"""Commits of several tables by processes that are killed, while another program changes single tables."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import lance
import pyarrow as pa

import lance_duck as ld
from lance_duck.errors import CommitConflictError, PartlyCommittedError
from lance_duck.groups.finish import settle
from lance_duck.groups.log import PUBLISHED, CommitLog

TABLES = ("a", "b", "c", "d")
SWAPPED = ("x", "y")
"""Tables that swap their names. pylance does not write them, because it would commit to a folder that has moved."""
ACCOUNTS, START = 6, 100
TRANSFERS, WRITERS, KILLS = 12, 3, 2
OPTIONS = {"fsync": "false"}
_WRITER = "import sys; from trust.groups import transfer; transfer(sys.argv[1], int(sys.argv[2]))"


def transferred(seed: int, folder: Path) -> Mapping[str, int]:
    """Move amounts between tables. The sum of all tables is the same at each read, also after kills."""
    rng, root, counts = random.Random(seed), str(folder), Counter[str]()
    for name in (*TABLES, *SWAPPED):
        rows = {"id": list(range(ACCOUNTS)), "v": [START] * ACCOUNTS}
        ld.write_dataset(rows, f"{root}/{name}.lance", max_rows_per_file=2, storage_options=OPTIONS)
    total = (len(TABLES) + len(SWAPPED)) * ACCOUNTS * START
    writers = [_writer(root, seed * 100 + number) for number in range(WRITERS)]
    kills = KILLS
    with ld.connect(root) as con:
        while any(writer.poll() is None for writer in writers):
            assert _sum(con) == total
            counts["sums read"] += 1
            if rng.random() < 0.1:
                _append_with_pylance(root, rng.choice(TABLES), counts)
            if kills and rng.random() < 0.05:
                writers.append(_killed(rng, writers, root, seed * 100 + 50 + kills))
                kills -= 1
                counts["kills"] += 1
            time.sleep(0.02)
        for writer in writers:
            said = writer.communicate()[0]
            assert writer.returncode in (0, -signal.SIGKILL), said
            counts.update(said.splitlines())
        assert _sum(con) == total
    _check(root, counts)
    return counts


def transfer(root: str, seed: int) -> None:
    """Move random amounts between random tables, some with a new column or swapped names. Print each outcome."""
    rng = random.Random(seed)
    for _ in range(TRANSFERS):
        start, end = rng.sample(TABLES, 2)
        amount, account = rng.randrange(1, 20), rng.randrange(ACCOUNTS)
        try:
            with ld.transaction(root) as tx:
                tx[start].update({"v": f"v - {amount}"}, where=f"id = {account}")
                tx[end].update({"v": f"v + {amount}"}, where=f"id = {rng.randrange(ACCOUNTS)}")
                if rng.random() < 0.3:
                    third = rng.choice([name for name in TABLES if name not in (start, end)])
                    tx[third].insert({"id": [1000, 1001], "v": [amount, -amount]})
                kind = rng.choice(("transfers", "transfers", "transfers with a new column", "transfers with a swap"))
                if kind.endswith("column"):
                    tx[start].add_columns({f"c{rng.randrange(2**32)}": "v * 2"})
                elif kind.endswith("swap"):
                    tx.rename_table("x", "spare")
                    tx.rename_table("y", "x")
                    tx.rename_table("spare", "y")
            print(kind, flush=True)
        except CommitConflictError:
            print("conflicts", flush=True)
        except PartlyCommittedError as error:  # the appends of the other program never conflict
            raise AssertionError("no transfer conflicts with an append") from error


def _writer(root: str, seed: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _WRITER, root, str(seed)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _killed(rng: random.Random, writers: list[subprocess.Popen[str]], root: str, seed: int) -> subprocess.Popen[str]:
    """Kill a writer, and start another one."""
    rng.choice(writers).kill()
    return _writer(root, seed)


def _append_with_pylance(root: str, name: str, counts: Counter[str]) -> None:
    with suppress(OSError):  # a lost race
        rows = pa.table({"id": [2000, 2001], "v": [7, -7]})
        lance.write_dataset(rows, f"{root}/{name}.lance", mode="append")
        counts["appends by pylance"] += 1


def _sum(con: ld.Connection) -> int:
    union = " UNION ALL ".join(f"SELECT v FROM {name}" for name in (*TABLES, *SWAPPED))
    ((found,),) = con.execute(f"SELECT sum(v)::BIGINT FROM ({union})").fetchall()
    return int(found)


def _check(root: str, counts: Counter[str]) -> None:
    """Check that each group is finished, and that its changes exist once, or not at all."""
    log = CommitLog(root)
    settle(log, wait=0)
    versions = {
        name: Counter(each.uuid for each in lance.dataset(f"{root}/{name}.lance").get_transactions(10_000) if each)
        for name in TABLES
    }
    for number in log.numbers():
        entry = log.read(number)
        for table in entry.tables:
            seen = versions[table.folder.removesuffix(".lance")]
            if log.outcome(number) == PUBLISHED:
                assert seen[table.transaction] == 1
            else:
                assert seen[table.transaction] == 0 or seen[table.undo] == 1
        counts["groups " + ("published" if log.outcome(number) == PUBLISHED else "taken back")] += 1
