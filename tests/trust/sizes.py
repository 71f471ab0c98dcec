"""Tables of unusual shapes, and long runs with bounded memory and open files."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from trust.jobs import build, vectors
from trust.peers import check_with_pylance

import lance_duck as ld

COLUMNS, FRAGMENTS, CELL_BYTES, LEVELS = 1_000, 5_000, 100_000_000, 30
HANDLES, SEARCHES = 2_000, 10_000
GROWTH = 48 << 20
"""Allowed growth of a process after its warm-up, in bytes. Caches and pools still fill up."""
OPTIONS = {"fsync": "false"}


def shapes(seed: int, folder: Path) -> Mapping[str, int]:
    """Write and read a table of one of the unusual shapes."""
    makers: list[Callable[[np.random.Generator, str], str]] = [_wide, _nested, _many_fragments, _large_cells]
    uri = str(folder / "t.lance")
    return {makers[seed % len(makers)](np.random.default_rng(seed), uri): 1, "rows": check_with_pylance(uri)}


def handles(seed: int, folder: Path) -> Mapping[str, int]:
    """Open and use many handles. Memory and open files do not grow."""
    uri, data = str(folder / "t.lance"), vectors(seed, 200)
    ld.write_dataset(data, uri, max_rows_per_file=50, storage_options=OPTIONS)

    def use() -> None:
        dataset = ld.dataset(uri)
        assert dataset.count_rows("g = 1") == 40
        assert dataset.take([3, 170], columns=["g"]).num_rows == 2

    _steady(use, HANDLES)
    return {"handles": HANDLES}


def searches(seed: int, folder: Path) -> Mapping[str, int]:
    """Search many times by vectors and words. Memory and open files do not grow."""
    data = vectors(seed, 400).append_column("s", [[f"duck {i % 11} lake" for i in range(400)]])
    dataset = ld.write_dataset(data, folder / "t.lance", max_rows_per_file=150, storage_options=OPTIONS)
    build(("IVF_PQ", "IVF_HNSW_SQ", "IVF_FLAT")[seed % 3], "near", dataset)
    dataset.create_scalar_index("s", "INVERTED")
    rng = np.random.default_rng(seed)

    def search() -> None:
        found = dataset.to_table(["id"], nearest={"column": "v", "q": rng.standard_normal(8), "k": 3, "nprobes": 2})
        assert found.num_rows == 3
        assert dataset.to_table(["id"], full_text_query=f"{rng.integers(0, 11)}", limit=3).num_rows == 3

    _steady(search, SEARCHES // 2)
    return {"searches": SEARCHES}


def _steady(use: Callable[[], None], times: int) -> None:
    for _ in range(times // 5):
        use()
    gc.collect()
    before = _resident(), _descriptors()
    for _ in range(times):
        use()
    gc.collect()
    grown = _resident() - before[0]
    assert grown < GROWTH, f"memory grew by {grown >> 20} MiB in {times} runs"
    assert _descriptors() <= before[1] + 5, f"{before[1]} open files, then {_descriptors()}"


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _wide(rng: np.random.Generator, uri: str) -> str:
    kinds = (np.int64, np.float32, np.int16, np.float64)
    data = pa.table({f"c{i}": rng.integers(0, 99, 300).astype(kinds[i % 4]) for i in range(COLUMNS)})
    dataset = ld.write_dataset(data, uri, max_rows_per_file=100, storage_options=OPTIONS)
    dataset.delete("c0 < 9")
    dataset.update({"c999": "c998 + 1"}, where="c1 > 50")
    dataset.drop_columns(["c500"])
    dataset.optimize.compact_files()
    assert len(dataset.schema) == COLUMNS - 1
    return "tables of 1,000 columns"


def _nested(rng: np.random.Generator, uri: str) -> str:
    array: pa.Array = pa.array(rng.integers(0, 99, 64))
    for level in range(LEVELS):
        if level % 5 == 4 and len(array) >= 2:
            ends = np.sort(rng.integers(0, len(array) + 1, len(array) - 1))
            array = pa.ListArray.from_arrays(pa.array([0, *ends, len(array)], pa.int32()), array)
        else:
            array = pa.StructArray.from_arrays([array], [f"l{level}"])
    written = ld.write_dataset(pa.table({"id": np.arange(len(array)), "x": array}), uri, storage_options=OPTIONS)
    assert written.to_table()["x"].combine_chunks().equals(array)
    return "30 levels of nesting"


def _many_fragments(rng: np.random.Generator, uri: str) -> str:
    ids = np.arange(FRAGMENTS * 2)
    data = pa.table({"id": ids, "x": rng.integers(0, 9, len(ids))})
    dataset = ld.write_dataset(data, uri, max_rows_per_file=2, storage_options=OPTIONS)
    assert len(dataset.get_fragments()) == FRAGMENTS
    dataset.create_scalar_index("id", "BTREE")
    dataset.delete("x = 3")
    kept = data.filter(pa.array(np.asarray(data["x"]) != 3))
    assert dataset.to_table() == kept
    assert dataset.to_table(filter="id = 77") == kept.filter(pa.array(np.asarray(kept["id"]) == 77))
    dataset.optimize.compact_files(target_rows_per_fragment=500)
    assert dataset.to_table() == kept
    return "tables of 5,000 fragments"


def _large_cells(rng: np.random.Generator, uri: str) -> str:
    cells = [rng.bytes(CELL_BYTES), None, b"small"]
    data = pa.table({"id": [1, 2, 3], "x": pa.array(cells, pa.large_binary())})
    dataset = ld.write_dataset(data, uri, storage_options=OPTIONS)
    assert dataset.take([0])["x"][0].as_py() == cells[0]
    assert dataset.to_table(filter="id = 3")["x"].to_pylist() == cells[2:]
    return "cells of 100 MB"
