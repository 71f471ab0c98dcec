from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_duck.arrow import memory
from lance_duck.arrow.memory import POOLED_BYTES, check_room, release_unused, unset


@pytest.mark.parametrize("dtype", [np.uint8, "<i4", np.int64, np.float64])
@pytest.mark.parametrize("size", [0, POOLED_BYTES - 8, POOLED_BYTES, 3 * POOLED_BYTES])
def test_an_unset_array_is_writable_and_becomes_arrow_without_a_copy(dtype, size):
    count = size // np.dtype(dtype).itemsize

    array = unset(count, dtype)
    array[:] = np.arange(count) % 100

    assert (array.dtype, array.shape) == (np.dtype(dtype), (count,))
    assert array.flags.c_contiguous
    assert array.flags.aligned
    np.testing.assert_array_equal(array, (np.arange(count) % 100).astype(dtype))
    assert pa.py_buffer(array).address == array.ctypes.data


def test_large_arrays_are_allocated_from_the_arrow_pool_and_returned():
    before = pa.total_allocated_bytes()

    array = unset(POOLED_BYTES, np.uint8)
    assert pa.total_allocated_bytes() - before >= POOLED_BYTES
    part = array[5:10]
    del array
    assert pa.total_allocated_bytes() - before >= POOLED_BYTES, "a view keeps the memory"
    del part
    assert pa.total_allocated_bytes() == before


def test_unset_arrays_do_not_share_memory():
    one, other = unset(POOLED_BYTES, np.uint8), unset(POOLED_BYTES, np.uint8)

    assert not np.shares_memory(one, other)


def test_a_negative_count_is_rejected():
    with pytest.raises(ValueError, match="negative"):
        unset(-1, np.uint8)


def test_releasing_unused_memory_keeps_memory_in_use():
    array = unset(POOLED_BYTES, np.uint8)
    array[:] = 7
    in_use = pa.total_allocated_bytes()

    release_unused()

    assert pa.total_allocated_bytes() == in_use
    assert (array == 7).all()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count memory in other ways")
@pytest.mark.parametrize(("name", "counter"), [("RLIMIT_AS", "VmSize"), ("RLIMIT_DATA", "VmData")])
def test_a_limit_of_the_process_is_an_error_before_it_is_reached(name, counter):
    import resource

    limit = getattr(resource, name)
    before = resource.getrlimit(limit)
    found = re.search(rf"^{counter}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    resource.setrlimit(limit, ((int(found[1]) << 10) + (64 << 20), before[1]))
    try:
        check_room(1 << 20)
        with pytest.raises(MemoryError, match="limit of the process"):
            check_room(1 << 30)
    finally:
        resource.setrlimit(limit, before)
    check_room(1 << 30)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems always request the memory")
def test_memory_is_requested_only_if_something_may_refuse_it(monkeypatch):
    requested = []

    def refuse(_, size, **__):
        requested.append(size)
        raise OSError

    monkeypatch.setattr(memory.mmap, "mmap", refuse)
    monkeypatch.setattr(memory, "_is_strict", lambda: False)
    check_room(7)
    assert requested == []

    monkeypatch.setattr(memory, "_is_strict", lambda: True)
    with pytest.raises(MemoryError):
        check_room(8)
    assert requested == [8]
