"""RaBitQ: signs and further bits of rotated residuals (vector minus centroid), and factors that correct distances.

    _rabit_codes, __blocked_ex_codes                      see `index.vector.codecs.rq_codes`; __blocked_ex_codes only
                                                          with more than one bit
    __add_factors, __scale_factors, __error_factors       float32, from the signs alone; writers before pylance 8 did
                                                          not write __error_factors
    __add_factors_ex, __scale_factors_ex                  float32, from all bits; only with more than one bit
    metadata   {"rotation_type", "fast_rotation_signs", "rotate_mat_position", "code_dim", "num_bits", "packed",
               "query_estimator"}; with a matrix, global buffer "rotate_mat_position" is a Tensor message

Let c be the rotated centroid and r the rotated residual. Let b be the signs minus 1 / 2, v the number in the e further
bits, and f = 2 ** e signs + v - (2 ** e - 1 / 2). For l2, and for cosine with normalised vectors, the distance from a
rotated query q is ⟨q, f⟩ scale_ex + add_ex + |q - c|². For dot, it is ⟨q, f⟩ scale_ex + add_ex - ⟨q, c⟩. The factors
from the signs are:

               l2, cosine                             dot
    scale      -2 |r|² / ⟨r, b⟩                       -|r|² / ⟨r, b⟩
    add        |r|² + 2 |r|² ⟨c, b⟩ / ⟨r, b⟩          1 - ⟨r, c⟩ + |r|² ⟨c, b⟩ / ⟨r, b⟩
    error      3.8 |r| √((|r|² dim / 4 / ⟨r, b⟩² - 1) / (dim - 1))        half of the value for l2

In the factors from all bits, f replaces b. If "query_estimator" is "residual", as before pylance 8, add is |r|² for l2
and cosine, and 1 - ⟨r, c⟩ for dot, and scale is multiplied by √dim / 2.

A row in memory consists of the signs, the further bits and the factors, in this order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck import lazy
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.index.files import SegmentFile
from lance_duck.index.vector.codecs.rotation import ROUNDS, Rotation
from lance_duck.index.vector.codecs.rq_codes import blocked_extra, blocked_width, extra_of, packed_signs, signs_of
from lance_duck.index.vector.costs import LOAD_BYTES
from lance_duck.index.vector.layout import array_of, json_integer, tensor_of
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.vectors.rotate import sum_weights

if TYPE_CHECKING:
    from lance_duck.index.vector import library
else:
    library = lazy.modules(globals(), "lance_duck.index.vector", "library")

Bytes = NDArray[np.uint8]

SIGNS: Final = "_rabit_codes"
EXTRA: Final = "__blocked_ex_codes"
MOST_BITS: Final = 9
_PLAIN: Final = ("__add_factors", "__scale_factors")
_ERROR: Final = "__error_factors"
_OF_ALL: Final = ("__add_factors_ex", "__scale_factors_ex")
QUERY_BITS: Final = 8
"""Bits per number to which faiss rounds rotated queries."""


@dataclass(frozen=True, eq=False)
class Rounding:
    """The rotation and rounding of the vectors of a segment.

    Attributes:
        bits: Bits per number, 1 … 9.
        rotation: Rotation of vectors before they are rounded.
        of_residual: Whether the factors expect queries minus the centroid. Otherwise, they expect the queries
            themselves.
        has_error: Whether rows have an error factor.
    """

    bits: int
    rotation: Rotation
    of_residual: bool = False
    has_error: bool = True

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return self.rotation.dim

    @property
    def extra(self) -> int:
        """Bits per number, without the sign."""
        return self.bits - 1

    @property
    def width(self) -> int:
        """Size of a row in memory, in bytes."""
        return self.dim // 8 * self.bits + 4 * len(self.factors)

    @cached_property
    def factors(self) -> tuple[str, ...]:
        """Names of the factor columns."""
        return (*_PLAIN, *((_ERROR,) if self.has_error else ()), *(_OF_ALL if self.extra else ()))

    @cached_property
    def codes(self) -> dict[str, int]:
        """Bytes per row of each code column, by name."""
        widths = {SIGNS: self.dim // 8}
        return widths | {EXTRA: blocked_width(self.dim, self.extra)} if self.extra else widths

    @property
    def fields(self) -> list[pa.Field]:
        """Columns of a file, in order."""
        codes = {
            name: pa.field(name, pa.list_(pa.field("item", pa.uint8()), size)) for name, size in self.codes.items()
        }
        factors = [pa.field(name, pa.float32()) for name in self.factors]
        plain = len(factors) - (len(_OF_ALL) if self.extra else 0)
        further = [codes[EXTRA]] if self.extra else []
        return [codes[SIGNS], *factors[:plain], *further, *factors[plain:]]

    def rows(self, columns: Mapping[str, NDArray[Any]], count: int) -> Bytes:
        """Return the rows of a partition, uint8 (count, width).

        Args:
            columns: Columns by name: uint8 (count, …) for codes, float32 (count,) for factors.
            count: Number of rows.
        """
        parts = [signs_of(columns[SIGNS])]
        if self.extra:
            step = max(1, LOAD_BYTES // (8 * self.codes[EXTRA]))
            column = columns[EXTRA]
            pieces = [column[first : first + step] for first in range(0, count, step)]
            parts += [np.concatenate([extra_of(piece, self.dim, self.extra) for piece in pieces])]
        factors = np.stack([columns[name] for name in self.factors], axis=1)
        return np.hstack([*parts, np.ascontiguousarray(factors, "<f4").view(np.uint8)])

    def columns(self, rows: Bytes) -> dict[str, NDArray[Any]]:
        """Return the file columns of a partition's rows, the inverse of `rows`."""
        columns: dict[str, NDArray[Any]] = {SIGNS: packed_signs(self.signs(rows))}
        if self.extra:
            columns[EXTRA] = blocked_extra(self.further(rows), self.dim, self.extra)
        factors = self.factors_of(rows)
        return columns | {name: np.ascontiguousarray(factors[:, i]) for i, name in enumerate(self.factors)}

    def signs(self, rows: Bytes) -> Bytes:
        """Return the signs of rows, uint8 (n, dim / 8)."""
        return rows[:, : self.dim // 8]

    def further(self, rows: Bytes) -> Bytes:
        """Return the further bits of rows, which follow the signs: uint8 (n, dim * extra / 8)."""
        return rows[:, self.dim // 8 : self.dim // 8 * self.bits]

    def factors_of(self, rows: Bytes) -> NDArray[np.float32]:
        """Return the factors of rows, float32 (n, factors)."""
        raw = np.ascontiguousarray(rows[:, self.dim // 8 * self.bits :])
        return raw.view("<f4").astype(np.float32, copy=False)

    def equals(self, other: Rounding | None) -> bool:
        """Return whether rows have the same meaning with both roundings."""
        return (
            other is not None
            and (self.bits, self.of_residual, self.has_error) == (other.bits, other.of_residual, other.has_error)
            and self.rotation.equals(other.rotation)
        )


def rounding_of(file: SegmentFile, metadata: Mapping[str, Any], dim: int) -> Rounding:
    """Return the rounding that the metadata of a segment describes.

    Raises:
        CorruptError: The metadata contradicts itself or the dimension.
        UnsupportedError: The metadata has values that no known writer writes.
    """
    where = file.path
    bits = 1 if metadata.get("num_bits") is None else json_integer(metadata, "num_bits", 1, MOST_BITS, where)
    if dim % 8:
        raise CorruptError("the dimension is not a multiple of 8", where=where, expected="a multiple of 8", found=dim)
    if metadata.get("packed") is not True:
        raise UnsupportedError("unpacked codes are not supported", where=where, found=repr(metadata.get("packed")))
    estimator = metadata.get("query_estimator") or "residual"
    if estimator not in ("residual", "raw_query") or (estimator == "residual" and bits > 1):
        raise UnsupportedError("the query_estimator is not supported", where=where, found=f"{estimator!r}, {bits} bits")
    rounding = Rounding(bits, _rotation_of(file, metadata, dim), estimator == "residual", _ERROR in file.schema.names)
    if bits > 1 and not rounding.has_error:
        raise CorruptError(f"column {_ERROR!r} is missing", where=where, found=f"{bits} bits")
    return rounding


def _rotation_of(file: SegmentFile, metadata: Mapping[str, Any], dim: int) -> Rotation:
    where = file.path
    kind = metadata.get("rotation_type") or "matrix"
    if kind == "fast":
        signs = metadata.get("fast_rotation_signs")
        if not isinstance(signs, list) or len(signs) != ROUNDS * dim // 8:
            raise CorruptError(
                "fast_rotation_signs has the wrong length", where=where, expected=f"{ROUNDS * dim // 8} bytes"
            )
        if not all(type(sign) is int and 0 <= sign < 256 for sign in signs):
            raise CorruptError(
                "fast_rotation_signs contains values that are not bytes", where=where, expected="0 … 255"
            )
        return Rotation("fast", np.array(signs, np.uint8))
    if kind != "matrix":
        raise UnsupportedError(
            "the rotation_type is not supported", where=where, expected="fast, matrix", found=repr(kind)
        )
    position = json_integer(metadata, "rotate_mat_position", 1, 1 << 31, where)
    matrix = array_of(tensor_of(file.global_buffer(position), where), where)
    if matrix.dtype != np.float32 or matrix.shape != (dim, dim) or not np.isfinite(matrix).all():
        raise CorruptError("invalid rotation matrix", where=where, expected=(dim, dim), found=matrix.shape)
    return Rotation("matrix", matrix)


def rabit_lists(rounding: Rounding, num_partitions: int, quantizer: Any, metric: int) -> Any:
    """Return a faiss index with empty lists.

    Args:
        rounding: Rounding of the rows.
        num_partitions: Number of lists.
        quantizer: faiss index of the rotated centroids; must outlive the result.
        metric: faiss.METRIC_L2 or faiss.METRIC_INNER_PRODUCT.
    """
    index = library.faiss.IndexIVFRaBitQ(quantizer, rounding.dim, num_partitions, metric, False, rounding.bits)
    index.qb = QUERY_BITS
    index.is_trained = True
    return index


def rabit_bytes(rounding: Rounding, rows: Bytes, centroid: NDArray[np.float32], metric: str) -> Bytes:
    """Convert the rows of a partition to the byte layout of faiss, uint8 (n, code size), C-contiguous.

    Args:
        rounding: Rounding of the rows.
        rows: Rows from `Rounding.rows`.
        centroid: float32 (dim,), rotated.
        metric: "l2", "cosine" or "dot".
    """
    named = dict(zip(rounding.factors, rounding.factors_of(rows).T, strict=True))
    add, scale = (named[name] for name in _PLAIN)
    signs = _products(rounding.signs(rows), centroid[:, None])
    total, root = np.float32(centroid.sum(dtype=np.float64)), np.float32(np.sqrt(rounding.dim))
    if rounding.of_residual:
        offset, scale = add, scale * 2 / root
    else:
        offset = add + scale * (signs - total / 2)
    if metric == "dot":
        first = [-(2 * (1 - offset) + centroid @ centroid), -scale * root / 2]
    else:
        first = [offset, -scale * root / 4]
    parts = [rounding.signs(rows), _floats(first + ([named[_ERROR]] if rounding.extra else []))]
    if rounding.extra:
        add, scale = (named[name] for name in _OF_ALL)
        size = np.float32(1 << rounding.extra)
        places = (np.float32(1) * (1 << np.arange(rounding.extra)))[None, :]
        products = size * signs + _products(rounding.further(rows), centroid[:, None] * places)
        offset = add + scale * (products - (size - np.float32(0.5)) * total)
        parts += [rounding.further(rows), _floats([1 - offset, -scale] if metric == "dot" else [offset, scale])]
    return np.ascontiguousarray(np.hstack(parts))


def _products(bits: Bytes, weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the sum of the weights of each row's set bits. The result for a row never depends on other rows."""
    sums = np.empty(len(bits), np.float32)
    sum_weights(readonly(bits), readonly(np.ascontiguousarray(weights, np.float32).reshape(-1)), sums)
    return sums


def _floats(columns: Sequence[NDArray[np.float32]]) -> Bytes:
    return np.ascontiguousarray(np.stack(columns, axis=1), "<f4").view(np.uint8)
