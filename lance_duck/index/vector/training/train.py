"""Trains centroids, bounds and codebooks with faiss on a sample of vectors. Training is deterministic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from lance_duck.errors import InvalidInputError
from lance_duck.index.vector.codecs.rotation import Rotation
from lance_duck.index.vector.codecs.rq import Rounding
from lance_duck.index.vector.costs import THREADED_PRODUCTS, TRAINING_ROUNDS
from lance_duck.index.vector.library import faiss
from lance_duck.index.vector.metric import has_residual, normalized
from lance_duck.index.vector.spill import Rows
from lance_duck.index.vector.threads import safe_after_fork, side_by_side
from lance_duck.index.vector.training.balanced import balanced_clusters
from lance_duck.index.vector.training.index_spec import VectorSpec
from lance_duck.index.vector.training.model import Model, nearest_centroids, quantizer

SEED: Final = 1234
"""Random seed of the training sample for centroids. The seed of the codebook sample is one higher."""


_CODES_OF_4_BITS: Final = 16
_LEAST_RANGE: Final = 1e-6
_LONGEST: Final = 1e18


class Trainable(Protocol):
    """The vectors from which a model is trained, such as a `VectorSpill` with all indexed vectors."""

    def __len__(self) -> int:
        """Return the total number of vectors."""

    def __iter__(self) -> Iterator[tuple[Rows, NDArray[Any]]]:
        """Return all rows and vectors, batch by batch. Training computes the SQ bounds from them."""

    def sample(self, count: int, seed: int) -> NDArray[Any]:
        """Return `count` random vectors, (count, dim), or all vectors if there are not more."""


@safe_after_fork
def train(spec: VectorSpec, vectors: Trainable, item: np.dtype[Any]) -> Model:
    """Train the model of an index.

    Args:
        spec: Specification. Its centroids, bounds and codebook, if any, are used unchanged.
        vectors: All indexed vectors. There must be at least one vector, unless the specification is complete.
        item: dtype of stored numbers.

    Raises:
        InvalidInputError: There are too few vectors.
    """
    check_enough(spec, len(vectors))
    centroids, loss = spec.centroids, None
    if centroids is None:
        count = spec.partitions_for(len(vectors))
        sample = of_metric(vectors.sample(spec.sample_rate * count, SEED), spec.metric)
        centroids, loss = _centroids(sample, count, spec)
        loss *= len(vectors) / len(sample)
    model = replace(brought(replace(spec, centroids=centroids), item), loss=loss)
    if spec.storage == "SQ" and spec.bounds is None:
        return replace(model, bounds=apart(*numbers_between(of_metric(chunk, spec.metric) for _, chunk in vectors)))
    if spec.storage == "PQ" and spec.codebook is None:
        sample = of_metric(vectors.sample(spec.sample_rate << spec.bits, SEED + 1), spec.metric)
        return replace(model, codebook=as_stored(_codebook(sample, model, spec), item))
    return model


def brought(spec: VectorSpec, item: np.dtype[Any]) -> Model:
    """Build the model of a specification with centroids, with its bounds and its codebook if they are set."""
    assert spec.centroids is not None
    model = Model(
        spec.kind,
        spec.metric,
        item,
        as_stored(spec.centroids, item),
        m=spec.m,
        ef_construction=spec.ef_construction,
        max_level=spec.max_level,
    )
    if spec.storage == "RQ":
        model = replace(model, rounding=Rounding(spec.bits, Rotation.drawn(spec.dim)))
    if spec.bounds is not None:
        model = replace(model, bounds=spec.bounds)
    return model if spec.codebook is None else replace(model, codebook=as_stored(spec.codebook, item))


def check_enough(spec: VectorSpec, num_vectors: int) -> None:
    """Raise InvalidInputError if there are too few vectors to train with."""
    needed = 1 if spec.centroids is None else 0
    if spec.storage == "SQ" and spec.bounds is None:
        needed = 1
    elif spec.storage == "PQ" and spec.codebook is None:
        needed = 1 << spec.bits
    if num_vectors < needed:
        raise InvalidInputError(
            f"too few vectors to train {spec.kind}",
            expected=f"at least {needed} that are not null, not NaN"
            + (", not zero" if spec.metric == "cosine" else ""),
            found=num_vectors,
            remedy=_remedy(spec, num_vectors, needed),
        )


def _remedy(spec: VectorSpec, num_vectors: int, needed: int) -> str:
    later = "train=False creates an empty index, which optimize_indices() builds when the table has more rows"
    if needed == 1:
        return later
    flat = f"{spec.kind.replace('PQ', 'SQ')} needs one; {later}"
    few_bits = spec.bits == 8 and num_vectors >= _CODES_OF_4_BITS and spec.num_sub_vectors % 2 == 0
    return f"num_bits=4 needs {_CODES_OF_4_BITS}; {flat}" if few_bits else flat


def as_stored(numbers: NDArray[Any], item: np.dtype[Any]) -> NDArray[Any]:
    """Round numbers to the precision of the storage type, which may be narrower. The dtype does not change."""
    if item.itemsize >= numbers.itemsize:
        return numbers
    largest = np.finfo(item).max
    narrow: NDArray[Any] = np.clip(numbers, -largest, largest).astype(item).astype(numbers.dtype)
    return narrow


def of_metric(vectors: NDArray[Any], metric: str) -> NDArray[Any]:
    """Return the vectors in the form for a metric: C-contiguous, and normalised for cosine."""
    return np.ascontiguousarray(normalized(vectors)) if metric == "cosine" else np.ascontiguousarray(vectors)


def _centroids(sample: NDArray[Any], count: int, spec: VectorSpec) -> tuple[NDArray[Any], float]:
    """Return the centroids of a sample, and the sum of the distances between its vectors and their centroids."""
    if spec.metric == "hamming":
        bits = np.unpackbits(sample, axis=1).astype(np.float32)
        means = _partitions(bits, count, spec)
        centroids: NDArray[Any] = np.packbits(means > 0.5, axis=1)
        _, distances = nearest_centroids(quantizer(centroids, spec.metric), sample)
        return centroids, float(distances.sum())
    if spec.metric == "dot":
        centroids = _clusters(sample, count, faiss.IndexFlatIP(spec.dim), spec)
    else:
        centroids = _partitions(sample, count, spec)
    _, distances = nearest_centroids(quantizer(centroids, spec.metric), sample)
    total = float(distances.sum(dtype=np.float64))
    return centroids, len(sample) - total if spec.metric == "dot" else total


def _partitions(sample: NDArray[np.float32], count: int, spec: VectorSpec) -> NDArray[np.float32]:
    """Return the centroids of partitions, trained by Euclidean distance."""
    short = _short(sample)
    if len(short) < count:
        return _some(sample, count)

    def work(rounds: int) -> NDArray[np.float32]:
        return balanced_clusters(short, count, rounds, SEED)

    rounds = min(spec.max_iters, TRAINING_ROUNDS)
    return side_by_side(work, [rounds])[0] if short.size * count < THREADED_PRODUCTS else work(rounds)


def _some(sample: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """Return `count` evenly spaced vectors of a sample. Vectors are repeated if there are too few."""
    return np.ascontiguousarray(sample[np.linspace(0, len(sample) - 1, count).astype(np.int64)])


def _clusters(sample: NDArray[np.float32], count: int, index: Any, spec: VectorSpec) -> NDArray[np.float32]:
    short = _short(sample)
    if len(short) < count:
        return _some(sample, count)
    clustering: Any = faiss.Clustering(short.shape[1], count)
    _settle(clustering, spec, len(short))
    if short.size * count < THREADED_PRODUCTS:
        side_by_side(lambda _: clustering.train(short, index), range(1))
    else:
        clustering.train(short, index)
    centroids: NDArray[np.float32] = faiss.vector_to_array(clustering.centroids).reshape(count, -1)
    return centroids


def _short(sample: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the vectors whose squared distances fit into float32. Other vectors would make faiss abort the process."""
    numbers = np.abs(sample).max(axis=1, initial=0)
    is_short = numbers <= _LONGEST / np.sqrt(sample.shape[1])
    return sample if is_short.all() else np.ascontiguousarray(sample[is_short])


