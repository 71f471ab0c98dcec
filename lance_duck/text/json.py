"""JSON documents in full-text indexes. Each leaf is one token, except that a string leaf has one token per term.

A token is "path,type,value": "a.city,str,san", "n,number,30", "ok,bool,true", "z,null,null". A path consists of object
keys separated by dots. Array indices are omitted. Numbers keep the notation of the document. Analyser parameters only
affect the terms of strings. Positions count the tokens that remain in a document after stop words are removed. Kernels
find the leaves without creating Python objects.

Never here: the storage of JSON (`encoding`), and the tokenizing and filtering of texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.json import leaf_tokens, leaves, parse
from lance_duck.kernels.tokens.cut import DONE
from lance_duck.kernels.tokens.words import LONG, fill_slots
from lance_duck.text.filters import numbered_terms, terms_of_words
from lance_duck.text.parameters import AnalyserParameters
from lance_duck.text.tokens import Tokens, positions_within
from lance_duck.text.words import cut_texts, grown, text_buffers, tokens_of_text

TEXT: Final = "str"
TYPES: Final = (TEXT, "number", "bool", "null")

_BETWEEN: Final = ";"
_FORM: Final = "path,type,value, with semicolons between several"
_DEEPEST: Final = 512
_FIRST_NODES: Final = 1 << 10
_FIRST_LEAVES: Final = 1 << 12
_FIRST_WORDS: Final = 1 << 8
_BYTES_OF_A_WORD: Final = 32
_MOST_WORDS: Final = 1 << 31


class _Number(str):
    """The text of a number in a JSON document."""

    __slots__ = ()


_DECODE: Final = json.JSONDecoder(parse_int=_Number, parse_float=_Number, strict=False).decode


def json_tokens(documents: pa.LargeStringArray, parameters: AnalyserParameters) -> Tokens:
    """Return the tokens of documents.

    Args:
        documents: JSON, without nulls.
        parameters: Parameters that are supported.

    Raises:
        InvalidInputError: A document is not JSON.
        UnsupportedError: A document is nested too deeply.
    """
    leaves = read_json_leaves(documents)
    return _plain_tokens(documents, parameters) if leaves is None else tokens_of_leaves(leaves, parameters)


def _plain_tokens(documents: pa.LargeStringArray, parameters: AnalyserParameters) -> Tokens:
    """Return the tokens of documents, some of which `read_json_leaves` does not support."""
    names: dict[str, int] = {}
    texts: list[str] = []
    text_leaves: list[int] = []
    paths: list[str] = []
    leaves: list[int] = []
    numbers: list[int] = []
    ends: list[int] = []
    count = 0
    for document in documents.to_pylist():
        for path, type_, value in _leaves(document):
            if type_ == TEXT:
                texts.append(value)
                paths.append(path)
                text_leaves.append(count)
            else:
                leaves.append(count)
                numbers.append(names.setdefault(f"{path},{type_},{value}", len(names)))
            count += 1
        ends.append(count)
    text_tokens, of_texts = _of_texts(texts, paths, names, parameters)
    in_order = np.concatenate([np.array(leaves, np.int64), np.array(text_leaves, np.int64)[of_texts]])
    order = np.argsort(in_order, kind="stable")
    ids = np.concatenate([np.array(numbers, np.int64), text_tokens])[order]
    bounds = np.searchsorted(in_order[order], [0, *ends])
    return _numbered(list(names), ids, bounds)


def json_tokens_reference(document: str, parameters: AnalyserParameters) -> Iterator[str]:
    """Yield the tokens of one document: the reference implementation of `json_tokens`."""
    for path, type_, value in _leaves(document):
        yield from _terms(path, type_, value, parameters)


def query_tokens(query: str, parameters: AnalyserParameters) -> list[str]:
    """Return the tokens of a query.

    Args:
        query: A query of the form "path,type,value;…". Paths must not contain commas, and values must not contain
            semicolons.
        parameters: Parameters that are supported.

    Raises:
        InvalidInputError: The query does not have this form, or a type is unknown.
    """
    tokens: list[str] = []
    for triplet in query.split(_BETWEEN):
        path, kind, rest = triplet.partition(",")
        type_, divider, value = rest.partition(",")
        if not kind or not divider:
            raise InvalidInputError("invalid JSON query", expected=_FORM, found=repr(triplet))
        if type_ not in TYPES:
            raise InvalidInputError("invalid type in a JSON query", expected=" or ".join(TYPES), found=repr(type_))
        tokens += _terms(path, type_, value, parameters)
    return tokens


def _terms(path: str, type_: str, value: str, parameters: AnalyserParameters) -> Iterator[str]:
    if type_ != TEXT:
        yield f"{path},{type_},{value}"
        return
    words = [word for word, _ in tokens_of_text(value, parameters)]
    yield from (f"{path},{TEXT},{term}" for term in terms_of_words(words, parameters) if term is not None)


def _leaves(document: str) -> Iterator[tuple[str, str, str]]:
    """Yield path, type and value of each leaf, in order."""
    try:
        tree = _DECODE(document)
    except ValueError as error:
        raise InvalidInputError("bad document", expected="JSON", found=f"{document[:80]!r}: {error}") from error
    except RecursionError as error:
        raise UnsupportedError("the JSON document is nested too deeply", found=f"{document[:40]!r}") from error
    stack: list[tuple[str, Any]] = [("", tree)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, dict):
            stack.extend((f"{path}.{key}" if path else key, each) for key, each in reversed(value.items()))
        elif isinstance(value, list):
            stack.extend((path, each) for each in reversed(value))
        elif isinstance(value, _Number | float):
            yield path, "number", str(value)
        elif isinstance(value, str):
            yield path, TEXT, value
        elif value is None:
            yield path, "null", "null"
        else:
            yield path, "bool", "true" if value else "false"


def _of_texts(
    texts: list[str], paths: list[str], names: dict[str, int], parameters: AnalyserParameters
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of each token of string leaves, and the index of its text. Adds new tokens to `names`."""
    cut = cut_texts(pa.array(texts, pa.large_string()), parameters)
    terms = terms_of_words(cut.words, parameters)
    of_texts = np.repeat(np.arange(len(texts)), np.diff(cut.bounds))
    is_term = np.append(np.array([term is not None for term in terms], np.bool_), False)
    stays = is_term[np.where(cut.ids == LONG, len(terms), cut.ids)]
    of_texts, words = of_texts[stays], cut.ids[stays].astype(np.int64)
    distinct = {path: number for number, path in enumerate(dict.fromkeys(paths))}
    keys = np.array([distinct[path] for path in paths], np.int64)[of_texts] * max(1, len(terms)) + words
    pairs, places = np.unique(keys, return_inverse=True)
    listed = list(distinct)
    numbers = [
        names.setdefault(f"{listed[path]},{TEXT},{terms[word]}", len(names))
        for path, word in zip(*(each.tolist() for each in np.divmod(pairs, max(1, len(terms)))), strict=True)
    ]
    return np.array(numbers, np.int64)[places], of_texts


