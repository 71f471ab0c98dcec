"""Engines that search vectors: lance-duck and pylance with an index on a copy of the table, and their peers.

Two methods are timed: `search`, and `cold`, which opens the index and searches once. Separate processes build the
indexes (`_build_vectors`), and the peers' indexes stay on disk.
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
    """An engine with one kind of index over some vectors.

    Attributes:
        name: Name of the engine.
        data: The vectors and queries.
        kind: Kind of the index, or "exact" for a search without one.
        metric: "l2", "cosine" or "dot".
        setting: Search settings.
        figures: Costs of the build: seconds, memory and size.
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
        """Path of the index."""
        metric = "" if self.metric == "l2" else f"-{self.metric}"
        return DATA / f"{self.data.stem}-{self.kind}{metric}-{self.name}{self.suffix}"

    def prepare(self, anew: bool) -> None:
        """Build the index in another process if it does not exist, and open it."""
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
        """Return the rows nearest to one query, or to each of several."""
        raise NotImplementedError

    def cold(self, clock: Callable[[], float] = time.perf_counter) -> float:
        """Return the seconds for opening the index and one search."""
        begin = clock()
        self.open()
        self.search(self.data.queries[0])
        return clock() - begin

    def megabytes(self) -> float:
        """Return the size of the index on disk."""
        return self.path.stat().st_size / 1e6


class Table(Engine):
    """A copy of the table, whose data files are hard links."""

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
        """Open the table. Copy it first if the copy does not exist."""
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
        """Search a copy with a new path, which no cache knows."""
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
        """Return the size of the vector index alone."""
        before, after = (
            sum(file.stat().st_size for file in place.rglob("_indices/**/*") if file.is_file())
            for place in (self.data.path, self.path)
        )
        return (after - before) / 1e6


def engine(name: str, data: Data, kind: str, metric: str = "l2") -> Engine:
    """Return the engine with a name."""
    if name in LIBRARIES:
        return Table(name, data, kind, metric)
    peers = importlib.import_module("benchmarks._vector_peers")  # a process that builds loads no other library
    return {"faiss": peers.Faiss, "hnswlib": peers.Hnswlib}[name](name, data, kind, metric)


def engines(data: Data, kind: str, metric: str = "l2") -> list[Engine]:
    """Return the engines that support an index kind, with hnswlib if it is installed."""
    names = [*LIBRARIES, "faiss"]
    if "HNSW" in kind and find_spec("hnswlib"):
        names.append("hnswlib")
    return [engine(name, data, kind, metric) for name in names]
