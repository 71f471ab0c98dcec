"""Search engines: lance-duck and pylance with separate indexes and table copies, and their peers.

Two verbs are timed: `search`, and `cold`, from opening to the first answer. Separate processes build the indexes
(`_build_vectors`), and those of the peers are stored on disk.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._harness import DATA, OURS
from benchmarks._vector_data import Data, K

LIBRARIES = {OURS: "lance_duck", "pylance": "lance"}
KINDS = ("IVF_FLAT", "IVF_PQ", "IVF_HNSW_SQ")
M, EF_CONSTRUCTION = 20, 150

Setting = dict[str, Any]


@dataclass
class Engine:
    """An index of one kind over some data.

    Attributes:
        name: Engine name.
        data: Searched data.
        kind: Index kind; "exact" means a scan.
        metric: "l2", "cosine" or "dot".
        setting: Search effort.
        figures: Build measurements: seconds, peak MB, index MB.
    """

    name: str
    data: Data
    kind: str
    metric: str = "l2"
    setting: Setting = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)

    suffix = ""
    filters = True

    @property
    def path(self) -> Path:
        """Return the index path."""
        metric = "" if self.metric == "l2" else f"-{self.metric}"
        return DATA / f"{self.data.stem}-{self.kind}{metric}-{self.name}{self.suffix}"

    def prepare(self, anew: bool) -> None:
        """Build the index in another process, unless it is there, and open it."""
        kept = self.path.with_suffix(".json")
        if anew or not self.path.exists() or not kept.exists():
            kept.unlink(missing_ok=True)
            shutil.rmtree(self.path, ignore_errors=True)
            self.data.path  # noqa: B018  written before a process is timed
            words = [self.name, self.kind, f"{self.data.rows}x{self.data.dim}", self.metric]
            made = subprocess.run(
                [sys.executable, "-m", "benchmarks._build_vectors", *words], check=True, stdout=subprocess.PIPE
            )
            kept.write_bytes(made.stdout.splitlines()[-1] + b"\n")
        self.figures = json.loads(kept.read_bytes())
        self.open()

    def build(self) -> None:
        """Build the index."""
        raise NotImplementedError

    def open(self) -> None:
        """Open the index again."""
        raise NotImplementedError

    def search(self, q: np.ndarray, condition: str | None = None, **setting: Any) -> np.ndarray:
        """Rows nearest to a query, or to each of several, one query after the other."""
        raise NotImplementedError

    def cold(self, clock: Callable[[], float] = time.perf_counter) -> float:
        """Return the seconds to open and to search once."""
        begin = clock()
        self.open()
        self.search(self.data.queries[0])
        return clock() - begin

    def megabytes(self) -> float:
        """Size of the index on disk."""
        return self.path.stat().st_size / 1e6


class Table(Engine):
    """A copy of the table; its data files are the same files by other names."""

    suffix = ".lance"
    handle: Any = None

    def build(self) -> None:
        """Build the index."""
        given: dict[str, Any] = {"num_partitions": self.data.partitions}
        if self.kind == "IVF_PQ":
            given["num_sub_vectors"] = self.data.dim // 4
        if "HNSW" in self.kind:
            given |= {"num_partitions": 1, "m": M, "ef_construction": EF_CONSTRUCTION}
        self.open()
        self.handle.create_index("vec", self.kind, metric=self.metric, **given)

    def open(self) -> None:
        """Open the table, and copy it first if it is missing."""
        if self.kind != "exact" and not self.path.exists():
            shutil.copytree(self.data.path, self.path, copy_function=os.link)
        self._open(self.data.path if self.kind == "exact" else self.path)

    def _open(self, path: Path) -> None:
        self.handle = importlib.import_module(LIBRARIES[self.name]).dataset(str(path))

    def search(self, q: np.ndarray, condition: str | None = None, **setting: Any) -> np.ndarray:
        """See `Engine`."""
        nearest = {"column": "vec", "q": q, "k": K, **(setting or self.setting)}
        columns, before = ["id", "_distance"], condition is not None
        return self.handle.to_table(columns, filter=condition, prefilter=before, nearest=nearest)["id"].to_numpy()

    def cold(self, clock: Callable[[], float] = time.perf_counter) -> float:
        """A new path each time prevents caching."""
        place, warm = DATA / "cold" / f"{time.monotonic_ns()}.lance", self.handle
        shutil.copytree(self.path, place, copy_function=os.link)
        begin = clock()
        self._open(place)
        self.search(self.data.queries[0])
        seconds = clock() - begin
        self.handle = warm
        shutil.rmtree(place)
        return seconds

    def megabytes(self) -> float:
        """Without the indexes of other columns."""
        before, after = (
            sum(file.stat().st_size for file in place.rglob("_indices/**/*") if file.is_file())
            for place in (self.data.path, self.path)
        )
        return (after - before) / 1e6


def engine(name: str, data: Data, kind: str, metric: str = "l2") -> Engine:
    """One by its name."""
    if name in LIBRARIES:
        return Table(name, data, kind, metric)
    peers = importlib.import_module("benchmarks._vector_peers")  # a process that builds loads no other library
    return {"faiss": peers.Faiss, "hnswlib": peers.Hnswlib}[name](name, data, kind, metric)


def engines(data: Data, kind: str, metric: str = "l2") -> list[Engine]:
    """Return all engines with an index kind, and hnswlib if it is installed."""
    names = [*LIBRARIES, "faiss"]
    if "HNSW" in kind and find_spec("hnswlib"):
        names.append("hnswlib")
    return [engine(name, data, kind, metric) for name in names]
