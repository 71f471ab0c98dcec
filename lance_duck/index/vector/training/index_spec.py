"""The specification of a vector index: its checked parameters, and their form in the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.index.vector.codecs.rq import MOST_BITS
from lance_duck.index.vector.details import with_trained_rows
from lance_duck.index.vector.graph.hnsw import EF_CONSTRUCTION, MAX_LEVEL, M
from lance_duck.index.vector.layout import KINDS, MOST_PARTITIONS
from lance_duck.index.vector.metric import metric_of
from lance_duck.index.vector.multivectors import is_multivector, vector_type
from lance_duck.index.vector.vectors import has_byte_items, is_vector
from lance_duck.wire.pb import index_pb2

SAMPLE_RATE: Final = 256
MAX_ITERS: Final = 50
DEFAULT_BITS: Final = 5
"""Default number of bits per dimension for RQ."""

_TARGETS: Final = MappingProxyType({"IVF_FLAT": 4096, "IVF_SQ": 8192, "IVF_PQ": 8192, "IVF_RQ": 4096})
_FAST_SCAN_TARGET: Final = 2048
_GRAPH_TARGET: Final = 1 << 20
_MOST_BY_DEFAULT: Final = 4096
_METRICS: Final = MappingProxyType({"l2": 0, "cosine": 1, "dot": 2, "hamming": 3})
_KNOWN: Final = (
    "index_type",
    "metric",
    "num_partitions",
    "target_partition_size",
    "ivf_centroids",
    "num_sub_vectors",
    "num_bits",
    "pq_codebook",
    "sq_bounds",
    "m",
    "ef_construction",
    "max_level",
    "sample_rate",
    "max_iters",
    "asked_partitions",
    "trained_rows",
)


@dataclass(frozen=True)
class VectorSpec:
    """The specification of a vector index.

    Attributes:
        kind: "IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ" or "IVF_HNSW_PQ".
        metric: "l2", "cosine" or "dot", or "hamming" for vectors of bytes.
        dim: Number of dimensions.
        num_partitions: Number of partitions. None derives it from the row count.
        target_partition_size: Target row count of a partition. None for the kind's default.
        num_sub_vectors: Number of sub-vectors of PQ. 0 for other storages.
        bits: Code width in bits: 4 or 8 for a PQ sub-vector, 1 … 9 for an RQ number. 8 for other storages.
        centroids: float32 (partitions, dim), uint8 for hamming. None to train them.
        codebook: float32 (sub-vectors, 2 ** bits, dim / sub-vectors). None to train it.
        bounds: Numbers that the SQ codes 0 and 255 represent. None uses the minimum and maximum of the vectors.
        m: Maximum number of neighbours of a vector in a graph.
        ef_construction: Number of candidates for an insertion into a graph.
        max_level: Maximum number of levels of a graph.
        sample_rate: Number of training vectors per centroid.
        max_iters: Maximum number of training rounds.
        asked_partitions: The user's num_partitions, which the details record. 0 if not set.
        trained_rows: Number of vectors in the table when the centroids were trained. 0 if a user provided them.
    """

    kind: str
    metric: str
    dim: int
    num_partitions: int | None = None
    target_partition_size: int | None = None
    num_sub_vectors: int = 0
    bits: int = 8
    centroids: NDArray[Any] | None = None
    codebook: NDArray[np.float32] | None = None
    bounds: tuple[float, float] | None = None
    m: int = M
    ef_construction: int = EF_CONSTRUCTION
    max_level: int = MAX_LEVEL
    sample_rate: int = SAMPLE_RATE
    max_iters: int = MAX_ITERS
    asked_partitions: int = 0
    trained_rows: int = 0

    @classmethod
    def of(cls, parameters: Mapping[str, Any], type_: pa.DataType) -> VectorSpec:
        """Build a specification from a user's parameters, and check them.

        Args:
            parameters: Parameters by pylance's names. `index_type`, such as "IVF_PQ", is required.
            type_: Storage type of the column.

        Raises:
            InvalidInputError: A parameter is unknown, or invalid for this column.
            UnsupportedError: The index type is not supported, or does not support this column.
        """
        values = {name: value for name, value in parameters.items() if value is not None}
        unknown = sorted(map(str, values.keys() - set(_KNOWN)))
        if unknown:
            raise InvalidInputError(
                "unknown parameters of a vector index", expected=", ".join(_KNOWN), found=", ".join(unknown)
            )
        check_metric(type_, values)
        type_ = vector_type(type_)
        if not is_vector(type_):
            raise UnsupportedError(
                "a vector index needs a vector column", expected="fixed_size_list of floats", found=type_
            )
        kind, metric = _kind(values.get("index_type")), metric_of(values.get("metric", "l2"))
        if has_byte_items(type_) != (metric == "hamming"):
            raise InvalidInputError(
                f"metric {metric!r} does not support this vector type",
                where=type_,
                remedy="use hamming for uint8 vectors, and another metric for floats",
            )
        if metric == "hamming" and not kind.endswith("FLAT"):
            raise UnsupportedError(f"{kind} does not support the hamming metric", expected="IVF_FLAT, IVF_HNSW_FLAT")
        dim = int(type_.list_size)
        centroids = None if "ivf_centroids" not in values else _centroids(values["ivf_centroids"], dim, metric)
        count = _number(values, "num_partitions", 1, MOST_PARTITIONS)
        if centroids is not None:
            if count is not None and count != len(centroids):
                raise InvalidInputError("num_partitions", expected=f"{len(centroids)}, as ivf_centroids", found=count)
            count = len(centroids)
        settings: dict[str, Any] = {}
        if kind.endswith("PQ"):
            settings = _product(values, dim)
        elif kind == "IVF_RQ":
            settings = {"bits": _number(values, "num_bits", 1, MOST_BITS) or DEFAULT_BITS}
            if dim % 8:
                raise InvalidInputError("dimension", where=kind, expected="a multiple of 8", found=dim)
        elif _number(values, "num_bits", 1, 8) not in (None, 8):
            raise InvalidInputError("num_bits", where=kind, expected=8, found=values["num_bits"])
        for name, most in (("m", 1024), ("ef_construction", 1 << 20), ("max_level", 64)):
            if name in values:
                settings[name] = _number(values, name, 2 if name == "m" else 1, most)
        for name in ("sample_rate", "max_iters"):
            if name in values:
                settings[name] = _number(values, name, 2 if name == "sample_rate" else 1, 1 << 20)
        if "sq_bounds" in values and kind.endswith("SQ"):
            settings["bounds"] = _bounds(values["sq_bounds"])
        settings["asked_partitions"] = _number(
            {"asked_partitions": count or 0, **values}, "asked_partitions", 0, 1 << 32
        )
        settings["trained_rows"] = _number(values, "trained_rows", 0, 1 << 62) or 0
        target = _number(values, "target_partition_size", 1, 1 << 40)
        return cls(kind, metric, dim, count, target, centroids=centroids, **settings)

    @property
    def has_graphs(self) -> bool:
        """Whether partitions have graphs."""
        return "HNSW" in self.kind

    @property
    def storage(self) -> str:
        """Kind of storage: "FLAT", "SQ", "PQ" or "RQ"."""
        return self.kind.rpartition("_")[2]

    @property
    def is_trained(self) -> bool:
        """Whether the specification is complete, so that vectors can be encoded without training."""
        parameter = {"PQ": self.codebook, "SQ": self.bounds, "FLAT": (), "RQ": ()}[self.storage]
        return self.centroids is not None and parameter is not None

    def partitions_for(self, num_rows: int) -> int:
        """Return the number of partitions for `num_rows` vectors: at most `num_rows`, unless centroids are given."""
        if self.centroids is not None:
            return len(self.centroids)
        count = self.num_partitions
        if count is None:
            target = self.target_partition_size
            default = _FAST_SCAN_TARGET if self.kind == "IVF_PQ" and self.bits == 4 else _TARGETS.get(self.kind)
            count = num_rows // (target or default or _GRAPH_TARGET)
            count = min(count, _MOST_BY_DEFAULT)
        return max(1, min(count, num_rows))

    def details(self) -> bytes:
        """Return the details message for the manifest."""
        message = index_pb2.VectorIndexDetails(metric_type=_METRICS[self.metric])  # type: ignore[arg-type]
        message.target_partition_size = self.target_partition_size or 0
        if self.asked_partitions:
            message.target_num_partitions = self.asked_partitions
        hints = {"lance.ivf.sample_rate": self.sample_rate, "lance.ivf.max_iters": self.max_iters}
        if self.has_graphs:
            message.hnsw_index_config.max_connections = self.m
            message.hnsw_index_config.construction_ef = self.ef_construction
            message.hnsw_index_config.max_level = self.max_level
        if self.storage == "PQ":
            message.pq.num_bits, message.pq.num_sub_vectors = self.bits, self.num_sub_vectors
            hints |= {"lance.pq.sample_rate": self.sample_rate, "lance.pq.max_iters": self.max_iters}
        elif self.storage == "SQ":
            message.sq.num_bits = 8
            hints["lance.sq.sample_rate"] = self.sample_rate
        elif self.storage == "RQ":
            message.rq.num_bits = self.bits
        else:
            message.flat.SetInParent()
        for key, value in hints.items():
            message.runtime_hints[key] = str(value)
        return with_trained_rows(message.SerializeToString(deterministic=True), self.trained_rows)


def check_metric(type_: pa.DataType, parameters: Mapping[str, Any]) -> None:
    """Raise UnsupportedError if a column has several vectors per row, and the metric is not cosine."""
    metric = metric_of(parameters.get("metric") or "l2")
    if is_multivector(type_) and metric != "cosine":
        raise UnsupportedError(
            f"an index on several vectors per row does not support metric {metric}",
            where=type_,
            expected="cosine",
            remedy='use metric="cosine", or search without an index',
        )


def _kind(name: Any) -> str:
    kind_name = name.upper() if isinstance(name, str) else ""
    if kind_name not in KINDS:
        raise UnsupportedError("unknown kind of vector index", expected=", ".join(KINDS), found=repr(name))
    return kind_name


def _number(parameters: Mapping[str, Any], name: str, least: int, most: int) -> int | None:
    value = parameters.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise InvalidInputError(name, expected=f"a whole number, {least} … {most}", found=repr(value))
    return int(value)


def _product(parameters: Mapping[str, Any], dim: int) -> dict[str, Any]:
    """Return the checked settings of product quantisation."""
    bits = _number(parameters, "num_bits", 1, 8) or 8
    if bits not in (4, 8):
        raise InvalidInputError("num_bits", expected="4 or 8", found=bits)
    parts = _number(parameters, "num_sub_vectors", 1, dim)
    codebook = None
    if "pq_codebook" in parameters:
        codebook = _codebook(parameters["pq_codebook"], dim, bits, parts)
        parts = len(codebook)
    if parts is None:
        sizes = (16, 8, 4, 2, 1) if bits == 8 else (2, 1)
        parts = next(dim // size for size in sizes if dim % size == 0 and dim // size * bits % 8 == 0)
    if dim % parts or parts * bits % 8:
        raise InvalidInputError(
            "num_sub_vectors",
            expected=f"a divisor of the dimension {dim}" + (", even" if bits == 4 else ""),
            found=parts,
        )
    return {"num_sub_vectors": parts, "bits": bits, "codebook": codebook}


def _centroids(value: Any, dim: int, metric: str) -> NDArray[Any]:
    """Return a user's centroids, from an array (partitions, dim) or an Arrow array of vectors."""
    numbers = _numbers(value, "ivf_centroids")
    if numbers.ndim == 1 and len(numbers) == dim:
        numbers = numbers.reshape(1, dim)
    if numbers.ndim != 2 or numbers.shape[1] != dim or not 0 < len(numbers) <= MOST_PARTITIONS:
        raise InvalidInputError("ivf_centroids", expected=f"(partitions, {dim}) numbers", found=numbers.shape)
    if metric != "hamming":
        return np.ascontiguousarray(numbers, np.float32)
    if not np.array_equal(numbers, np.clip(numbers, 0, 255).astype(np.uint8)):
        raise InvalidInputError("ivf_centroids", where="hamming", expected="whole numbers from 0 to 255")
    return np.ascontiguousarray(numbers, np.uint8)


