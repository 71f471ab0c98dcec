"""A process that uses tables in many ways and forks: `python forking.py {scenario} {folder}`.

The process exits with 0 on success. Each child ends after a time limit, even if it hangs.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from support.servers import BUCKET, s3_server

import lance_duck as ld
from lance_duck.errors import ForkedError
from lance_duck.scan.read.ordered import map_ordered

SECONDS: Final = 60
ROWS: Final = 1200
DIM: Final = 16
VECTORS: Final = np.random.default_rng(0).random((ROWS, DIM), dtype=np.float32)
KINDS: Final = ("IVF_PQ", "IVF_HNSW_SQ")
OPTIONS: Final = {"fsync": "false"}

Answers = dict[str, Any]


def table() -> pa.Table:
    vectors = pa.FixedSizeListArray.from_arrays(VECTORS.ravel(), DIM)
    return pa.table({"id": np.arange(ROWS), "v": vectors, "city": [f"city {i % 7}" for i in range(ROWS)]})


def make(folder: str) -> None:
    """Make one table for each kind of vector index, of several fragments and partitions."""
    for kind in KINDS:
        dataset = ld.write_dataset(table(), f"{folder}/{kind}.lance", max_rows_per_file=400, storage_options=OPTIONS)
        dataset.create_index("v", kind, num_partitions=3, num_sub_vectors=4, m=8, ef_construction=40)
        dataset.create_scalar_index("id", "BTREE")


def read(dataset: Any) -> Answers:
    """Read a table in all ways, and search it by one vector and by many, with and without its index."""
    nearest = {"column": "v", "q": VECTORS[5], "k": 3}
    return {
        "scan": dataset.to_table(columns=["id"])["id"].to_pylist(),
        "take": dataset.take([5, 1100], columns=["id"])["id"].to_pylist(),
        "index": dataset.to_table(filter="id = 77").num_rows,
        "filter": dataset.count_rows("city = 'city 3'"),
        "one": dataset.search(VECTORS[3], k=5, column="v")["id"].to_pylist(),
        "many": dataset.search(VECTORS[:300], k=5, column="v")["id"].to_pylist(),
        "exact": dataset.to_table(nearest=nearest | {"use_index": False})["id"].to_pylist(),
        "chosen": dataset.to_table(nearest=nearest, filter="city = 'city 3'", prefilter=True)["id"].to_pylist(),
    }


def ask(connection: Any) -> Answers:
    """Ask a connection."""
    near = f'SELECT id FROM "{KINDS[0]}" ORDER BY array_distance(v, ?::FLOAT[{DIM}]) LIMIT 3'
    return {
        "count": connection.execute(f'SELECT count(*), sum(id) FROM "{KINDS[0]}" WHERE id > 5').fetchall(),
        "near": connection.execute(near, [VECTORS[3].tolist()]).fetchall(),
    }


def read_all(folder: str) -> Answers:
    """Read all tables with new handles and a new connection."""
    answers = {kind: read(ld.dataset(f"{folder}/{kind}.lance")) for kind in KINDS}
    connection = ld.connect(folder)
    answers["sql"] = ask(connection)
    connection.close()
    return answers


def change(folder: str) -> None:
    """Create tables in a separate folder, then train, add, join graphs, merge and move rows."""
    make(folder)
    for kind in KINDS:
        dataset = ld.dataset(f"{folder}/{kind}.lance")
        dataset.insert(table())
        dataset.optimize.optimize_indices()
        dataset.update({"city": "'elsewhere'"}, where="id = 7")
        dataset.delete("id = 8")
        dataset.optimize.compact_files()
        assert dataset.count_rows() == 2 * ROWS - 2
        assert dataset.count_rows("city = 'elsewhere'") == 2
        assert set(dataset.search(VECTORS[9], k=2, column="v", refine_factor=10)["id"].to_pylist()) == {9}


def in_child(work: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a forked child; its errors are raised here."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        signal.alarm(SECONDS)  # ends the process even if Python does not run
        os.close(reader)
        try:
            told = True, work(*arguments)
        except BaseException as error:
            told = False, error
        with os.fdopen(writer, "wb") as out:
            out.write(pickle.dumps(told))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as into:
        data = into.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == 0, f"the child ended by {status}"
    went_well, found = pickle.loads(data)
    if not went_well:
        raise found
    return found


def refusal(work: Callable[..., Any], *arguments: Any) -> str:
    """Return the error message of a rejected call in a child."""
    try:
        in_child(work, *arguments)
    except ForkedError as error:
        return str(error)
    raise AssertionError("the child was refused nothing")


def opened_anew(folder: str) -> None:
    """A child reads and changes a table, and forks a child that does the same."""
    answers = read_all(folder)
    assert in_child(read_all, folder) == answers
    assert in_child(in_child, read_all, folder) == answers
    in_child(change, f"{folder}/child")
    assert read_all(folder) == answers


def inherited(folder: str) -> None:
    """A child uses inherited datasets and a connection, and releases them."""
    datasets = [ld.dataset(f"{folder}/{kind}.lance") for kind in KINDS]
    connection = ld.connect(folder)
    answers = [read(dataset) for dataset in datasets], ask(connection)

    def go_on() -> Any:
        found = [read(dataset) for dataset in datasets], ask(connection.cursor())
        assert ask(connection) == answers[1]
        connection.close()
        return found

    assert in_child(go_on) == answers
    assert in_child(in_child, go_on) == answers
    assert ask(connection) == answers[1]


def threads_of_children(folder: str) -> None:
    """A child searches and builds with several threads while its parent multiplies matrices."""
    dataset = ld.dataset(f"{folder}/{KINDS[0]}.lance")
    answers = read(dataset)
    busy = Busy(lambda: dataset.search(VECTORS, k=5, column="v"), lambda: train())
    try:
        for _ in range(5):
            assert in_child(by_threads, folder) == [answers] * 3
    finally:
        busy.stop()


def train() -> None:
    """Run large products of matrices in faiss."""
    wide = np.random.default_rng(1).random((4000, 256), dtype=np.float32)
    array = pa.FixedSizeListArray.from_arrays(wide.ravel(), 256)
    ld.write_dataset(pa.table({"v": array}), f"memory://{threading.get_ident()}", mode="overwrite").create_index(
        "v", "IVF_FLAT", num_partitions=64
    )


def by_threads(folder: str) -> list[Answers]:
    found: list[Answers] = []
    threads = [
        threading.Thread(target=lambda: found.append(read(ld.dataset(f"{folder}/{KINDS[0]}.lance")))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


class Busy:
    """Threads that do something again and again."""

    def __init__(self, *work: Callable[[], Any]) -> None:
        self._is_over = False
        self._begun = threading.Barrier(len(work) + 1)
        self._threads = [threading.Thread(target=self._run, args=(each,)) for each in work]
        for thread in self._threads:
            thread.start()
        self._begun.wait(SECONDS)

    def _run(self, work: Callable[[], Any]) -> None:
        work()
        self._begun.wait(SECONDS)
        while not self._is_over:
            work()

    def stop(self) -> None:
        self._is_over = True
        for thread in self._threads:
            thread.join()


def while_threads_work(folder: str) -> None:
    """A child is forked off while threads of its parent open, read and search tables."""
    shared = ld.dataset(f"{folder}/{KINDS[1]}.lance")
    answers = read(shared)
    busy = Busy(lambda: read_all(folder), lambda: read(shared))
    try:
        for _ in range(10):
            assert in_child(read, shared) == answers
            assert in_child(lambda: read(ld.dataset(f"{folder}/{KINDS[1]}.lance"))) == answers
    finally:
        busy.stop()


def pools(folder: str) -> None:
    """Process pools do the same with every start method, and a dataset is sent to them."""
    answers = read_all(folder)
    dataset = ld.dataset(f"{folder}/{KINDS[0]}.lance")
    for method in ("fork", "forkserver", "spawn"):
        context = multiprocessing.get_context(method)
        with context.Pool(2) as pool:
            assert pool.map_async(read_all, [folder] * 2).get(SECONDS) == [answers] * 2
            assert pool.apply_async(read, (dataset,)).get(SECONDS) == answers[KINDS[0]]
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as executor:
        assert executor.submit(read_all, folder).result(SECONDS) == answers


def cannot_go_on(folder: str) -> None:
    """Work of parent threads cannot continue in a child, which raises an error immediately."""
    dataset = ld.dataset(f"{folder}/{KINDS[0]}.lance")
    results = map_ordered(lambda item: item, range(100), workers=2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    assert "a scan that the parent process began" in refusal(list, results)
    assert in_child(lambda: dataset.count_rows("id > 5")) == ROWS - 6
    assert list(results) == list(range(3, 100))

    in_file = ld.connect(folder, database=f"{folder}/x.duckdb")
    assert "belongs to the parent process" in refusal(ask, in_file)
    in_child(in_file.close)
    assert ask(in_file) == ask(ld.connect(folder))

    connection = ld.connect(folder)
    entered, go = threading.Event(), threading.Event()
    connection.create_function("wait", lambda x: (entered.set(), go.wait(SECONDS), x)[2], ["BIGINT"], "BIGINT")
    thread = threading.Thread(target=lambda: connection.execute("SELECT wait(1)").fetchall())
    thread.start()
    entered.wait(SECONDS)
    try:
        assert "was in use when this process was forked off" in refusal(ask, connection)
        assert in_child(lambda: ask(ld.connect(folder))) == in_child(lambda: ask(ld.connect(folder)))
    finally:
        go.set()
        thread.join()


def object_stores(folder: str) -> None:
    """Check that a child reads an object store, or fails at once if its parent has used one."""
    reader, writer = os.pipe()
    if (server := os.fork()) == 0:
        with s3_server() as options, os.fdopen(writer, "w") as out:
            out.write(json.dumps(options))
            out.close()
            time.sleep(4 * SECONDS)
        os._exit(0)
    os.close(writer)
    try:
        with os.fdopen(reader) as into:
            options = json.loads(into.read())
        uri = f"s3://{BUCKET}/t.lance"
        in_child(lambda: ld.write_dataset(table(), uri, storage_options=options).version)
        assert in_child(remote_rows, uri, options) == ROWS
        dataset = ld.dataset(uri, storage_options=options)
        assert "a forked child cannot use an object store" in refusal(dataset.to_table)
        assert "start processes with spawn or forkserver" in refusal(remote_rows, uri, options)
        assert "a forked child cannot use an object store" in refusal(in_child, remote_rows, uri, options)
        assert in_child(read_all, folder) == read_all(folder)
        for method in ("forkserver", "spawn"):
            with multiprocessing.get_context(method).Pool(1) as pool:
                assert pool.apply_async(remote_rows, (uri, options)).get(SECONDS) == ROWS
    finally:
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)


def remote_rows(uri: str, options: dict[str, str]) -> int:
    return ld.dataset(uri, storage_options=options).to_table().num_rows


def main() -> None:
    scenario, folder = sys.argv[1], sys.argv[2]
    make(folder)
    read_all(folder)
    scenarios = (opened_anew, inherited, threads_of_children, while_threads_work, pools, cannot_go_on, object_stores)
    {each.__name__: each for each in scenarios}[scenario](folder)


if __name__ == "__main__":
    Path(sys.argv[2]).mkdir(exist_ok=True)
    main()
