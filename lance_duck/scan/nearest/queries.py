"""Converts lists, numpy arrays and Arrow values to query vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import InvalidInputError, LanceDuckError, WrongTypeError

_WHERE = "nearest q"
_FLOAT32: Final = np.dtype(np.float32)


@dataclass(frozen=True, eq=False)
class Queries:
    """The queries of a search.

    Attributes:
        vectors: (n, dim), C-contiguous. The dtype is float64 for a float64 column, uint8 for bits, otherwise float32.
        is_batch: Whether the caller passed a batch of queries, even if it contains only one query.
        is_one: Whether all vectors form one query, for rows that contain several vectors.
    """

    vectors: NDArray[Any]
    is_batch: bool
    is_one: bool = False

    def __len__(self) -> int:
        return 1 if self.is_one else len(self.vectors)


def is_single_query(q: Any, dim: int, dtype: np.dtype[Any]) -> bool:
    """Return whether a value is a single query in the form in which it is searched, float32 or uint8.

    Args:
        q: The value.
        dim: Required number of dimensions.
        dtype: See `query_vectors`.
    """
    if type(q) is not np.ndarray or q.dtype != dtype or q.shape != (dim,) or not q.flags.c_contiguous:
        return False
    if dtype != _FLOAT32:
        return bool(dtype == np.uint8)
    return b"\0" not in np.isfinite(q).tobytes()  # half of the time of `all`


def query_vectors(q: Any, dim: int, dtype: np.dtype[Any]) -> Queries:
    """Return the caller's queries. A matrix is a batch of queries, even if it has a single row.

    Args:
        q: One query: a list or numpy array of numbers, or an Arrow array or scalar. Several queries: a list of these, a
            matrix, or an Arrow array of lists.
        dim: Required number of dimensions of each vector.
        dtype: float32, float64, or uint8 for vectors of bits.

    Raises:
        WrongTypeError: `q` does not consist of numbers.
        InvalidInputError: A vector is empty, has the wrong length, or contains a null, a NaN or a number that overflows
            float32. For bits, a number is not an integer from 0 to 255.
    """
    if is_single_query(q, dim, dtype):
        return Queries(q[None], False)
    numbers = _numbers(q)
    if numbers.ndim not in (1, 2) or not numbers.shape[0]:
        raise InvalidInputError(
            "query vectors", where=_WHERE, expected=f"{dim} numbers, or rows of them", found=f"shape {numbers.shape}"
        )
    if numbers.shape[-1] != dim:
        raise InvalidInputError(
            f"Query vector size {numbers.shape[-1]} does not match index column size {dim}", where=_WHERE
        )
    return Queries(np.ascontiguousarray(_fitting(np.atleast_2d(numbers), dtype)), numbers.ndim == 2)


def _fitting(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype == np.uint8:
        with np.errstate(invalid="ignore"):
            bits = values.astype(np.uint8)
        if not np.array_equal(bits, values):
            raise InvalidInputError("invalid binary query vector", where=_WHERE, expected="whole numbers from 0 to 255")
        return bits
    with np.errstate(over="ignore"):
        numbers = values.astype(np.float32)
    if not np.isfinite(numbers).all():
        wrong = values[~np.isfinite(numbers)].flat[0]
        if np.isfinite(wrong):
            raise InvalidInputError(
                "a number of the query vector exceeds float32",
                where=_WHERE,
                expected=f"finite numbers within ±{np.finfo(np.float32).max:.1e}",
                found=wrong,
            )
        raise InvalidInputError("query vector", where=_WHERE, expected="finite numbers", found=wrong)
    return numbers if dtype == np.float32 else values.astype(dtype)


def _numbers(q: Any) -> NDArray[Any]:
    """Return the query as an array of numbers."""
    try:
        numbers = _plain(q)
    except LanceDuckError:
        raise
    except (TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        lengths = isinstance(error, ValueError) and "inhomogeneous" in str(error)
        if lengths:
            raise InvalidInputError("All query vectors must have the same length", where=_WHERE) from error
        raise _not_numbers(q) from error
    if numbers.dtype.kind == "b":
        return numbers.astype(np.float32)
    if numbers.dtype.kind not in "fiu":
        raise _not_numbers(q)
    return numbers


def _plain(q: Any) -> NDArray[Any]:
    if isinstance(q, np.ndarray) and q.dtype != object:
        return q
    if isinstance(q, pa.ChunkedArray):
        q = q.combine_chunks()
    if isinstance(q, pa.Array):
        return _from_arrow(q)
    if isinstance(q, pa.Scalar):
        inner = q.value if isinstance(q, pa.ExtensionScalar) else q
        if not hasattr(inner, "values") or inner.values is None:
            raise _not_numbers(q)
        return _from_arrow(inner.values)
    if isinstance(q, Sequence | np.ndarray) and not isinstance(q, str | bytes):
        if any(each is None for each in q):
            raise InvalidInputError("null in a query vector", where=_WHERE)
        if len(q) and isinstance(q[0], pa.Array | pa.Scalar) and not _is_number(q[0]):
            return np.asarray([_plain(each) for each in q])
        return np.asarray([each.as_py() if isinstance(each, pa.Scalar) else each for each in q])
    if hasattr(q, "__array__"):
        return np.asarray(q)
    raise _not_numbers(q)


def _from_arrow(array: pa.Array) -> NDArray[Any]:
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    if array.null_count:
        raise InvalidInputError("null in a query vector", where=_WHERE)
    type_ = array.type
    if pa.types.is_fixed_size_list(type_) or pa.types.is_list(type_) or pa.types.is_large_list(type_):
        lengths = array.value_lengths().to_numpy() if not pa.types.is_fixed_size_list(type_) else [type_.list_size]
        if len(lengths) and any(length != lengths[0] for length in lengths):
            raise InvalidInputError("All query vectors must have the same length", where=_WHERE)
        return _from_arrow(array.flatten()).reshape(
            len(array), -1 if len(array) else int(lengths[0] if len(lengths) else 0)
        )
    numbers: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return numbers


def _is_number(value: Any) -> bool:
    return isinstance(value, pa.Scalar) and (pa.types.is_floating(value.type) or pa.types.is_integer(value.type))


def _not_numbers(q: Any) -> WrongTypeError:
    of = f" of {type(q[0]).__name__}" if isinstance(q, list | tuple) and q else ""
    return WrongTypeError(f"Query vectors should be an array of floats, got {type(q).__name__}{of}", where=_WHERE)
