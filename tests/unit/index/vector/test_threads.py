from __future__ import annotations

import threading

import faiss
import pytest

from lance_duck.index.vector.threads import in_slices


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> int:
    """Threads that faiss may have in calls of a test."""
    return int(request.param)


def test_slices_cover_the_range_once_with_the_faiss_thread_count(threads: int) -> None:
    before = faiss.omp_get_max_threads()
    names: set[int] = set()
    slices: list[tuple[int, int]] = []

    def note(span: slice) -> None:
        names.add(threading.get_ident())
        slices.append((span.start, span.stop))

    faiss.omp_set_num_threads(threads)
    try:
        in_slices(note, 25, 10)
    finally:
        faiss.omp_set_num_threads(before)

    assert sorted(slices) == ([(0, 25)] if threads == 1 else [(0, 10), (10, 20), (20, 25)])
    assert (threading.get_ident() in names) == (threads == 1)
    assert len(names) <= threads


@pytest.mark.parametrize("count", [0, 1, 10])
def test_small_work_runs_on_the_calling_thread(count: int) -> None:
    seen: list[tuple[int, slice]] = []

    in_slices(lambda span: seen.append((threading.get_ident(), span)), count, 10)

    assert seen == [(threading.get_ident(), slice(0, count))]


def test_an_error_in_a_slice_is_raised() -> None:
    def fail(span: slice) -> None:
        raise ValueError(f"slice from {span.start}")

    with pytest.raises(ValueError, match="slice from 0"):
        in_slices(fail, 30, 10)