def apart(low: float, high: float) -> tuple[float, float]:
    """Return SQ bounds for a minimum and a maximum. If both are equal, the bounds are moved apart."""
    return low, max(high, low + max(abs(low), 1.0) * _LEAST_RANGE)


def numbers_between(chunks: Iterable[NDArray[np.float32]]) -> tuple[float, float]:
    """Return the smallest and the largest number in vectors."""
    low, high = np.inf, -np.inf
    for chunk in chunks:
        if chunk.size:
            low, high = min(low, float(chunk.min())), max(high, float(chunk.max()))
    return low, high


def _codebook(sample: NDArray[np.float32], model: Model, spec: VectorSpec) -> NDArray[np.float32]:
    if has_residual(model.metric):
        sample = np.ascontiguousarray(sample - model.centroids[model.assign(sample)[0]])
    width = spec.dim // spec.num_sub_vectors

    def part(first: int) -> NDArray[np.float32]:
        piece = np.ascontiguousarray(sample[:, first : first + width])
        return _clusters(piece, 1 << spec.bits, faiss.IndexFlatL2(width), spec)

    return np.stack(side_by_side(part, range(0, spec.dim, width)))


def _settle(parameters: Any, spec: VectorSpec, num_vectors: int) -> None:
    parameters.niter = min(spec.max_iters, TRAINING_ROUNDS)
    parameters.seed = SEED
    parameters.min_points_per_centroid = 1
    parameters.max_points_per_centroid = max(num_vectors, 1)
