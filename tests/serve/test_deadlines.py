"""Work in Python stops when its request is stopped. A change that is published does not."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck import interrupts
from lance_duck.serve.gate.admission import Admission
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.gate.gate import Gate
from lance_duck.serve.gate.refusals import AbandonedError, StoppingError
from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.gate.tokens import Caller, Role

CALLER = Caller("a", Role.WRITE)
INDEXES = ({"index_type": "INVERTED"}, {"index_type": "BTREE"}, {"index_type": "IVF_PQ"}, {"index_type": "IVF_HNSW_SQ"})


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    count = 2000
    vectors = pa.FixedSizeListArray.from_arrays(np.random.default_rng(0).random(count * 16, dtype=np.float32), 16)
    texts = pa.array(f"word {i}" for i in range(count))
    ld.write_dataset(pa.table({"s": texts, "v": vectors}), tmp_path / "t.lance", max_rows_per_file=200)
    return Gate(ServeSettings(str(tmp_path), write=True))


def build(call: ServerCall, index_type: str) -> None:
    table = call.open(("t",))
    if index_type.startswith("IVF"):
        table.create_index("v", index_type, num_partitions=4)
    else:
        table.create_scalar_index("s", index_type)


@pytest.mark.parametrize("at", [0, 1, 3])
@pytest.mark.parametrize("options", INDEXES, ids=str)
def test_an_index_build_of_a_stopped_request_ends_without_a_version(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], at: int
) -> None:
    seen = 0
    check = interrupts.check

    def stop_at() -> None:
        nonlocal seen
        if seen == at:
            call.cancel()
        seen += 1
        check()

    monkeypatch.setattr(interrupts, "check", stop_at)
    with pytest.raises(AbandonedError), gate.call(CALLER) as call:
        build(call, options["index_type"])
    assert seen == at + 1
    monkeypatch.undo()
    with gate.call(CALLER) as call:
        assert (call.open(("t",)).version, call.open(("t",)).list_indices()) == (1, [])


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"filter": "s LIKE '%9'"},
        {"nearest": {"column": "v", "q": np.zeros(16), "k": 3}},
        {"full_text_query": "word"},
    ],
    ids=("scan", "filter", "vector", "text"),
)
def test_a_search_of_a_stopped_request_ends(gate: Gate, arguments: dict[str, Any]) -> None:
    def search() -> None:
        with gate.call(CALLER) as call:
            table = call.open(("t",))
            call.cancel()
            table.to_table(**arguments)

    with pytest.raises(AbandonedError):
        search()


def test_the_interrupt_of_a_request_does_not_reach_the_next_one(gate: Gate) -> None:
    with gate.call(CALLER) as call:
        call.cancel()
    with gate.call(CALLER) as call:
        assert call.open(("t",)).to_table().num_rows == 2000


def test_a_stop_waits_once_for_both_kinds_of_requests(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def drained(self: Admission, timeout: float) -> bool:
        waits.append(timeout)
        now[0] += 20
        return True

    now = [1000.0]
    monkeypatch.setattr(Admission, "drained", drained)
    with monkeypatch.context() as clock:
        clock.setattr(time, "monotonic", lambda: now[0])
        gate.stop(30)
    assert waits == [30, 10]


def test_a_stop_ends_an_index_build(gate: Gate) -> None:
    begun = threading.Event()
    errors: list[Exception] = []

    def run() -> None:
        try:
            with gate.call(CALLER) as call:
                begun.set()
                while True:
                    build(call, "INVERTED")
        except StoppingError as error:
            errors.append(error)

    builder = threading.Thread(target=run)
    builder.start()
    begun.wait()
    gate.stop(0)
    builder.join(60)
    assert len(errors) == 1
