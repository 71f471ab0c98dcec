"""Processes that change a table and report their changes."""

from __future__ import annotations

import multiprocessing
import os
import random
import resource
import signal
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import pyarrow as pa

import lance_duck as ld

OPTIONS = {"fsync": "false"}
LOADED = (
    "lance_duck.dataset",
    "lance_duck.write_dataset",
    "lance_duck.index.registry",
    "lance_duck.scan.routing",
    "lance_duck.scan.sql.parser",
    "lance_duck.scan.text.search",
    "lance_duck.verbs.merge.builder",
    "lance_duck.verbs.rows.update",
)
"""Modules preloaded in children that change tables, because `import lance_duck` is lazy."""

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload([*LOADED])


def start(work: Callable[..., None], *arguments: Any) -> tuple[Any, Connection]:
    """Start `work(connection, *arguments)` in a separate process, from a clean state with all modules loaded."""
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(there, *arguments), daemon=True)
    process.start()
    there.close()
    return process, here


@dataclass
class Model:
    """The rows that a table must have, by id; with one change that may or may not have happened."""

    rows: dict[int, int] = field(default_factory=lambda: {-1: 0})
    begun: dict[int, int] | None = None

    def hear(self, message: tuple[str, Any]) -> None:
        """Record a message of a process: it begins a change that leads to these rows, or has finished the change."""
        kind, rows = message
        if kind == "begin":
            self.begun = rows
        else:
            assert rows == self.begun
            self.rows, self.begun = rows, None


def rows(ids: dict[int, int]) -> pa.Table:
    return pa.table({"id": list(ids), "n": list(ids.values())}, schema=pa.schema({"id": pa.int64(), "n": pa.int64()}))


def change_for_ever(connection: Connection, uri: str, seed: int, before: dict[int, int]) -> None:
    """Change a table repeatedly; report the expected rows before each change and the success after it."""
    rng, now = random.Random(seed), before
    while True:
        name = rng.choice(("append", "append", "count", "upsert", "delete", "compact"))
        dataset = ld.dataset(uri, storage_options=OPTIONS)
        new = {rng.randrange(10**9): rng.randrange(100) for _ in range(3)}
        some = rng.sample(sorted(now.keys() - {-1}), min(2, len(now) - 1))
        after = {
            "append": now | new,
            "count": now | {-1: now[-1] + 1},
            "upsert": now | dict.fromkeys(some, 7) | new,
            "delete": {key: n for key, n in now.items() if key not in some},
            "compact": now,
        }[name]
        connection.send(("begin", after))
        if name == "append":
            dataset.insert(rows(new))
        elif name == "count":
            dataset.update({"n": "n + 1"}, where="id = -1")
        elif name == "upsert":
            merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
            merge.execute(rows(dict.fromkeys(some, 7) | new))
        elif name == "delete":
            dataset.delete(f"id IN ({', '.join(map(str, [-2, *some]))})")
        else:
            dataset.optimize.compact_files()
        connection.send(("done", after))
        now = after


def append_in_a_small_world(connection: Connection, uri: str, limit: int) -> None:
    """Append beyond the file size limit of the system and report the error."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    connection.send(_outcome(lambda: ld.dataset(uri).insert(rows({i: i * i for i in range(200_000)}))))


def change_without_rights(connection: Connection, uri: str) -> None:
    """Try many changes of a read-only table and report each error."""
    with tempfile.TemporaryDirectory() as folder:  # makes its imports readable before the process gives up its rights
        ld.write_dataset(rows({-1: 0}), f"{folder}/t.lance")
        _change_in_all_ways(f"{folder}/t.lance")
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    for outcome in _change_in_all_ways(uri):
        connection.send(outcome)


def _change_in_all_ways(uri: str) -> list[tuple[str, str]]:
    return [
        _outcome(lambda: ld.dataset(uri).count_rows()),
        _outcome(lambda: ld.dataset(uri).insert(rows({5: 5}))),
        _outcome(lambda: ld.dataset(uri).delete("id = -1")),
        _outcome(lambda: ld.dataset(uri).update({"n": "5"})),
        _outcome(lambda: ld.dataset(uri).drop_columns(["n"])),
        _outcome(lambda: ld.dataset(uri).tags.create("x", 1)),
        _outcome(lambda: ld.write_dataset(rows({1: 1}), f"{uri}/../new.lance")),
    ]


def _outcome(do: Callable[[], Any]) -> tuple[str, str]:
    try:
        return "", str(do())
    except Exception as error:
        return type(error).__name__, str(error)
