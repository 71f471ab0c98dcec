from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from lance_duck.errors import CorruptError
from lance_duck.scan.read.ordered import map_ordered


def scan_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("lance_duck-scan")]


def wait_for_threads() -> None:
    deadline = time.monotonic() + 10
    while scan_threads() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert scan_threads() == []


def test_results_are_ordered() -> None:
    def work(i: int) -> int:
        time.sleep(0.002 if i % 3 else 0)
        return i * i

    assert list(map_ordered(work, range(50), workers=4)) == [i * i for i in range(50)]
    wait_for_threads()


@pytest.mark.parametrize("count", [0, 1, 2, 3])
@pytest.mark.parametrize("workers", [1, 2])
def test_fewer_items_than_workers_are_mapped_in_order(count: int, workers: int) -> None:
    assert list(map_ordered(str, range(count), workers=workers)) == [str(i) for i in range(count)]


def test_all_results_arrive_with_a_small_queue() -> None:
    assert list(map_ordered(str, range(5), workers=2, ahead=1)) == ["0", "1", "2", "3", "4"]


def test_no_work_starts_before_the_first_result_is_requested() -> None:
    wait_for_threads()
    drawn: list[int] = []

    def items() -> Iterator[int]:
        for i in range(100):
            drawn.append(i)
            yield i

    results = map_ordered(lambda i: (i, threading.current_thread().name), items(), workers=2)
    assert drawn == []
    assert next(results) == (0, threading.current_thread().name)
    assert drawn == [0]
    assert scan_threads() == []
    results.close()


def test_the_number_of_waiting_results_is_limited() -> None:
    begun = 0
    lock = threading.Lock()

    def work(i: int) -> int:
        nonlocal begun
        with lock:
            begun += 1
        return i

    results = map_ordered(work, range(1000), workers=2, ahead=5)
    for taken in range(1, 8):
        next(results)
        time.sleep(0.01)
        assert begun <= taken + 5
    results.close()
    wait_for_threads()


def test_an_error_is_raised_in_order_and_unchanged() -> None:
    error = CorruptError("broken", where="page 3")

    def work(i: int) -> int:
        if i == 3:
            raise error
        return i

    results = map_ordered(work, range(100), workers=2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(CorruptError) as caught:
        next(results)
    assert caught.value is error
    wait_for_threads()


def test_threads_end_when_the_generator_is_dropped() -> None:
    results = map_ordered(lambda i: i, range(1000), workers=3)
    next(results), next(results)
    assert scan_threads()
    del results
    wait_for_threads()


def test_at_once_starts_all_workers_immediately() -> None:
    together = threading.Barrier(3, timeout=10)

    def work(i: int) -> int:
        if i < 3:
            together.wait()
        return i

    assert list(map_ordered(work, range(7), workers=3, ahead=3, at_once=True)) == [*range(7)]
    assert list(map_ordered(str, range(2), workers=1, at_once=True)) == ["0", "1"]
    wait_for_threads()
