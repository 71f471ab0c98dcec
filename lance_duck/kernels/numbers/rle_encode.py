"""Kernels that find runs of equal values in chunks. A run has at most 255 values."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes, copy, store_u64

MAX_RUN: Final = 255


@kernel
def count_runs(words: NDArray[Any], counts: NDArray[np.int64], runs: NDArray[np.int64]) -> None:
    """Count the runs of each chunk.

    Args:
        words: counts.sum() values.
        counts: Number of values of each chunk.
        runs: Output: number of runs of each chunk.
    """
    place = 0
    for i in range(len(counts)):
        end = place + counts[i]
        count = 0
        while place < end:
            value = words[place]
            stop = min(end, place + MAX_RUN)
            place += 1
            while place < stop and words[place] == value:
                place += 1
            count += 1
        runs[i] = count


def count_runs_reference(words: NDArray[Any], counts: NDArray[np.int64], runs: NDArray[np.int64]) -> None:
    """Reference implementation in plain Python."""
    runs[:] = [len(chunk) for chunk in _chunks(words, counts)]


@kernel
def find_runs(words: NDArray[Any], counts: NDArray[np.int64], values: NDArray[Any], lengths: Bytes) -> None:
    """Write the value and length of each run. The arrays are sized by `count_runs`."""
    place = 0
    run = 0
    for i in range(len(counts)):
        end = place + counts[i]
        while place < end:
            first = place
            value = words[place]
            stop = min(end, place + MAX_RUN)
            place += 1
            while place < stop and words[place] == value:
                place += 1
            values[run] = value
            lengths[run] = place - first
            run += 1


def find_runs_reference(words: NDArray[Any], counts: NDArray[np.int64], values: NDArray[Any], lengths: Bytes) -> None:
    """Reference implementation in plain Python."""
    runs = [run for chunk in _chunks(words, counts) for run in chunk]
    values[:] = [value for value, _ in runs]
    lengths[:] = [length for _, length in runs]


@kernel
def write_runs(values: Bytes, lengths: Bytes, runs: NDArray[np.int64], width: int, out: Bytes) -> None:
    """Write the runs of chunks in block form: size of the values in bytes, values, lengths.

    Args:
        values: runs.sum() * width bytes.
        lengths: runs.sum() run lengths.
        runs: Number of runs of each chunk.
        width: Size of a value, in bytes.
        out: (8 + runs * (width + 1)).sum() bytes, output.
    """
    place = 0
    run = 0
    for i in range(len(runs)):
        size = runs[i] * width
        store_u64(out, place, np.uint64(size))
        copy(out, place + 8, values, run * width, size)
        copy(out, place + 8 + size, lengths, run, runs[i])
        place += 8 + size + runs[i]
        run += runs[i]


def join_runs_reference(values: Bytes, lengths: Bytes, runs: NDArray[np.int64], width: int, out: Bytes) -> None:
    """Reference implementation in plain Python."""
    joined, run = b"", 0
    for count in runs.tolist():
        joined += (count * width).to_bytes(8, "little")
        joined += values[run * width : (run + count) * width].tobytes() + lengths[run : run + count].tobytes()
        run += count
    out[:] = np.frombuffer(joined, np.uint8)


def _chunks(words: NDArray[Any], counts: NDArray[np.int64]) -> list[list[tuple[Any, int]]]:
    """Return the runs of each chunk."""
    chunks, place = [], 0
    for count in counts.tolist():
        runs: list[tuple[Any, int]] = []
        for value in words[place : place + count].tolist():
            if runs and runs[-1][0] == value and runs[-1][1] < MAX_RUN:
                runs[-1] = (value, runs[-1][1] + 1)
            else:
                runs.append((value, 1))
        chunks.append(runs)
        place += count
    return chunks
