"""A kernel that finds the FST terms within an edit distance of a word, or with a prefix.

It walks the FST in byte order. Each character on the path has a row of the Levenshtein matrix. If all distances in a
row exceed the limit, the walk does not go deeper.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.postings.fst import COUNT, IS_FINAL, NODE_FIELDS, follow, read_node

Int64s = NDArray[np.int64]

# Fields of a node on the path, after the fields of `fst.read_node`: next transition, number of bytes before the node,
# number of characters before the node, and for the last character its decoded bits, size in bytes and missing bytes.
_NEXT, _DEPTH, _LENGTH, _CODE, _SIZE, _MISSING = range(NODE_FIELDS, NODE_FIELDS + 6)
STACK_FIELDS: Final = NODE_FIELDS + 6
VISITS: Final = 64
"""Maximum number of node visits for each byte of the FST. A corrupt FST may have endless paths."""


@kernel
def near_terms(
    automaton: Any,
    word: NDArray[np.uint32],
    limits: Int64s,
    stack: NDArray[np.int64],
    rows: NDArray[np.int64],
    key: Bytes,
    keys: Bytes,
    offsets: Int64s,
    num_terms: Int64s,
) -> int:
    """Write the terms within an edit distance of a word, or with a prefix, in order.

    Args:
        automaton: Five of the arguments of `fst.find_terms`: `data`, `low`, `root`, `has_index`, `common`.
        word: Code points of the word.
        limits: Maximum edit distance; number of leading characters that must match; maximum number of terms; 1 to match
            all terms with these leading characters, regardless of the rest.
        stack: (longest path + 1, STACK_FIELDS), scratch space.
        rows: (longest path + 1, characters of the word + 1), scratch space.
        key: (longest path + 1,), scratch space.
        keys: Output: bytes of the terms.
        offsets: (maximum number of terms + 1,), output: byte offset of each term, and the end of the last one.
        num_terms: (1,), output: number of terms.

    Returns:
        A status without an index. TOO_SHORT means that `stack` is too short, and BAD_LENGTH that there are too many
        terms or bytes. Other codes mean that the FST is corrupt or a term is not UTF-8.
    """
    data, low, root, has_index, common = automaton
    visits, depth = VISITS * len(data), np.int64(0)
    num_terms[0] = offsets[0] = 0
    for column in range(rows.shape[1]):
        rows[0, column] = column
    for field in range(STACK_FIELDS):
        stack[0, field] = 0
    address = np.int64(root)
    while depth >= 0 and num_terms[0] < limits[2]:
        node = stack[depth]
        if address >= 0:  # the node is new on the stack
            visits -= 1
            if visits < 0 or not read_node(data, low, address, has_index, common, node):
                return status.BAD_OFFSETS
            if node[COUNT] == 0 and not node[IS_FINAL] and depth > 0:
                return status.BAD_CODE
            if node[IS_FINAL]:
                code = _write(node, rows[depth], len(word), limits, key, keys, offsets, num_terms)
                if code != status.OK:
                    return int(code)
        if node[_NEXT] == node[COUNT]:
            depth -= 1
            address = np.int64(-1)
            continue
        if depth + 1 >= len(stack):
            return status.TOO_SHORT
        address, code = follow(data, node, node[_NEXT], key, depth)
        if code != status.OK:
            return int(code)
        node[_NEXT] += 1
        below = stack[depth + 1]
        code = _enter(node, below, np.int64(key[depth]))
        if code != status.OK:
            return int(code)
        below[_DEPTH] = depth + 1
        if below[_MISSING] > 0:
            for column in range(rows.shape[1]):
                rows[depth + 1, column] = rows[depth, column]
            depth += 1
        elif _advance(word, limits, below, rows[depth], rows[depth + 1]):
            depth += 1
        else:
            address = np.int64(-1)
    return status.OK


@subroutine
def _enter(above: Any, node: Any, byte: Any) -> Any:
    """Enter a child node by a byte. Returns a status: BAD_VALUE if the bytes are not UTF-8."""
    node[_NEXT] = 0
    node[_LENGTH] = above[_LENGTH]
    if above[_MISSING] > 0:
        node[_CODE] = (above[_CODE] << 6) | (byte & 0x3F)
        node[_MISSING] = above[_MISSING] - 1
        node[_SIZE] = above[_SIZE]
        is_wrong = byte & 0xC0 != 0x80 or (node[_MISSING] == 0 and not _is_code_point(node[_CODE], node[_SIZE]))
        return status.BAD_VALUE if is_wrong else status.OK
    size = np.int64(1)
    if byte >= 0x80:
        size = np.int64(2) if byte < 0xE0 else np.int64(3) if byte < 0xF0 else np.int64(4)
        if byte < 0xC2 or byte > 0xF4:
            return status.BAD_VALUE
    node[_CODE] = byte if size == 1 else byte & (0x7F >> size)
    node[_SIZE] = size
    node[_MISSING] = size - 1
    return status.OK


@subroutine
def _is_code_point(code: Any, size: Any) -> Any:
    """Return whether a number is a code point that takes `size` bytes in UTF-8."""
    if size == 2:
        return code >= 0x80
    if size == 3:
        return code >= 0x800 and not 0xD800 <= code < 0xE000
    return 0x10000 <= code < 0x110000


@subroutine
def _advance(word: Any, limits: Any, node: Any, above: Any, row: Any) -> Any:
    """Compute the row of edit distances for one more character.

    Returns:
        Whether a term with this prefix may still be near enough.
    """
    length, code = node[_LENGTH], node[_CODE]
    node[_LENGTH] = length + 1
    fixed = min(limits[1], len(word))
    if length < fixed and np.int64(word[length]) != code:
        return False
    if limits[3] != 0:
        return True
    best = row[0] = above[0] + 1
    for column in range(1, len(word) + 1):
        differs = np.int64(np.int64(word[column - 1]) != code)
        row[column] = min(min(row[column - 1], above[column]) + 1, above[column - 1] + differs)
        best = min(best, row[column])
    return best <= limits[0]


@subroutine
def _write(
    node: Any, row: Any, word_length: Any, limits: Any, key: Any, keys: Any, offsets: Any, num_terms: Any
) -> Any:
    """Write the term that ends at a node, if it is near enough. Returns a status."""
    if node[_MISSING] > 0:
        return status.BAD_VALUE
    if limits[3] != 0:
        if node[_LENGTH] < min(limits[1], word_length):
            return status.OK
    elif row[word_length] > limits[0] or node[_LENGTH] < min(limits[1], word_length):
        return status.OK
    count = num_terms[0]
    begin, size = offsets[count], node[_DEPTH]
    if count + 1 >= len(offsets) or size > len(keys) - begin:
        return status.BAD_LENGTH
    for i in range(size):
        keys[begin + i] = key[i]
    offsets[count + 1] = begin + size
    num_terms[0] = count + 1
    return status.OK
