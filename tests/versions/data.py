"""Shared data of all versions: the same tables on every side, from numpy and pyarrow.

Older versions of pylance run it in separate environments without other packages.
"""

from __future__ import annotations

import string
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

FILE_VERSIONS = ("0.1", "2.0", "2.1", "2.2")
ROWS = (7_000, 20_000)
"""Fragment row counts for tables of many kinds, with short and long level runs."""
INDEXED_ROWS = (3_000, 3_000)
DIM = 16
K = 10
WORDS = ("red", "green", "blue", "", "a rather longer word", "ünïcödé ✓", "x")
VECTOR_KINDS = ("IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ")
SCALAR_KINDS = {
    "id": "BTREE",
    "word": "BTREE",
    "few": "BITMAP",
    "labels": "LABEL_LIST",
    "day": "ZONEMAP",
    "key": "BLOOMFILTER",
}
QUESTIONS = {
    "id": ("id = 77", "id < 14", "id IN (5, 2999, 3000, 5999, 8000)", "id >= 5990 AND id <= 6010"),
    "word": ("word = 'w17'", "word IS NULL", "word > 'w98' AND word < 'x'"),
    "few": ("few = 'red'", "few IN ('blue', '')", "few IS NULL"),
    "labels": ("array_has_any(labels, ['a', 'q'])", "array_has_all(labels, ['a', 'b'])"),
    "day": ("day >= 5900", "day = 12"),
    "key": ("key = 'k77'", "key IN ('k5', 'k5000')"),
}
"""Filters by their indexed column, in SQL that pylance and DuckDB share."""


def kinds(rows: int, seed: int, file_version: str) -> pa.Table:
    """Columns of many kinds, each without nulls, with every 13th value null, and with runs of nulls."""
    rng = np.random.default_rng(seed)
    columns: dict[str, pa.Array] = {"id": pa.array(np.arange(rows))}
    place = np.arange(rows)
    holes = {"": None, "_13": place % 13 == 5, "_runs": place // 500 % 3 == 1}
    for name, array in _plain(rng, rows, file_version):
        for ending, mask in holes.items():
            if mask is None:
                columns[name] = array
            elif _has_nulls(array.type, file_version):
                columns[name + ending] = array.take(pa.array(place, mask=mask))
    if file_version != "0.1":
        columns["null_items"] = pa.ListArray.from_arrays(_offsets(rng, rows, 5), pa.nulls(_SLOTS * rows, pa.int32()))
    columns["all_null"] = pa.nulls(rows, pa.string())
    return pa.table(columns)


_SLOTS = 8


def _has_nulls(type_: pa.DataType, file_version: str) -> bool:
    """Return whether a file version distinguishes nulls of a type from values."""
    if file_version == "0.1":
        return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_binary(type_))
    return file_version != "2.0" or not pa.types.is_struct(type_)


