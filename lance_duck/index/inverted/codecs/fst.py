"""The automaton of terms: a map from sorted terms to ids that is searched in its serialized form.

u64 version (1 … 3) | u64 0 | nodes | u64 number of terms | u64 address of the root | u32 masked CRC-32C (version 3)

The address of a node is the offset of its last byte, the state byte. The fields of the node are read backwards from
there. Address 0 stands for the final node that has neither transitions nor an output. The target of a transition is the
address of the node's first byte minus the delta. A delta of 0 stands for address 0. The id of a term is the sum of the
outputs on its path and the final output.

    11cccccc   one transition, to the node that ends just before; output 0: input byte if c = 0, else COMMON[c - 1]
    10cccccc   one transition: input byte if c = 0; sizes byte (bytes of the delta, 4 bits, bytes of the output,
               4 bits); delta; output
    0Fnnnnnn   any number of transitions; F: the node is final: count byte if n = 0 (1 means 256); sizes byte; if count
               > 32, from version 2 on, an index of 256 bytes (number of the transition for each input; a number ≥ count
               means that there is none); inputs, the last transition first; deltas; outputs; the final output if F is
               set and outputs have bytes

All numbers are little-endian. The checksum covers all bytes before it: CRC-32C rotated right by 15 bits, plus
0xa282ead8.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import CorruptError, InvalidInputError, UnsupportedError
from lance_duck.index.inverted.codecs.arrays import bytes_and_offsets, joined_values, large_binary
from lance_duck.kernels import status
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.postings import fst_build
from lance_duck.kernels.postings.fst import CRC_TABLES, NODE_FIELDS, crc32c, find_terms, list_terms
from lance_duck.kernels.postings.fst_near import STACK_FIELDS, near_terms

FST_SLOTS: Final = 1 << 12
"""Number of nodes that are remembered for sharing while the automaton is built. Compared with 2^12 nodes, the automaton
of 30,000 words is 8 % larger with 2^8 nodes, and 2 % larger with 2^18 nodes (`benchmarks/postings.py`)."""
LONGEST_WALKED: Final = 256
"""Maximum word length for fuzzy searches in the FST, in characters. Limits memory."""
COMMON: Final = b"te/oasripcnw.hlm-du012g=:bf3y5&_4v9678k%?xCDASFIBEjPTzRNM+LOqHG"
"""The most frequent input bytes, in descending order. In a state byte, c > 0 stands for COMMON[c - 1]."""

_HEAD: Final = struct.Struct("<QQ")
_TAIL: Final = struct.Struct("<QQ")
_CRC: Final = struct.Struct("<I")
_VERSION: Final = 3
_FIRST_DEPTH: Final = 64
_FIRST_COUNT: Final = 64
_COMMON: Final = readonly(np.frombuffer(COMMON, np.uint8))
_TABLES: Final = readonly(CRC_TABLES)


@dataclass(frozen=True, eq=False)
class Fst:
    """An FST with a validated header and footer. Nodes are validated when they are read.

    Attributes:
        where: Name of the file, for messages.
        num_terms: Number of terms, from the footer.
        nbytes: Size of the automaton in bytes.
    """

    where: str
    num_terms: int
    nbytes: int
    _nodes: NDArray[np.uint8]
    _root: int
    _has_index: bool

    def find(self, terms: Sequence[bytes]) -> NDArray[np.int64]:
        """Return the id of each term, read-only int64, or -1 if the FST does not contain it.

        Raises:
            CorruptError: A node on the path is corrupt.
        """
        keys, offsets = joined_values(terms)
        ids, node = np.empty(len(terms), np.int64), np.empty(NODE_FIELDS, np.int64)
        self._check(find_terms(*self._place, self.num_terms, keys, offsets, node, ids))
        ids.setflags(write=False)
        return ids

    def near(self, word: str, edits: int, fixed: int, most: int, *, is_open: bool = False) -> list[bytes] | None:
        """Return terms that are near a word, in byte order. If there are too many, returns the first ones.

        Args:
            word: The word.
            edits: Maximum number of edits (insert, delete, replace a character) from the word to a term.
            fixed: Number of leading characters that must be the same.
            most: Maximum number of terms.
            is_open: Whether the word is a prefix: any characters may follow it in a term.

        Returns:
            The terms. None if the FST is corrupt, a term is not UTF-8, or the word is too long.
        """
        if len(word) > LONGEST_WALKED:
            return None
        characters = readonly(np.frombuffer(word.encode("utf-32-le", "surrogatepass"), np.uint32))
        limits = np.minimum(np.array([edits, fixed, most, is_open], object), 1 << 32).astype(np.int64)
        depth, count = _FIRST_DEPTH, _FIRST_COUNT
        num_found = np.zeros(1, np.int64)
        while True:
            stack, rows = np.empty((depth, STACK_FIELDS), np.int64), np.empty((depth, len(characters) + 1), np.int64)
            key, keys = np.empty(depth, np.uint8), np.empty(16 * count, np.uint8)
            offsets = np.empty(count + 1, np.int64)
            code = near_terms(self._place, characters, limits, stack, rows, key, keys, offsets, num_found)
            if code == status.OK:
                break
            if code == status.TOO_SHORT and depth <= len(self._nodes):
                depth *= 4
            elif code == status.BAD_LENGTH and count <= 4 * self.num_terms + _FIRST_COUNT:
                count *= 4
            else:
                return None
        data, bounds = keys.tobytes(), offsets[: num_found[0] + 1].tolist()
        return [data[low:high] for low, high in pairwise(bounds)]

    def terms(self, num_bytes: int) -> tuple[pa.LargeBinaryArray, NDArray[np.int64]]:
        """Return all terms in byte order, and their ids, which are the numbers below `num_terms` in any order.

        Args:
            num_bytes: Total size of the terms according to the file, in bytes.

        Raises:
            CorruptError: The nodes are corrupt, or do not contain these terms.
        """
        none = np.empty(0, np.int64)
        totals = np.array([self.num_terms, min(num_bytes, np.iinfo(np.int64).max), 0], np.int64)
        self._list(np.empty(0, np.uint8), none, none, totals, is_counting=True)
        if totals[0] != self.num_terms or totals[1] != num_bytes:
            raise CorruptError(
                "wrong term count",
                where=self.where,
                expected=f"{self.num_terms} of {num_bytes} bytes",
                found=f"{totals[0]} of {totals[1]}",
            )
        keys = np.empty(num_bytes, np.uint8)
        offsets, ids = np.zeros(self.num_terms + 1, np.int64), np.empty(self.num_terms, np.int64)
        self._list(keys, offsets, ids, totals, is_counting=False)
        if len(ids) and (ids.min() < 0 or ids.max() >= len(ids) or (np.bincount(ids, minlength=len(ids)) != 1).any()):
            raise CorruptError("invalid term ids", where=self.where, expected=f"each of 0 … {len(ids) - 1} once")
        return large_binary(keys, offsets), ids

    def _list(self, keys: Any, offsets: Any, ids: Any, totals: NDArray[np.int64], *, is_counting: bool) -> None:
        depth, most = _FIRST_DEPTH, totals.copy()
        while True:
            stack, key = np.empty((depth, NODE_FIELDS + 2), np.int64), np.empty(depth, np.uint8)
            totals[:] = most
            code = list_terms(*self._place, stack, key, keys, offsets, ids, totals, is_counting)
            if code & 0xFF != status.TOO_SHORT or depth > len(self._nodes):
                return self._check(code)
            depth *= 4

    @cached_property
    def _place(self) -> tuple[NDArray[np.uint8], int, int, bool, NDArray[np.uint8]]:
        return self._nodes, _HEAD.size, self._root, self._has_index, _COMMON

    def _check(self, code: int) -> None:
        if code != status.OK:
            raise CorruptError(
                "a node is corrupt", where=self.where, found=f"at term {code >> 8}, problem {code & 0xFF}"
            )


def open_fst(data: NDArray[np.uint8], where: str) -> Fst:
    """Open an automaton, without reading its nodes.

    Raises:
        CorruptError: The bytes are not an automaton, or do not match its checksum.
        UnsupportedError: The version of the automaton is not supported.
    """
    if len(data) < _HEAD.size + _TAIL.size:
        raise CorruptError("the term dictionary is truncated", where=where, found=f"{len(data)} bytes")
    version, kind = _HEAD.unpack(data[: _HEAD.size].tobytes())
    if not 1 <= version <= _VERSION or kind:
        raise UnsupportedError(
            "unknown term dictionary version", where=where, expected="version 1 … 3, type 0", found=(version, kind)
        )
    end = len(data)
    if version >= _VERSION:
        end -= _CRC.size
        if end < _HEAD.size + _TAIL.size:
            raise CorruptError("the term dictionary is truncated", where=where, found=f"{len(data)} bytes")
        (stored,) = _CRC.unpack(data[end:].tobytes())
        if stored != _masked_crc(data[:end]):
            raise CorruptError("the checksum of the terms does not match", where=where, remedy="build the index again")
    count, root = _TAIL.unpack(data[end - _TAIL.size : end].tobytes())
    nodes = readonly(data[: end - _TAIL.size])
    if count >= 1 << 32 or (root != 0 and not _HEAD.size <= root < len(nodes)):
        raise CorruptError("the term dictionary has an invalid tail", where=where, found=(count, root))
    return Fst(where, count, len(data), nodes, root, version >= 2)


def fst_bytes(terms: pa.LargeBinaryArray, ids: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Build the automaton of terms, in serialized form.

    Args:
        terms: Distinct terms, in order of their bytes.
        ids: Id of each term, at least 0.

    Raises:
        InvalidInputError: The terms are not in order.
    """
    keys, offsets = bytes_and_offsets(terms)
    keys, offsets = readonly(keys[offsets[0] : offsets[-1]]), readonly(offsets - offsets[0])
    longest = int(np.diff(offsets).max(initial=0))
    size = len(keys) * 4 + 4096
    while True:
        out = np.empty(size, np.uint8)
        end = _build(keys, offsets, readonly(ids.astype(np.int64)), longest, out)
        if end >= 0:
            break
        if end == -2:
            raise InvalidInputError("invalid terms", expected="distinct terms in byte order")
        size *= 2
    out[: _HEAD.size] = np.frombuffer(_HEAD.pack(_VERSION, 0), np.uint8)
    tail = _TAIL.pack(len(ids), end - 1)
    whole = np.concatenate([out[:end], np.frombuffer(tail, np.uint8)])
    return np.concatenate([whole, np.frombuffer(_CRC.pack(_masked_crc(whole)), np.uint8)])


def _build(keys: Any, offsets: Any, ids: Any, longest: int, out: NDArray[np.uint8]) -> int:
    slots = 1 << max(4, min(2 * len(keys), FST_SLOTS).bit_length() - 1)
    codes = np.zeros(256, np.uint8)
    codes[_COMMON] = np.arange(1, len(COMMON) + 1)
    return fst_build.build_fst(
        keys,
        offsets,
        ids,
        codes,
        np.empty(len(keys), np.uint8),
        np.empty((len(keys), fst_build.TRANSITION_FIELDS), np.int64),
        np.empty((longest + 1, fst_build.NODE_FIELDS), np.int64),
        np.full((slots, fst_build.NODE_FIELDS), -1, np.int64),
        np.array([-1, 0, 0], np.int64),
        out,
        _HEAD.size,
    )


def _masked_crc(data: NDArray[np.uint8]) -> int:
    value = crc32c(readonly(data), _TABLES)
    return (((value >> 15) | (value << 17)) + 0xA282EAD8) & 0xFFFFFFFF
