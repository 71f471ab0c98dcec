"""Kernels for tokens of JSON leaves. Each distinct token has a number and is written as "path,type,value".

Key of a token in the table of distinct words:

    size | field
    4    | path number
    4    | for a string, the number of its term, and the key ends here; otherwise 0xFFFFFFFF
    1    | leaf kind
    any  | value, copied from the document
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.json.leaves import TEXT_LEAF
from lance_duck.kernels.memory import Bytes, as_readonly, copy, load_u32, store_u32
from lance_duck.kernels.tokens.cut import DONE, WORDS_FULL
from lance_duck.kernels.tokens.keep import DROPPED
from lance_duck.kernels.tokens.words import FULL, LONG, Slots, word_number

Int64s = NDArray[np.int64]

OF_TEXT = 8
HEAD = 9
_TYPES = np.frombuffer(b",str,,number,,bool,,null,", np.uint8)
_TYPE_ENDS = np.array([0, 5, 13, 19, 25], np.int64)


@kernel
def number_tokens(
    data: Bytes,
    leaves: NDArray[np.int64],
    leaf_bounds: Int64s,
    cut: tuple[NDArray[np.uint32], Int64s, NDArray[np.uint32]],
    table: tuple[Bytes, Int64s, Int64s, Slots],
    ids: NDArray[np.uint32],
    bounds: Int64s,
    state: Int64s,
) -> int:
    """Number the tokens of documents in order of first occurrence. Starts at the document in `state`.

    Args:
        data: The documents.
        leaves: See `kernels.json.leaves`.
        leaf_bounds: Number of leaves before each document.
        cut: Three arrays: the word number of each token in the string leaves, or LONG; the number of tokens before each
            string; the term number of each word, or DROPPED.
        table: Four arrays: bytes, offsets and sizes of the distinct tokens, and the table of `word_number`.
        ids: Output: the number of each token. Must have room for all leaves and string tokens.
        bounds: Output from the second entry on: number of tokens before each document.
        state: int64 (4,), output: document count, token count, distinct token count, size of the distinct tokens.

    Returns:
        DONE, or WORDS_FULL if the table or its bytes are full.
    """
    words, word_bounds, terms = cut
    for document in range(state[0], len(leaf_bounds) - 1):
        count = state[1]
        for leaf in range(leaf_bounds[document], leaf_bounds[document + 1]):
            path = leaves[leaf, 1]
            if leaves[leaf, 0] != TEXT_LEAF:
                number = _number_of_value(data, leaves, leaf, table, state)
                if number < 0:
                    return WORDS_FULL
                ids[count] = number
                count += 1
                continue
            text = leaves[leaf, 2]
            for i in range(word_bounds[text], word_bounds[text + 1]):
                word = np.int64(words[i])
                if word == LONG or terms[word] == DROPPED:
                    continue
                number = _number_of_term(path, terms[word], table, state)
                if number < 0:
                    return WORDS_FULL
                ids[count] = number
                count += 1
        state[0], state[1] = document + 1, count
        bounds[document + 1] = count
    return DONE


@subroutine
def _number_of_term(path: Any, term: Any, table: Any, state: Any) -> Any:
    """Return the number of a string token, or -1 if there is no room for a new one."""
    known, begin = table[0], state[3]
    if begin + OF_TEXT > len(known):
        return np.int64(-1)
    store_u32(known, begin, np.uint32(path))
    store_u32(known, begin + 4, np.uint32(term))
    return _number(np.int64(OF_TEXT), table, state)


@subroutine
def _number_of_value(data: Bytes, leaves: Any, leaf: Any, table: Any, state: Any) -> Any:
    """Return the token number of a leaf without text, or -1 if there is no room for a new one."""
    known, begin = table[0], state[3]
    first, size = leaves[leaf, 2], leaves[leaf, 3] - leaves[leaf, 2]
    if begin + HEAD + size > len(known):
        return np.int64(-1)
    store_u32(known, begin, np.uint32(leaves[leaf, 1]))
    store_u32(known, begin + 4, np.uint32(DROPPED))
    known[begin + OF_TEXT] = np.uint8(leaves[leaf, 0])
    copy(known, begin + HEAD, data, first, size)
    return _number(np.int64(HEAD + size), table, state)


@subroutine
def _number(size: Any, table: Any, state: Any) -> Any:
    """Return the number of the token whose bytes follow the last distinct token. Adds the token if it is new."""
    known = as_readonly(table[0])
    number = word_number(known, state[3], size, table[3], known, state[3], table[1], table[2], state[2])
    if number == FULL:
        return np.int64(-1)
    if number == state[2]:
        state[2] += 1
        state[3] += size
    return number


@kernel
def write_terms(
    tokens: tuple[Bytes, Int64s, Int64s],
    paths: tuple[Bytes, Int64s],
    terms: tuple[Bytes, Int64s],
    out: Bytes,
    offsets: Int64s,
) -> None:
    """Write distinct tokens as terms.

    Args:
        tokens: The bytes, offsets and sizes of the tokens.
        paths: The bytes and offsets of the path strings.
        terms: The bytes and offsets of the string terms.
        out: Receives the terms. If it is empty, only the offsets are computed.
        offsets: Receives the end of each term, from the second slot on. The first slot must be 0.
    """
    known, starts, sizes = tokens
    path_bytes, path_offsets = paths
    term_bytes, term_offsets = terms
    end = np.int64(0)
    for i in range(len(starts)):
        begin = starts[i]
        path = np.int64(load_u32(known, begin))
        is_text = sizes[i] == OF_TEXT
        kind = np.int64(TEXT_LEAF) if is_text else np.int64(known[begin + OF_TEXT])
        path_size = path_offsets[path + 1] - path_offsets[path]
        type_size = _TYPE_ENDS[kind + 1] - _TYPE_ENDS[kind]
        term = np.int64(load_u32(known, begin + 4)) if is_text else np.int64(0)
        value_size = term_offsets[term + 1] - term_offsets[term] if is_text else sizes[i] - HEAD
        if len(out):
            copy(out, end, path_bytes, path_offsets[path], path_size)
            copy(out, end + path_size, _TYPES, _TYPE_ENDS[kind], type_size)
            at = end + path_size + type_size
            if is_text:
                copy(out, at, term_bytes, term_offsets[term], value_size)
            else:
                copy(out, at, known, begin + HEAD, value_size)
        end += path_size + type_size + value_size
        offsets[i + 1] = end
