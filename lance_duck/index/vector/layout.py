"""The files of a vector segment, and parsers that check their metadata: JSON texts, IVF messages and tensors.

index.idx       schema metadata    lance:index = {"type": "IVF_PQ", "distance_type": "l2"}
                global buffer 1    IVF message: centroids_tensor (partitions, dim), loss, and the ranges of the
                                   partitions' rows in this file
                rows               only with graphs: see `index.vector.graph.rows`, which also describes lance:hnsw
auxiliary.idx   schema metadata    distance_type; storage_metadata = a JSON array of one JSON string
                global buffer 1    IVF message: offsets and lengths of the partitions in this file
                global buffer 2    with PQ: the codebook, a Tensor message, float32 [sub-vectors][2 ** bits][dim /
                                   sub-vectors]
                rows               _rowid (uint64), and the vectors or their codes, partition by partition
                                   flat       fixed_size_list<float, dim>; normalised for cosine
                                   __sq_code  fixed_size_list<uint8, dim>
                                   __pq_code  fixed_size_list<uint8, code size in bytes>, each partition transposed
                                   _rabit_codes and others: see `index.vector.codecs.rq`
recall.json     recalls of searches, see `verbs.indexes.segment_orders`; may be missing

SQ (scalar quantisation) stores each number as one byte. All numbers share the two bounds start and end:
    metadata       {"dim", "num_bits": 8, "bounds": {"start", "end"}}
    code c         255 (x - start) / (end - start), truncated. It represents the numbers from
                   start + c (end - start) / 255 up to the first number of code c + 1

PQ (product quantisation) splits a vector into sub-vectors. For each, it stores the index of the nearest sub-vector in
the codebook, which has 256 or 16 of them to choose from:
    metadata       {"codebook_position", "nbits", "num_sub_vectors", "dimension", "transposed"}
    a partition    byte 0 of all its rows, then byte 1, …; with 4 bits a byte has two sub-vectors, the lower half first
For l2 and cosine, PQ encodes the residual, which is the vector minus its centroid. For dot, it encodes the vector.

Segments of writers before 0.22 consist of one file: see `index.vector.one_file`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.index.vector.vectors import bfloat16_to_float32
from lance_duck.wire.pb import index_pb2

INDEX_FILE: Final = "index.idx"
STORAGE_FILE: Final = "auxiliary.idx"
RECALL_FILE: Final = "recall.json"
ROW_ID: Final = "_rowid"
COLUMNS: Final = {"FLAT": "flat", "SQ": "__sq_code", "PQ": "__pq_code"}
"""Code column of each storage kind. RQ has several code columns."""
KINDS: Final = (*(f"IVF_{graph}{storage}" for graph in ("", "HNSW_") for storage in COLUMNS), "IVF_RQ")
"""Index types that can be read."""
MOST_DIMENSIONS: Final = 1 << 20
MOST_PARTITIONS: Final = 1 << 24
_DTYPES: Final[Mapping[int, np.dtype[Any]]] = MappingProxyType(
    {
        index_pb2.Tensor.BFLOAT16: np.dtype("<u2"),
        index_pb2.Tensor.FLOAT16: np.dtype("<f2"),
        index_pb2.Tensor.FLOAT32: np.dtype("<f4"),
        index_pb2.Tensor.FLOAT64: np.dtype("<f8"),
        index_pb2.Tensor.UINT8: np.dtype("u1"),
    }
)


@dataclass(frozen=True)
class Span:
    """A row range of adjacent partitions that are read together.

    Attributes:
        rows: Row range of all these partitions.
        parts: First row of each partition, relative to the span, and its row count.
    """

    rows: slice
    parts: list[tuple[int, int]]


@dataclass(frozen=True)
class Partitions:
    """The row range of each partition in a file.

    Attributes:
        offsets: int64 (partitions,): first row of each partition; undefined for empty partitions.
        lengths: int64 (partitions,): number of rows of each partition.
    """

    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.lengths)

    def rows(self, partition: int) -> slice:
        """Return the rows of a partition."""
        first = int(self.offsets[partition])
        return slice(first, first + int(self.lengths[partition]))

    def owners(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the partition of each row position, in the shape of `positions`. Each row must be in a partition."""
        filled = np.flatnonzero(self.lengths)
        ends = (self.offsets + self.lengths)[filled]
        by_storage = np.argsort(ends, kind="stable")
        owners: NDArray[np.int64] = filled[by_storage][np.searchsorted(ends[by_storage], positions, "right")]
        return owners

    def spans(self, partitions: Sequence[int]) -> list[Span]:
        """Return the spans that contain the given partitions, in order. Adjacent partitions share a span."""
        spans: list[Span] = []
        for partition in partitions:
            rows = self.rows(partition)
            count = rows.stop - rows.start
            last = spans[-1] if spans else None
            if last is None or (count and rows.start != last.rows.stop):
                spans.append(Span(rows, [(0, count)]))
                continue
            last.parts.append((last.rows.stop - last.rows.start, count))
            spans[-1] = replace(last, rows=slice(last.rows.start, last.rows.stop + count))
        return spans


def json_of(metadata: Mapping[str, str], key: str, type_: type, where: str) -> Any:
    """Return the JSON value of a key.

    Raises:
        CorruptError: The value is missing, is not JSON, or has the wrong type.
    """
    if key not in metadata:
        raise CorruptError(f"metadata {key!r} is missing", where=where, found=", ".join(metadata))
    return parsed(metadata[key], type_, f"{where}: {key}")


