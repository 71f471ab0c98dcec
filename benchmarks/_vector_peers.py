"""Searching without a table: faiss and hnswlib, with everything in memory."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import faiss
import numpy as np

from benchmarks._vector_data import K
from benchmarks._vector_engines import EF_CONSTRUCTION, Engine, M

try:
    import hnswlib
except ModuleNotFoundError:
    hnswlib = None


def compared(vectors: np.ndarray, metric: str) -> np.ndarray:
    """Vectors as faiss compares them: normalised for cosine."""
    if metric != "cosine":
        return vectors
    return np.ascontiguousarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


class Faiss(Engine):
    """The same index in plain faiss; vectors and filter flags are in memory."""

    suffix = ".faiss"
    index: Any = None

    def build(self) -> None:
        """Train and fill the index."""
        dim, lists = self.data.dim, self.data.partitions
        text = {"IVF_FLAT": f"IVF{lists},Flat", "IVF_PQ": f"IVF{lists},PQ{dim // 4}", "IVF_HNSW_SQ": f"HNSW{M}_SQ8"}
        index = faiss.index_factory(dim, text[self.kind], self._faiss_metric)
        if "HNSW" in self.kind:
            index.hnsw.efConstruction = EF_CONSTRUCTION
        index.train(self._vectors)
        index.add(self._vectors)
        faiss.write_index(index, str(self.path))

    @cached_property
    def _vectors(self) -> np.ndarray:
        return compared(self.data.vectors, self.metric)

    @property
    def _faiss_metric(self) -> int:
        return faiss.METRIC_INNER_PRODUCT if self.metric == "dot" else faiss.METRIC_L2

    def open(self) -> None:
        """Read the index."""
        if self.kind != "exact":
            self.index = faiss.read_index(str(self.path))

    def search(self, q: np.ndarray, condition: str | None = None, **setting: Any) -> np.ndarray:
        """See `Engine`."""
        chosen, queries = setting or self.setting, compared(np.atleast_2d(q), self.metric)
        if "use_index" in chosen:
            return self._exact(queries, condition)
        selector = {} if condition is None else {"sel": faiss.IDSelectorBitmap(self._bits(condition))}
        if "HNSW" in self.kind:
            parameters = faiss.SearchParametersHNSW(efSearch=chosen["ef"], **selector)
        else:
            parameters = faiss.SearchParametersIVF(nprobe=chosen["nprobes"], **selector)
        if "refine_factor" not in chosen:
            return self.index.search(queries, K, params=parameters)[1].ravel()
        refined = faiss.IndexRefineSearchParameters(k_factor=chosen["refine_factor"], base_index_params=parameters)
        return self._refine.search(queries, K, params=refined)[1].ravel()

    @property
    def _refine(self) -> Any:
        """The index, with the vectors to rank by."""
        if self._refined is None or self._refined[0] is not self.index:
            vectors = faiss.IndexFlat(self.data.dim, self._faiss_metric)
            vectors.add(self._vectors)
            self._refined = self.index, vectors, faiss.IndexRefine(self.index, vectors)
        return self._refined[2]

    _refined: Any = None

    def _exact(self, queries: np.ndarray, condition: str | None) -> np.ndarray:
        if condition is None:
            return faiss.knn(queries, self._vectors, K, metric=self._faiss_metric)[1].ravel()
        ids = np.flatnonzero(np.unpackbits(self._bits(condition), bitorder="little"))
        return ids[faiss.knn(queries, self._vectors[ids], min(K, len(ids)), metric=self._faiss_metric)[1]].ravel()

    def _bits(self, condition: str) -> np.ndarray:
        if condition not in self._flags:
            self._flags[condition] = np.packbits(self.data.flags(condition), bitorder="little")
        return self._flags[condition]

    @cached_property
    def _flags(self) -> dict[str, np.ndarray]:
        return {}


class Hnswlib(Engine):
    """A graph of the vectors as they are. Its filters are Python functions, called for each candidate: left out."""

    suffix = ".hnswlib"
    filters = False
    index: Any = None

    def build(self) -> None:
        """Fill the index."""
        index = self._new()
        index.init_index(self.data.rows, ef_construction=EF_CONSTRUCTION, M=M)
        index.add_items(self.data.vectors)
        index.save_index(str(self.path))

    def open(self) -> None:
        """Read the index."""
        self.index = self._new()
        self.index.load_index(str(self.path), self.data.rows)

    def search(self, q: np.ndarray, condition: str | None = None, **setting: Any) -> np.ndarray:
        """See `Engine`."""
        self.index.set_ef((setting or self.setting)["ef"])
        return self.index.knn_query(q, K)[0].ravel()

    def _new(self) -> Any:
        return hnswlib.Index({"dot": "ip"}.get(self.metric, self.metric), self.data.dim)
