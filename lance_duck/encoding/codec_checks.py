"""Checks shared by codecs: supported forms of an encoding, and value counts that fit the available bytes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.types import MAX_INT32
from lance_duck.encoding.block import Block, FixedWidth, VariableWidth
from lance_duck.encoding.codec import Chunks
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.kernels.memory import Bytes

MAX_VALUES: Final = 1 << 48
MOST_UNSTORED: Final = 1 << 24
"""Maximum number of values in a chunk if the chunk's size in bytes does not limit them, as in long runs.

This limits memory use. Writers do not exceed 2^15 values per chunk.
"""
WORDS: Final[dict[int, np.dtype[Any]]] = {
    8: np.dtype("u1"),
    16: np.dtype("<u2"),
    32: np.dtype("<u4"),
    64: np.dtype("<u8"),
}
"""Maps the width of an unsigned word, in bits, to its dtype."""


def no_form(encoding: str, form: str) -> UnsupportedError:
    """Return the error for an encoding that the format does not define for a form of data, such as "miniblock"."""
    return UnsupportedError(f"the format does not define {encoding} encoding for {form} data", where="page encoding")


def one_chunk(buffer: Bytes, count: int) -> Chunks:
    """Return a buffer as a single chunk. Raises CorruptError for a count that no buffer can hold."""
    if not 0 <= count <= MAX_VALUES:
        raise CorruptError("the value count is out of range", where="page", expected=f"0 to {MAX_VALUES}", found=count)
    starts = np.zeros((1, 1), np.int64)
    return Chunks(buffer, starts, np.array([[len(buffer)]], np.int64), np.array([count], np.int64))


def justified(counts: NDArray[np.int64], most: NDArray[np.int64], encoding: str) -> int:
    """Return the sum of `counts`.

    Args:
        counts: int64 (k,), number of value slots in each chunk.
        most: int64 (k,), number of values that each chunk's bytes can hold.
        encoding: Name of the encoding, for the error.

    Raises:
        CorruptError: A chunk claims more values than its bytes can hold.
    """
    excess = (counts < 0) | (counts > most)
    if excess.any():
        chunk = int(excess.argmax())
        raise CorruptError(
            "the value count exceeds what the bytes can hold",
            where=f"{encoding} encoding, chunk {chunk}",
            expected=f"at most {most[chunk]}",
            found=int(counts[chunk]),
        )
    return int(counts.sum())


def words_at(data: Bytes, places: NDArray[np.int64], word: np.dtype[Any]) -> NDArray[Any]:
    """Return the words at the byte offsets `places`, which the caller has checked."""
    words: NDArray[Any] = data[places[:, None] + np.arange(word.itemsize)].reshape(-1).view(word)
    return words


def fixed_values(values: Block, bits: int, encoding: str) -> FixedWidth:
    """Return `values` if they are FixedWidth of `bits` bits. Otherwise, raises CorruptError."""
    if not isinstance(values, FixedWidth):
        raise CorruptError("the values are not fixed-width", where=f"{encoding} encoding", expected=f"{bits} bits")
    if values.bits != bits:
        raise CorruptError(
            "the values have the wrong width", where=f"{encoding} encoding", expected=f"{bits} bits", found=values.bits
        )
    return values


def unsigned_words(values: Block, bits: int, encoding: str) -> NDArray[Any]:
    """Return `values` as read-only unsigned words if they are FixedWidth of `bits` bits, or raise CorruptError."""
    fixed = fixed_values(values, bits, encoding)
    words: NDArray[Any] = np.ascontiguousarray(fixed.data[: fixed.count * bits // 8]).view(WORDS[bits])
    words.flags.writeable = False
    return words


def variable_values(values: Block, encoding: str) -> VariableWidth:
    """Return `values` if they are VariableWidth. Otherwise, raises CorruptError."""
    if not isinstance(values, VariableWidth):
        raise CorruptError("the values are not variable-width", where=f"{encoding} encoding")
    return values


def narrow_offsets(offsets: NDArray[Any], size: int) -> NDArray[Any]:
    """Return `offsets` as int32 if `size` bytes of data allow it."""
    return offsets.astype(np.int32) if size <= MAX_INT32 and offsets.dtype != np.int32 else offsets