def _plain(rng: np.random.Generator, rows: int, file_version: str) -> Iterator[tuple[str, pa.Array]]:
    shortest = int(file_version == "0.1")  # where values without bytes are null
    words = pa.array([word for word in WORDS if len(word) >= shortest])
    few = pa.array(rng.integers(0, len(words), rows).astype("int32"))
    yield "int8", pa.array(rng.integers(-100, 100, rows).astype("int8"))
    yield "small", pa.array(rng.integers(0, 7, rows).astype("int32"))
    yield "sorted", pa.array(np.sort(rng.integers(0, 10 * rows, rows)))
    yield "runs", pa.array(np.repeat(rng.integers(0, 1 << 40, rows), 90)[:rows])
    yield "few_wide", pa.array(rng.integers(0, 1 << 60, 30)[rng.integers(0, 30, rows)])
    yield "constant", pa.array(np.full(rows, 7, "int16"))
    yield "float64", pa.array(rng.standard_normal(rows))
    yield "float16", pa.array(rng.standard_normal(rows).astype("float16"))
    yield "bool", pa.array(rng.random(rows) < 0.3)
    yield "decimal", pa.array(rng.integers(-(10**9), 10**9, rows)).cast(pa.decimal128(23, 4))
    yield "date32", pa.array(rng.integers(0, 20_000, rows).astype("int32")).view(pa.date32())
    yield "timestamp", pa.array(rng.integers(0, 1 << 50, rows)).view(pa.timestamp("us", "UTC"))
    yield "text", _texts(rng, rows, 3, 24)
    yield "word", pa.array([f"word {i % 997}" for i in range(rows)])
    yield "few", words.take(few)
    yield "one_text", pa.array(["the same"] * rows)
    yield "long_text", _texts(rng, rows, 250, 400)
    yield "large_text", _texts(rng, rows, shortest, 9).cast(pa.large_string())
    yield "binary", _texts(rng, rows, shortest, 30).cast(pa.binary())
    yield "fixed_binary", pa.array([rng.bytes(16) for _ in range(rows)], pa.binary(16))
    yield "dictionary", pa.DictionaryArray.from_arrays(few, words)
    yield "vector", pa.FixedSizeListArray.from_arrays(pa.array(rng.random(rows * DIM, "f4")), DIM)
    yield "wide_vector", pa.FixedSizeListArray.from_arrays(pa.array(rng.random(rows * 128, "f4")), 128)
    numbers = pa.array(
        rng.integers(-1000, 1000, _SLOTS * rows), mask=rng.random(_SLOTS * rows) < (0.1 if not shortest else 0)
    )
    yield "list", pa.ListArray.from_arrays(_offsets(rng, rows, 5), numbers)
    yield "full_list", pa.ListArray.from_arrays(pa.array(np.arange(rows + 1, dtype="i4") * 2), numbers[: 2 * rows])
    yield "list_text", pa.ListArray.from_arrays(_offsets(rng, rows, 3), _texts(rng, 4 * rows, shortest, 9))
    inner = pa.ListArray.from_arrays(_offsets(rng, 4 * rows, 2), pa.array(rng.integers(0, 9, 12 * rows)))
    yield "list_list", pa.ListArray.from_arrays(_offsets(rng, rows, 3), inner)
    pair = pa.StructArray.from_arrays([numbers[: 4 * rows], _texts(rng, 4 * rows, shortest, 9)], ["a", "s"])
    yield "struct", pair[:rows]
    yield "list_struct", pa.ListArray.from_arrays(_offsets(rng, rows, 3), pair)
    if file_version == "2.2":
        keys = pa.array([f"key {i}" for i in range(4 * rows)])
        yield "map", pa.MapArray.from_arrays(_offsets(rng, rows, 3), keys, numbers[: 4 * rows])


def _offsets(rng: np.random.Generator, lists: int, longest: int) -> pa.Array:
    sizes = rng.integers(0, longest, lists, endpoint=True)
    return pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype("int32"))


def _texts(rng: np.random.Generator, count: int, shortest: int, longest: int) -> pa.Array:
    sizes = rng.integers(shortest, longest, count, endpoint=True)
    letters = np.frombuffer(string.ascii_lowercase.encode(), np.uint8)[rng.integers(0, 26, int(sizes.sum()))]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype("int32")
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(letters))


def indexed(first: int, rows: int) -> pa.Table:
    """Rows of a table of indexes, from row `first` on: a column for each index."""
    ids = np.arange(first, first + rows)
    labels = [["a", "b", "c", "d"][: i % 5] + (["q"] if i % 50 == 0 else []) for i in ids]
    columns = {
        "id": pa.array(ids),
        "word": pa.array([None if i % 13 == 5 else f"w{i % 100}" for i in ids]),
        "few": pa.array([None if i % 17 == 5 else WORDS[i % len(WORDS)] for i in ids]),
        "labels": pa.array(labels, pa.list_(pa.string())),
        "day": pa.array(ids // 10 * 10 + ids % 3),
        "key": pa.array([f"k{i}" for i in ids]),
        "x": pa.array(ids * 2),
    }
    vectors = _vectors(first, rows)
    for kind in VECTOR_KINDS:
        columns[kind.lower()] = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), DIM)
    return pa.table(columns)


def _vectors(first: int, rows: int) -> np.ndarray:
    rng = np.random.default_rng(first)
    centers = np.random.default_rng(7).normal(size=(30, DIM)) * 3
    return (centers[rng.integers(0, 30, rows)] + rng.normal(size=(rows, DIM))).astype("f4")


def queries() -> np.ndarray:
    """Return query vectors: float32 (5, DIM)."""
    return _vectors(991, 5)


def nearest(vectors: np.ndarray, ids: np.ndarray) -> list[list[int]]:
    """The ids of the K vectors nearest to each query, by l2."""
    far = ((queries()[:, None, :].astype("f8") - vectors[None, :, :]) ** 2).sum(axis=2)
    return [ids[np.argsort(row, kind="stable")[:K]].tolist() for row in far]