def parsed(text: Any, type_: type, where: str) -> Any:
    """Return the value of a JSON text. Raises CorruptError if it is invalid or has the wrong type."""
    try:
        value = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptError("invalid JSON", where=where, found=str(error)[:200]) from error
    if not isinstance(value, type_):
        raise CorruptError(
            "the JSON value has the wrong type", where=where, expected=type_.__name__, found=type(value).__name__
        )
    return value


def json_integer(of: Mapping[str, Any], key: str, low: int, high: int, where: str) -> int:
    """Return a JSON object's integer, from `low` to `high`. Raises CorruptError if it is missing or invalid."""
    value = of.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise CorruptError(f"{key} is not a valid integer", where=where, expected=f"{low} … {high}", found=repr(value))
    return value


def real(of: Mapping[str, Any], key: str, where: str) -> float:
    """Return a finite number of a JSON object. Raises CorruptError if it is missing or invalid."""
    value = of.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CorruptError(f"{key} is not a number", where=where, expected="a finite number", found=repr(value))
    try:
        number = float(value)
    except OverflowError as error:
        raise CorruptError(
            f"{key} is not finite", where=where, expected="a finite number", found=repr(value)
        ) from error
    if not math.isfinite(number):
        raise CorruptError(f"{key} is not finite", where=where, expected="a finite number", found=repr(value))
    return number


def ivf_of(data: bytes, where: str) -> index_pb2.IVF:
    """Parse an IVF message. Raises CorruptError if it is invalid."""
    try:
        return index_pb2.IVF.FromString(data)
    except DecodeError as error:
        raise CorruptError("the IVF message cannot be parsed", where=where, found=str(error)) from error


def tensor_of(data: bytes, where: str) -> index_pb2.Tensor:
    """Parse a Tensor message. Raises CorruptError if it is invalid."""
    try:
        return index_pb2.Tensor.FromString(data)
    except DecodeError as error:
        raise CorruptError("the Tensor message cannot be parsed", where=where, found=str(error)) from error


def partition_ranges(ivf: index_pb2.IVF, num_rows: int, where: str, *, all_rows: bool) -> Partitions:
    """Return the row ranges of a file's partitions. The ranges must be disjoint and lie within the file.

    Args:
        ivf: IVF message of the file.
        num_rows: Number of rows of the file.
        where: Path for error messages.
        all_rows: Whether every row must be in a partition.

    Raises:
        CorruptError: The partitions overlap, extend past the last row, or do not contain all rows although they must.
    """
    if len(ivf.offsets) != len(ivf.lengths) or len(ivf.lengths) > MOST_PARTITIONS:
        raise CorruptError(
            "wrong partition count", where=where, expected=f"{len(ivf.offsets)} lengths", found=f"{len(ivf.lengths)}"
        )
    offsets, lengths = np.array(ivf.offsets, np.uint64), np.array(ivf.lengths, np.int64)
    filled = np.flatnonzero(lengths)
    if len(filled):
        if int(offsets[filled].max()) > num_rows:
            raise CorruptError(
                "invalid first row of a partition", where=where, expected=f"≤ {num_rows}", found=offsets.max()
            )
        firsts = offsets[filled].astype(np.int64)
        ends = firsts + lengths[filled]
        if (firsts[1:] < ends[:-1]).any() or ends[-1] > num_rows:
            raise CorruptError("partitions overlap, or end after the rows", where=where, expected=f"{num_rows} rows")
    if all_rows and int(lengths.sum()) != num_rows:
        raise CorruptError(
            "wrong row count of the partitions", where=where, expected=num_rows, found=int(lengths.sum())
        )
    offsets[lengths == 0] = 0
    return Partitions(offsets.astype(np.int64), lengths)


def number_of(tensor: index_pb2.Tensor) -> np.dtype[Any]:
    """Return the dtype for the numbers of a tensor. bfloat16 numbers are converted to float32."""
    is_halved = tensor.data_type == index_pb2.Tensor.BFLOAT16
    return np.dtype(np.float32) if is_halved else _DTYPES.get(tensor.data_type, np.dtype(np.float32))


def array_of(tensor: index_pb2.Tensor, where: str) -> NDArray[Any]:
    """Return a tensor as a read-only array: uint8 if it contains bytes, otherwise float32.

    Raises:
        CorruptError: The shape of the tensor contradicts its bytes.
        UnsupportedError: The type of the tensor is not supported.
    """
    dtype = _DTYPES.get(tensor.data_type)
    if dtype is None:
        raise UnsupportedError("unknown tensor type", where=where, expected="floats or uint8", found=tensor.data_type)
    shape = tuple(tensor.shape)
    size = math.prod(shape) * dtype.itemsize
    if len(shape) != 2 or size != len(tensor.data):
        raise CorruptError("invalid tensor shape", where=where, expected=f"{len(tensor.data)} bytes", found=shape)
    raw = np.frombuffer(tensor.data, dtype).reshape(shape)
    if tensor.data_type == index_pb2.Tensor.BFLOAT16:
        return bfloat16_to_float32(raw)
    if dtype == np.uint8:
        return raw
    with np.errstate(over="ignore"):
        floats: NDArray[np.float32] = np.ascontiguousarray(raw, np.float32)
    return floats
