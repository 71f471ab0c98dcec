"""The leaves of JSON documents, and their tokens, by kernels that never see a document as Python objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import InvalidInputError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.json import leaf_tokens, leaves, parse
from lance_duck.kernels.tokens.cut import DONE
from lance_duck.kernels.tokens.words import fill_slots
from lance_duck.text.filters import numbered_terms, terms_of_words
from lance_duck.text.parameters import AnalyserParameters
from lance_duck.text.tokens import Tokens, positions_within
from lance_duck.text.words import cut_texts, grown, text_buffers

_DEEPEST: Final = 512
_FIRST_NODES: Final = 1 << 10
_FIRST_LEAVES: Final = 1 << 12
_FIRST_WORDS: Final = 1 << 8
_BYTES_OF_A_WORD: Final = 32
_MOST_WORDS: Final = 1 << 31


@dataclass(frozen=True, eq=False)
class JsonLeaves:
    """Leaves of documents.

    Attributes:
        data: Bytes of the documents.
        leaves: int64 (n, 4): see `kernels.json.leaves`.
        bounds: Leaves before each document, one more than documents; int64.
        paths: Path of each number; keys of objects with dots between them.
        texts: The texts among the leaves.
    """

    data: NDArray[np.uint8]
    leaves: NDArray[np.int64]
    bounds: NDArray[np.int64]
    paths: list[str]
    texts: pa.LargeStringArray


def read_json_leaves(documents: pa.LargeStringArray) -> JsonLeaves | None:
    """Return the leaves of documents, which are valid UTF-8; None: some are not read so, see `read_leaves`."""
    data, offsets = text_buffers(documents)
    longest, size = int(np.diff(offsets).max(initial=0)), int(offsets[-1] - offsets[0])
    stack, frames = np.empty(_DEEPEST, np.int64), np.empty((_DEEPEST, leaves.FRAME), np.int64)
    scratch, tape = np.empty(16 + 4 * longest, np.uint8), np.empty((_FIRST_NODES, parse.NODE), np.int64)
    table, last = _DistinctBytes.empty(), np.zeros(_FIRST_WORDS + 1, np.int64)
    texts, text_ends = np.empty(size, np.uint8), np.empty(_FIRST_LEAVES, np.int64)
    read, bounds = np.empty((_FIRST_LEAVES, leaves.LEAF), np.int64), np.zeros(len(offsets), np.int64)
    state = np.zeros(7, np.int64)
    while True:
        parsing, paths = (tape, stack, scratch, frames), (*table.arrays, last)
        code = leaves.read_leaves(data, offsets, parsing, paths, texts, text_ends, read, bounds, state)
        if code == leaves.DONE:
            break
        if code == leaves.TAPE_FULL:
            tape = np.empty((2 * len(tape), parse.NODE), np.int64)
        elif code == leaves.LEAVES_FULL:
            read, text_ends = (
                grown(read, int(state[leaves.LEAVES_READ])),
                grown(text_ends, int(state[leaves.TEXTS_READ])),
            )
        elif code == leaves.PATHS_FULL:
            table = table.grown(int(state[leaves.PATHS]), int(state[leaves.PATH_BYTES]), longest)
            last = np.concatenate([last, np.zeros(len(table.starts) + 1 - len(last), np.int64)])
        else:
            return None
    num_texts = int(state[leaves.TEXTS_READ])
    ends = np.append(0, text_ends[:num_texts])
    listed = pa.LargeStringArray.from_buffers(num_texts, pa.py_buffer(ends), pa.py_buffer(texts[: ends[-1]]))
    count = int(state[leaves.LEAVES_READ])
    return JsonLeaves(data, read[:count], bounds, table.paths(int(state[leaves.PATHS])), listed)


def tokens_of_leaves(document_leaves: JsonLeaves, parameters: AnalyserParameters) -> Tokens:
    """Return the tokens of leaves: see `json_tokens`."""
    cut = cut_texts(document_leaves.texts, parameters)
    term_numbers, text_terms = numbered_terms(terms_of_words(cut.words, parameters))
    ids = np.empty(len(cut.ids) + len(document_leaves.leaves), np.uint32)
    bounds, state, table = (
        np.zeros(len(document_leaves.bounds), np.int64),
        np.zeros(4, np.int64),
        _DistinctBytes.empty(),
    )
    kinds, _, begins, ends = document_leaves.leaves.T
    longest = int((ends - begins).max(where=kinds != leaves.TEXT_LEAF, initial=0))
    words = readonly(cut.ids), readonly(cut.bounds), readonly(term_numbers)
    while True:
        code = leaf_tokens.number_tokens(
            document_leaves.data,
            document_leaves.leaves,
            document_leaves.bounds,
            words,
            table.arrays,
            ids,
            bounds,
            state,
        )
        if code == DONE:
            break
        table = table.grown(int(state[2]), int(state[3]), longest)
    terms = _terms(table, int(state[2]), document_leaves.paths, text_terms)
    ids, distinct = ids[: state[1]], terms.dictionary_encode()
    if len(distinct.dictionary) < len(terms):  # "a,b" is a path and the beginning of a value
        ids = distinct.indices.to_numpy().astype(np.uint32)[ids]
    return Tokens(distinct.dictionary, ids, positions_within(bounds), bounds)


@dataclass(frozen=True, eq=False)
class _DistinctBytes:
    """Distinct words, see `kernels.tokens.words`, whose bytes are put behind one another."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    slots: NDArray[np.uint64]

    @classmethod
    def empty(cls) -> _DistinctBytes:
        starts, sizes = np.empty((2, _FIRST_WORDS), np.int64)
        return cls(
            np.empty(_FIRST_WORDS * _BYTES_OF_A_WORD, np.uint8), starts, sizes, np.zeros(4 * _FIRST_WORDS, np.uint64)
        )

    @property
    def arrays(self) -> tuple[Any, ...]:
        return self.data, self.starts, self.sizes, self.slots

    def grown(self, words: int, size: int, longest: int) -> _DistinctBytes:
        """Return a table with room for twice as many words, and for one of so many bytes and a few more."""
        if words >= _MOST_WORDS:
            raise InvalidInputError("documents have too many distinct tokens", expected=f"at most {words}")
        data = np.empty(max(2 * len(self.data), size + longest + _BYTES_OF_A_WORD), np.uint8)
        data[:size] = self.data[:size]
        if words < len(self.starts):
            return _DistinctBytes(data, self.starts, self.sizes, self.slots)
        starts, sizes = grown(self.starts, words), grown(self.sizes, words)
        slots = np.zeros(4 * len(starts), np.uint64)
        fill_slots(data, starts[:words], sizes[:words], slots)
        return _DistinctBytes(data, starts, sizes, slots)

    def paths(self, words: int) -> list[str]:
        """Return the paths that words are, after the root: see `kernels.json.leaves`."""
        paths, data = [""], self.data.tobytes()
        for start, size in zip(self.starts[:words].tolist(), self.sizes[:words].tolist(), strict=True):
            before = paths[int.from_bytes(data[start : start + leaves.PREFIX], "little")]
            key = data[start + leaves.PREFIX : start + size].decode()
            paths.append(f"{before}.{key}" if before else key)
        return paths


def _terms(table: _DistinctBytes, count: int, paths: list[str], text_terms: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """Return distinct tokens as terms."""
    tokens = table.data, table.starts[:count], table.sizes[:count]
    path_buffers = text_buffers(pa.array(paths, pa.large_string()))
    term_buffers = text_buffers(text_terms)
    offsets = np.zeros(count + 1, np.int64)
    leaf_tokens.write_terms(tokens, path_buffers, term_buffers, np.empty(0, np.uint8), offsets)
    out = np.empty(int(offsets[-1]), np.uint8)
    leaf_tokens.write_terms(tokens, path_buffers, term_buffers, out, offsets)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(out)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), count, buffers)
