from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.encoding.v20.kernels import unpack_runs, unpack_runs_reference, unravel_ends, unravel_ends_reference
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.status import BAD_OFFSETS, OK, TOO_SHORT


@given(st.data(), st.sampled_from([8, 16, 32, 64]), st.booleans())
def test_unpacking_runs_equals_its_reference(data: st.DataObject, bits: int, signed: bool) -> None:
    width = data.draw(st.integers(1, bits))
    src = np.frombuffer(data.draw(st.binary(max_size=64)), np.uint8)
    starts, counts = [], []
    for _ in range(data.draw(st.integers(0, 4))):
        starts.append(data.draw(st.integers(0, len(src) * 8)))
        counts.append(data.draw(st.integers(0, (len(src) * 8 - starts[-1]) // width)))
    first, many = np.array(starts, np.int64), np.array(counts, np.int64)
    out = np.empty(sum(counts), f"<u{bits // 8}")
    assert unpack_runs(readonly(src), first, many, width, signed, out) == OK
    assert out.tolist() == unpack_runs_reference(src, first, many, width, signed, out.dtype).tolist()


@pytest.mark.parametrize(
    ("start", "count", "room"), [(-1, 1, 1), (0, 6, 6), (17, 0, 0), (0, 2, 1), (0, 1, 2), (0, -1, 0)]
)
def test_unpacking_stays_within_its_buffers(start: int, count: int, room: int) -> None:
    src, out = readonly(np.zeros(2, np.uint8)), np.empty(room, np.uint8)
    assert unpack_runs(src, np.array([start]), np.array([count]), 3, False, out) == TOO_SHORT


@st.composite
def stored_ends(draw: st.DrawFn) -> tuple[list[int], list[bool], int, list[tuple[int, int]]]:
    """Real ends of a page, validity, adjustment and disjoint runs of its rows."""
    lengths = draw(st.lists(st.integers(0, 5), min_size=1, max_size=20))
    ends = np.cumsum(lengths).tolist()
    valid = [draw(st.booleans()) for _ in lengths]
    cuts = sorted(draw(st.sets(st.integers(0, len(lengths)), max_size=6)))
    runs = list(zip(cuts[::2], cuts[1::2], strict=False))
    return ends, valid, ends[-1] + draw(st.integers(1, 3)), runs


@given(stored_ends())
def test_ends_of_runs_equal_their_reference_and_the_rows(
    page: tuple[list[int], list[bool], int, list[tuple[int, int]]],
) -> None:
    ends, valid, adjustment, runs = page
    stored = [end + (0 if ok else adjustment) for end, ok in zip(ends, valid, strict=True)]
    read = np.array([e for a, b in runs for e in stored[max(a - 1, 0) : b]], np.uint64)
    firsts = np.array([a == 0 for a, _ in runs], np.bool_)
    counts = np.array([b - a for a, b in runs], np.int64)
    offsets, flags = np.empty(counts.sum() + 1, np.int64), np.empty(counts.sum(), np.uint8)
    begins, stops = np.empty(len(runs), np.int64), np.empty(len(runs), np.int64)
    limit = np.uint64(ends[-1])
    args = (readonly(read), firsts, counts, np.uint64(adjustment), limit, offsets, flags, begins, stops)
    assert unravel_ends(*args) == OK
    expected = unravel_ends_reference(read, firsts, counts, adjustment)
    assert offsets.tolist() == expected[0].tolist()
    assert flags.tolist() == expected[1].tolist()
    assert begins.tolist() == expected[2].tolist()
    assert stops.tolist() == expected[3].tolist()
    rows = [i for a, b in runs for i in range(a, b)]
    assert flags.tolist() == [int(valid[i]) for i in rows]
    assert np.diff(offsets).tolist() == [ends[i] - (ends[i - 1] if i else 0) for i in rows]


def unravel(ends: list[int], counts: list[int], firsts: list[bool], limit: int = 10, adjustment: int = 100) -> int:
    rows, runs = sum(counts), len(counts)
    return unravel_ends(
        readonly(np.array(ends, np.uint64)),
        np.array(firsts, np.bool_),
        np.array(counts, np.int64),
        np.uint64(adjustment),
        np.uint64(limit),
        np.empty(rows + 1, np.int64),
        np.empty(rows, np.uint8),
        np.empty(runs, np.int64),
        np.empty(runs, np.int64),
    )


@pytest.mark.parametrize(
    ("ends", "counts", "firsts", "status"),
    [
        ([3, 2], [2], [True], BAD_OFFSETS),
        ([3, 102], [2], [True], BAD_OFFSETS),
        ([3, 11], [2], [True], TOO_SHORT),
        ([3, 2**64 - 1], [2], [True], TOO_SHORT),
        ([11, 11], [1], [False], TOO_SHORT),
        ([3], [2], [True], TOO_SHORT),
        ([3, 4, 5], [2], [True], TOO_SHORT),
        ([3], [1], [False], TOO_SHORT),
        ([8, 2, 3], [1, 1], [True, False], BAD_OFFSETS),
    ],
)
def test_contradictory_ends_are_reported(ends: list[int], counts: list[int], firsts: list[bool], status: int) -> None:
    assert unravel(ends, counts, firsts) == status