def _codebook(value: Any, dim: int, bits: int, parts: int | None) -> NDArray[np.float32]:
    """Return a user's codebook as an array (parts, 2 ** bits, dim / parts). Accepts other shapes of the same size."""
    numbers = _numbers(value, "pq_codebook")
    num_parts = parts
    if num_parts is not None and numbers.shape == (1 << bits, dim):  # the shape in a `PqModel`
        numbers = numbers.reshape(-1)
    if num_parts is None and numbers.ndim > 1 and numbers.shape[-1]:
        num_parts = dim // numbers.shape[-1]
    expected = None if not num_parts or dim % num_parts else (num_parts, 1 << bits, dim // num_parts)
    fits = expected is not None and numbers.size == dim << bits
    if not fits or expected is None or (numbers.ndim > 1 and numbers.shape[-1] != expected[2]):
        raise InvalidInputError("pq_codebook", expected=expected or f"{dim << bits} numbers", found=numbers.shape)
    if numbers.ndim == 3 and numbers.shape != expected:
        raise InvalidInputError("pq_codebook", expected=expected, found=numbers.shape)
    return np.ascontiguousarray(numbers, np.float32).reshape(expected)


def _bounds(value: Any) -> tuple[float, float]:
    """Return a user's bounds of SQ: two finite numbers, the lower one first."""
    numbers = _numbers(value, "sq_bounds")
    if numbers.shape != (2,) or not numbers[0] < numbers[1]:
        raise InvalidInputError("sq_bounds", expected="a number, and a greater one", found=repr(value))
    return float(numbers[0]), float(numbers[1])


def _numbers(value: Any, name: str) -> NDArray[Any]:
    """Convert a numpy array, an Arrow array (lists, tensors), or nested lists to finite numbers."""
    try:
        numbers = np.asarray(_from_arrow(value))
        with np.errstate(over="ignore"):
            finite = np.isfinite(numbers.astype(np.float32)).all()
    except (TypeError, ValueError, pa.ArrowInvalid) as error:
        raise InvalidInputError(name, expected="an array of numbers", found=str(error)) from error
    if numbers.dtype.kind not in "fiu" or not finite:
        raise InvalidInputError(name, expected="finite numbers", found=numbers.dtype if finite else "NaN or infinity")
    return numbers


def _from_arrow(value: Any) -> Any:
    """Convert an Arrow array to a form that numpy accepts. Other values are returned unchanged."""
    if isinstance(value, pa.ChunkedArray):
        value = value.combine_chunks()
    if isinstance(value, pa.FixedShapeTensorArray):
        return value.to_numpy_ndarray()
    if not isinstance(value, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray):
        return value
    items = value.flatten()
    if value.null_count or items.null_count:
        raise ValueError("null")
    lengths = np.unique(value.value_lengths())
    if len(lengths) > 1:
        raise ValueError("the vectors have different lengths")
    return items.to_numpy(zero_copy_only=False).reshape(len(value), -1 if len(value) else 0)
