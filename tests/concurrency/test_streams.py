"""A killed stream writer loses no confirmed rows, and repeated batches are stored once."""

from __future__ import annotations

import os
import random
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from concurrency import crashing, streaming
from concurrency.children import start
from concurrency.streaming import BATCHES, PRODUCERS, keys, stream_until_killed

import lance_duck as ld

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no signals")
_NEVER = 10**9


def run(uri: str, positions: dict[int, int], steps: list[int]) -> None:
    """Stream in several processes, until each has ended. Move the positions to the first batch without an answer."""
    children = [start(stream_until_killed, uri, positions, step) for step in steps]
    confirmed = set()
    for process, connection in children:
        try:
            while True:
                confirmed.add(connection.recv())
        except EOFError:
            process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
    ids = ld.dataset(uri).to_table()["id"].to_pylist()
    assert len(set(ids)) == len(ids)
    assert {key for batch in confirmed for key in keys(*batch)} <= set(ids)
    for producer in range(PRODUCERS):
        while (producer, positions[producer]) in confirmed:
            positions[producer] += 1


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize(
    "seed", [0, 1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)]
)
def test_confirmed_rows_survive_kills_and_repeated_batches_are_stored_once(
    tmp_path: Path, processes: int, seed: int
) -> None:
    uri = str(tmp_path / "t.lance")
    ld.write_dataset({"id": pa.array([], pa.int64())}, uri, storage_options=streaming.OPTIONS)
    some = random.Random(f"{processes} {seed}")
    positions = dict.fromkeys(range(PRODUCERS), 0)
    for _ in range(6):
        run(uri, positions, [some.randrange(1, 40) for _ in range(processes)])
    run(uri, positions, [_NEVER] * processes)
    assert positions == dict.fromkeys(range(PRODUCERS), BATCHES)
    assert sorted(ld.dataset(uri).to_table()["id"].to_pylist()) == list(range(2 * PRODUCERS * BATCHES))
    ld.dataset(uri).validate()
    crashing.clean(uri)
    crashing.assert_clean(uri)


def test_two_writers_and_a_foreign_writer_store_each_key_once(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    ld.write_dataset({"id": pa.array([], pa.int64())}, uri)
    streams = [ld.stream_writer(uri, interval=0, key="id") for _ in range(2)]

    def produce(own: int, stream: ld.StreamWriter) -> None:
        for i in range(60):
            stream.write({"id": [i, own]})

    with ThreadPoolExecutor(2) as pool:
        works = [pool.submit(produce, own, stream) for own, stream in enumerate(streams, 1000)]
        for i in range(10):
            lance.write_dataset(pa.table({"id": [2000 + i]}), uri, mode="append")
        for work in works:
            work.result()
    for stream in streams:
        stream.close()
    ids = sorted(lance.dataset(uri).to_table()["id"].to_pylist())
    assert ids == [*range(60), 1000, 1001, *range(2000, 2010)]
