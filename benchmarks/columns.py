"""One column of each common type, for benchmarks that compare types."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.tpch_data import WORDS, money

Make = Callable[[int, np.random.Generator], pa.Array]


def _lists(values: pa.Array, lengths: np.ndarray) -> pa.Array:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), values.slice(0, int(offsets[-1])))


def _words(count: int, rng: np.random.Generator, many: int, each: int) -> pa.Array:
    """`count` strings of `each` words drawn from `many` different words."""
    known = WORDS.split()
    vocabulary = pa.array([known[i % len(known)] + (str(i) if i >= len(known) else "") for i in range(many)])
    picked = [vocabulary.take(pa.array(rng.integers(0, many, count))) for _ in range(each)]
    return picked[0] if each == 1 else pc.binary_join_element_wise(*picked, " ")


def _vectors(n: int, rng: np.random.Generator, width: int) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(rng.standard_normal(n * width, np.float32)), width)


def _binary(n: int, rng: np.random.Generator) -> pa.Array:
    offsets = np.zeros(n + 1, np.int32)
    np.cumsum(rng.integers(8, 40, n), out=offsets[1:])
    data = rng.bytes(int(offsets[-1]))
    return pa.BinaryArray.from_buffers(pa.binary(), n, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


KINDS: dict[str, Make] = {
    "int64": lambda n, rng: pa.array(rng.integers(-(1 << 62), 1 << 62, n)),
    "ascending int64": lambda n, rng: pa.array(np.arange(n)),
    "int32 below 1,000": lambda n, rng: pa.array(rng.integers(0, 1000, n).astype(np.int32)),
    "float64": lambda n, rng: pa.array(rng.standard_normal(n)),
    "bool": lambda n, rng: pa.array(rng.random(n) < 0.3),
    "date32": lambda n, rng: pa.array(rng.integers(8000, 10_600, n).astype(np.int32), pa.date32()),
    "timestamp": lambda n, rng: pa.array(1_700_000_000_000_000 + rng.integers(0, 10**13, n), pa.timestamp("us")),
    "decimal(15,2)": lambda n, rng: money(rng.integers(90_000, 10_000_000, n)),
    "string, 25 values": lambda n, rng: _words(n, rng, 25, 1),
    "string, three words": lambda n, rng: _words(n, rng, 5000, 3),
    "string, fifty words": lambda n, rng: _words(n, rng, 5000, 50),
    "binary": _binary,
    "list<int32>": lambda n, rng: _lists(pa.array(rng.integers(0, 1 << 30, n * 9, np.int32)), rng.integers(0, 10, n)),
    "list<string>": lambda n, rng: _lists(_words(n * 5, rng, 5000, 1), rng.integers(0, 6, n)),
    "struct": lambda n, rng: pa.StructArray.from_arrays(
        [pa.array(rng.integers(0, 1000, n)), pa.array(rng.standard_normal(n)), _words(n, rng, 25, 1)], ["a", "b", "c"]
    ),
    "float32[16]": lambda n, rng: _vectors(n, rng, 16),
    "float32[128]": lambda n, rng: _vectors(n, rng, 128),
    "float32[768]": lambda n, rng: _vectors(n, rng, 768),
}

# Divides the number of rows for kinds whose rows are large.
SHRINK = {"string, fifty words": 10, "float32[16]": 4, "float32[128]": 20, "float32[768]": 100}


def column(kind: str, rows: int, nulls: bool, seed: int = 0) -> pa.Array:
    """Return a column of a kind; with `nulls` every tenth row, at random, is null."""
    rng = np.random.default_rng(seed)
    values = KINDS[kind](max(1000, rows // SHRINK.get(kind, 1)), rng)
    if not nulls:
        return values
    places = np.arange(len(values))
    return values.take(pa.array(places, mask=rng.random(len(values)) < 0.1))
