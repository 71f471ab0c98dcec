"""Models, which encode vectors as the codes of Lance's files. They consist of centroids, bounds and codebooks."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.vector.codecs.rq import Rounding
from lance_duck.index.vector.library import faiss
from lance_duck.index.vector.metric import has_residual
from lance_duck.index.vector.threads import safe_after_fork
from lance_duck.index.vector.training.rounded import rounded

Partitions = NDArray[np.int64]

_STEPS: Final = 255


@dataclass(frozen=True)
class Model:
    """The trained parameters with which a segment is encoded.

    Attributes:
        kind: Index type, such as "IVF_PQ".
        metric: Metric, such as "l2".
        item: dtype of stored numbers, which is the dtype of the column, or float32 for bfloat16.
        centroids: float32 (partitions, dim), uint8 for hamming.
        loss: Sum of the distances between the sample and its centroids, scaled to all vectors. None if unknown.
        bounds: Numbers that the SQ codes 0 and 255 represent.
        codebook: float32 (sub-vectors, 2 ** bits, dim / sub-vectors), for PQ.
        rounding: Rotation and rounding of vectors by RQ. None for other storages.
        m: Maximum number of neighbours of a vector in a graph.
        ef_construction: Number of candidates for an insertion into a graph.
        max_level: Maximum number of levels of a graph.
    """

    kind: str
    metric: str
    item: np.dtype[Any]
    centroids: NDArray[Any]
    loss: float | None = None
    bounds: tuple[float, float] = (0.0, 0.0)
    codebook: NDArray[np.float32] = field(default_factory=lambda: np.empty((0, 0, 0), np.float32))
    rounding: Rounding | None = None
    m: int = 20
    ef_construction: int = 150
    max_level: int = 7

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return int(self.centroids.shape[1])

    @property
    def storage(self) -> str:
        """Kind of storage: "FLAT", "SQ", "PQ" or "RQ"."""
        return self.kind.rpartition("_")[2]

    @property
    def has_graphs(self) -> bool:
        """Whether partitions have graphs."""
        return "HNSW" in self.kind

    @property
    def bits(self) -> int:
        """Code width of a PQ sub-vector, in bits."""
        return int(self.codebook.shape[1] - 1).bit_length()

    @property
    def code_width(self) -> int:
        """Length of a code, in numbers of `code_type`."""
        if self.rounding is not None:
            return self.rounding.width
        return len(self.codebook) * self.bits // 8 if self.storage == "PQ" else self.dim

    @property
    def code_type(self) -> np.dtype[Any]:
        """Numpy type of the numbers of a code."""
        return self.item if self.storage == "FLAT" else np.dtype(np.uint8)

    def assign(self, vectors: NDArray[Any]) -> tuple[Partitions, NDArray[np.float32]]:
        """Return each vector's nearest partition, and faiss's distance to it. For cosine, vectors are normalised."""
        return nearest_centroids(self._quantizer, vectors)

    @safe_after_fork
    def encode(self, vectors: NDArray[Any], partitions: Partitions) -> NDArray[Any]:
        """Encode vectors (n, dim) in partitions as codes (n, code_width). For cosine, vectors are normalised."""
        if self.storage == "FLAT":
            with np.errstate(over="ignore"):
                stored: NDArray[Any] = vectors.astype(self.item, copy=False)
                return stored
        if self.rounding is not None:
            rotation = self.rounding.rotation
            return rounded(self.rounding, rotation.of(vectors), self._rotated, partitions, self.metric)
        if self.storage == "SQ":
            start, end = self.bounds
            steps = (vectors - np.float32(start)) * np.float32(_STEPS / (end - start))
            bytes_: NDArray[np.uint8] = np.clip(steps, 0, _STEPS).astype(np.uint8)
            return bytes_
        residuals: NDArray[np.float32] = vectors
        if has_residual(self.metric):
            residuals = vectors - self.centroids[partitions]
        codes: NDArray[np.uint8] = self._product.compute_codes(np.ascontiguousarray(residuals, np.float32))
        return codes

    @safe_after_fork
    def decode(self, codes: NDArray[Any], partitions: Partitions) -> NDArray[Any]:
        """Decode codes to approximate vectors, (n, dim). RQ codes cannot be decoded."""
        assert self.rounding is None
        if self.storage == "FLAT":
            return codes
        if self.storage == "SQ":
            start, end = self.bounds
            step = np.float32((end - start) / _STEPS)
            return (codes.astype(np.float32) + np.float32(0.5)) * step + np.float32(start)
        vectors: NDArray[np.float32] = self._product.decode(np.ascontiguousarray(codes, np.uint8))
        return vectors + self.centroids[partitions] if has_residual(self.metric) else vectors

    @cached_property
    def _quantizer(self) -> Any:
        return quantizer(self.centroids, self.metric)

    @cached_property
    def _rotated(self) -> NDArray[np.float32]:
        assert self.rounding is not None
        return self.rounding.rotation.of(np.ascontiguousarray(self.centroids, np.float32))

    @cached_property
    def _product(self) -> Any:
        product: Any = faiss.ProductQuantizer(self.dim, len(self.codebook), self.bits)
        faiss.copy_array_to_vector(np.ascontiguousarray(self.codebook.reshape(-1)), product.centroids)
        return product


@safe_after_fork
def nearest_centroids(quantizer: Any, vectors: NDArray[Any]) -> tuple[Partitions, NDArray[np.float32]]:
    """Return each vector's nearest centroid, and its finite distance.

    If the distances of a vector to all centroids are infinite, returns the first centroid.

    Args:
        quantizer: A result of `quantizer`: the faiss index of the centroids.
        vectors: (n, dim), normalised for cosine.
    """
    distances, partitions = quantizer.search(vectors, 1)
    return np.maximum(partitions[:, 0], 0), np.nan_to_num(distances[:, 0].astype(np.float32))


def quantizer(centroids: NDArray[Any], metric: str) -> Any:
    """Return a faiss index of centroids. Cosine is the Euclidean distance of normalised vectors."""
    dim = centroids.shape[1]
    index: Any
    if metric == "hamming":
        index = faiss.IndexBinaryFlat(8 * dim)
    else:
        index = faiss.IndexFlatIP(dim) if metric == "dot" else faiss.IndexFlatL2(dim)
    index.add(np.ascontiguousarray(centroids))
    return index
