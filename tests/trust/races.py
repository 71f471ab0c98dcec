"""Processes and threads that share one table."""

from __future__ import annotations

import os
import pickle
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from concurrency import forking, hammer
from concurrency.upserting import rows, upsert
from trust.peers import check_with_pylance

import lance_duck as ld
from lance_duck.errors import CommitConflictError, NotFoundError

OPTIONS = {"fsync": "false"}
WRITERS, SECONDS = 3, 2.0
SCENARIOS = (
    *("opened_anew", "inherited", "threads_of_children", "cannot_go_on", "object_stores"),
    *("while_threads_work", "pools"),
)
_HAMMER = """
import pickle, sys
from concurrency.hammer import hammer
uri, options, who, seconds, what, stale = pickle.loads(bytes.fromhex(sys.argv[1]))
sys.stdout.buffer.write(pickle.dumps(hammer(uri, options, who, seconds, what, stale)))
"""


def hammered(seed: int, folder: Path) -> Mapping[str, int]:
    """Let processes append, delete, count, upsert and compact, with old or new handles."""
    rng, uri = random.Random(seed), str(folder / "t.lance")
    hammer.create(uri, OPTIONS, enable_stable_row_ids=rng.random() < 0.5)
    names = rng.sample(["append", "count", "delete", "upsert"], 3)
    what = {name: rng.randrange(1, 5) for name in names} | {"compact": 1}
    asked = [(uri, OPTIONS, seed * 10 + who, SECONDS, what, rng.random() < 0.5) for who in range(WRITERS)]
    with ThreadPoolExecutor(WRITERS) as pool:
        said = list(pool.map(lambda each: _python(_HAMMER, pickle.dumps(each).hex()), asked))
    tallies: list[hammer.Tally] = [pickle.loads(each) for each in said]
    hammer.check(uri, OPTIONS, tallies)
    check_with_pylance(uri)
    return {"changes": sum(tally.tried[name] for tally in tallies for name in what)}


def cleaned_under_readers(seed: int, folder: Path) -> Mapping[str, int]:
    """Read old versions during two compactions and a cleanup. Reads return the rows, or report a removed version."""
    rng, uri = random.Random(seed), str(folder / "t.lance")
    dataset = ld.write_dataset(rows(list(range(60)), 0), uri, max_rows_per_file=7, storage_options=OPTIONS)
    known = {1: set(range(60))}
    for turn in range(5):
        new = list(range(100 * turn + 100, 100 * turn + 110))
        dataset.insert(rows(new, turn))
        known[dataset.version] = known[dataset.version - 1] | set(new)
    counts = {"reads": 0, "reads of versions that were gone": 0, "compactions": 0}
    is_over = [False]

    def read(number: int) -> None:
        own = random.Random(seed + number)
        while not is_over[0]:
            version = own.choice(list(known))
            try:
                ids = ld.dataset(uri, version=version).to_table(columns=["id"])["id"].to_pylist()
            except NotFoundError:
                counts["reads of versions that were gone"] += 1
                continue
            assert sorted(ids) == sorted(known[version]), f"version {version}"
            counts["reads"] += 1

    def compact() -> None:
        with suppress(CommitConflictError):
            ld.dataset(uri, storage_options=OPTIONS).optimize.compact_files(target_rows_per_fragment=40)
            counts["compactions"] += 1

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read, number) for number in range(2)]
        try:
            for done in [pool.submit(compact), pool.submit(compact)]:
                done.result()
            time.sleep(rng.random() * 0.2)
            ld.dataset(uri, storage_options=OPTIONS).cleanup_old_versions(timedelta(0))
        finally:
            is_over[0] = True
        for reader in readers:
            reader.result()
    newest = max(known)
    assert sorted(ld.dataset(uri).to_table()["id"].to_pylist()) == sorted(known[newest])
    check_with_pylance(uri)
    return counts


def upserted(seed: int, folder: Path) -> Mapping[str, int]:
    """Let threads upsert the same keys. Each key exists once."""
    rng, uri = random.Random(seed), str(folder / "t.lance")
    ld.write_dataset(rows([], 0), uri, storage_options=OPTIONS, enable_stable_row_ids=rng.random() < 0.5)
    keys = rng.randrange(4, 20)

    def write(writer: int) -> None:
        own, dataset = random.Random(seed * 10 + writer), ld.dataset(uri, storage_options=OPTIONS)
        for _ in range(4):
            upsert(dataset, rows(own.sample(range(keys), own.randrange(1, keys)), writer))

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    found = ld.dataset(uri).to_table()["id"].to_pylist()
    assert len(set(found)) == len(found)
    check_with_pylance(uri)
    return {"upserts": 4 * WRITERS}


def forked(seed: int, folder: Path) -> Mapping[str, int]:
    """Fork a process that has used tables, and use tables in the child."""
    scenario = SCENARIOS[seed % len(SCENARIOS)]
    tables = folder / "tables"
    tables.mkdir()
    _python(f"import sys; sys.argv[1:] = ['{scenario}', r'{tables}']; from concurrency import forking; forking.main()")
    return {scenario.replace("_", " "): 1}


def pickled(seed: int, folder: Path) -> Mapping[str, int]:
    """Let another process use pickled datasets, fragments and scanners."""
    rng = np.random.default_rng(seed)
    data = pa.table({"id": np.arange(50), "x": rng.integers(0, 9, 50)})
    dataset = ld.write_dataset(data, folder / "t.lance", max_rows_per_file=int(rng.integers(5, 50)))
    dataset.create_scalar_index("x", "BTREE")
    dataset.delete(f"x = {rng.integers(0, 9)}")
    version = int(rng.integers(1, dataset.version + 1))
    dataset = dataset.checkout_version(version)
    (folder / "pickle").write_bytes(pickle.dumps((dataset, dataset.get_fragments())))
    text = f"import pickle; d, f = pickle.load(open(r'{folder}/pickle', 'rb'));"
    text += "t = d.to_table(filter='x > 3'); n = sum(x.count_rows() for x in f); print(d.version, t.num_rows, n)"
    said = [int(word) for word in _python(text).split()]
    assert said == [version, dataset.count_rows("x > 3"), dataset.count_rows()]
    return {"pickles": 2}


def _python(text: str, *arguments: str) -> bytes:
    """Run a program in a separate process and return its output."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", text, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        out, error = process.communicate(timeout=4 * forking.SECONDS)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        raise
    assert process.returncode == 0, error.decode(errors="replace")[-3000:]
    return out