def _numbered(names: list[str], ids: NDArray[np.int64], bounds: NDArray[np.int64]) -> Tokens:
    """Return tokens whose terms are those that occur, in order of first occurrence."""
    present, firsts = np.unique(ids, return_index=True)
    order = present[np.argsort(firsts)]
    places = np.zeros(len(names), np.uint32)
    places[order] = np.arange(len(order), dtype=np.uint32)
    terms = pa.array([names[i] for i in order.tolist()], pa.large_string()).cast(pa.large_binary())
    return Tokens(terms, places[ids], positions_within(bounds), bounds.astype(np.int64))


@dataclass(frozen=True, eq=False)
class JsonLeaves:
    """The leaves of JSON documents.

    Attributes:
        data: Bytes of the documents.
        leaves: int64 (n, 4): see `kernels.json.leaves`.
        bounds: int64 (documents + 1,), number of leaves before each document.
        paths: Paths by their numbers. A path consists of object keys separated by dots.
        texts: The string leaves.
    """

    data: NDArray[np.uint8]
    leaves: NDArray[np.int64]
    bounds: NDArray[np.int64]
    paths: list[str]
    texts: pa.LargeStringArray


def read_json_leaves(documents: pa.LargeStringArray) -> JsonLeaves | None:
    """Return the leaves of documents in valid UTF-8.

    Returns:
        The leaves, or None if `read_leaves` does not support one of the documents.
    """
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
    terms = _leaf_terms(table, int(state[2]), document_leaves.paths, text_terms)
    ids, distinct = ids[: state[1]], terms.dictionary_encode()
    if len(distinct.dictionary) < len(terms):  # a path may contain commas: different leaves may have equal tokens
        ids = distinct.indices.to_numpy().astype(np.uint32)[ids]
    return Tokens(distinct.dictionary, ids, positions_within(bounds), bounds)


@dataclass(frozen=True, eq=False)
class _DistinctBytes:
    """Distinct words as concatenated bytes (see `kernels.tokens.words`)."""

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
        """Return a copy with at least twice the bytes, and twice the words if they are used up.

        The bytes have room for another word of `longest` bytes.
        """
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
        """Return the root path, then the path of each of the first `words` words: see `kernels.json.leaves`."""
        paths, data = [""], self.data.tobytes()
        for start, size in zip(self.starts[:words].tolist(), self.sizes[:words].tolist(), strict=True):
            before = paths[int.from_bytes(data[start : start + leaves.PREFIX], "little")]
            key = data[start + leaves.PREFIX : start + size].decode()
            paths.append(f"{before}.{key}" if before else key)
        return paths


def _leaf_terms(
    table: _DistinctBytes, count: int, paths: list[str], text_terms: pa.LargeBinaryArray
) -> pa.LargeBinaryArray:
    """Return the term of each of the first `count` tokens in a table."""
    tokens = table.data, table.starts[:count], table.sizes[:count]
    path_buffers = text_buffers(pa.array(paths, pa.large_string()))
    term_buffers = text_buffers(text_terms)
    offsets = np.zeros(count + 1, np.int64)
    leaf_tokens.write_terms(tokens, path_buffers, term_buffers, np.empty(0, np.uint8), offsets)
    out = np.empty(int(offsets[-1]), np.uint8)
    leaf_tokens.write_terms(tokens, path_buffers, term_buffers, out, offsets)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(out)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), count, buffers)
