"""Kernels that read term FSTs and compute their CRC-32C. `index.inverted.codecs.fst` describes their bytes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes, load_u32

Int64s = NDArray[np.int64]

INDEXED: Final = 32
"""Number of transitions above which a node has a 256-byte index."""

# Fields of a decoded node. Its data precedes its state byte, and the first field is closest to that byte.
STATE, COUNT, INPUTS, DELTAS, DELTA_BYTES, OUTPUTS, OUTPUT_BYTES, FIRST, IS_FINAL, INPUT = range(10)
NODE_FIELDS: Final = 10


@subroutine
def read_node(data: Any, low: Any, address: Any, has_index: Any, common: Any, node: Any) -> Any:
    """Read the header of a node.

    Args:
        data: The FST.
        low: Offset of the first node.
        address: Address of the node: the offset of its last byte, or 0 for the final node without transitions.
        has_index: Whether nodes with more than 32 transitions have an index.
        common: Frequent input bytes. In a state byte, c > 0 stands for `common[c - 1]`.
        node: (`NODE_FIELDS`,), output.

    Returns:
        Whether the node lies after `low`.
    """
    node[COUNT] = 0
    node[OUTPUT_BYTES] = 0
    node[FIRST] = address
    if address == 0:
        node[IS_FINAL] = 1
        return True
    if address < low or address >= len(data):
        return False
    state = np.int64(data[address])
    node[STATE] = state
    if state >= 128:
        return _read_single(data, low, address, common, node)
    node[IS_FINAL] = state >> 6
    at = address
    count = state & 63
    if count == 0:
        at -= 1
        if at < low:
            return False
        count = np.int64(data[at])
        if count == 1:
            count = np.int64(256)
    at -= 1
    if at < low:
        return False
    sizes = np.int64(data[at])
    delta_bytes, output_bytes = sizes >> 4, sizes & 15
    if delta_bytes > 8 or output_bytes > 8:
        return False
    if has_index and count > INDEXED:
        at -= 256
    node[COUNT] = count
    node[INPUTS] = at - count
    node[DELTAS] = at - count - count * delta_bytes
    node[DELTA_BYTES] = delta_bytes
    node[OUTPUTS] = node[DELTAS] - count * output_bytes
    node[OUTPUT_BYTES] = output_bytes
    node[FIRST] = node[OUTPUTS] - (output_bytes if node[IS_FINAL] else 0)
    return node[FIRST] >= low


@subroutine
def _read_single(data: Any, low: Any, address: Any, common: Any, node: Any) -> Any:
    """Read a node with one transition. Its `INPUT` is the transition's byte."""
    state = node[STATE]
    node[COUNT] = 1
    node[IS_FINAL] = 0
    at = address
    code = state & 63
    if code:
        if code > len(common):
            return False
        node[INPUT] = common[code - 1]
    else:
        at -= 1
        if at < low:
            return False
        node[INPUT] = data[at]
    if state >= 192:
        node[FIRST] = at
        return True
    at -= 1
    if at < low:
        return False
    delta_bytes, output_bytes = np.int64(data[at]) >> 4, np.int64(data[at]) & 15
    if delta_bytes > 8 or output_bytes > 8:
        return False
    node[DELTAS] = at - delta_bytes
    node[DELTA_BYTES] = delta_bytes
    node[OUTPUTS] = node[DELTAS] - output_bytes
    node[OUTPUT_BYTES] = output_bytes
    node[FIRST] = node[OUTPUTS]
    return node[FIRST] >= low


@subroutine
def input_of(data: Any, node: Any, i: Any) -> Any:
    """Return the input byte of transition `i` of a decoded node. Input bytes ascend."""
    if node[STATE] >= 128:
        return node[INPUT]
    return np.int64(data[node[INPUTS] + node[COUNT] - 1 - i])


@subroutine
def output_of(data: Any, node: Any, i: Any) -> Any:
    """Return the output of transition `i`."""
    if node[STATE] >= 192 or node[OUTPUT_BYTES] == 0:
        return np.int64(0)
    return _word(data, node[OUTPUTS] + (node[COUNT] - 1 - i) * node[OUTPUT_BYTES], node[OUTPUT_BYTES])


@subroutine
def final_output(data: Any, node: Any) -> Any:
    """Return the output of a final node."""
    if node[OUTPUT_BYTES] == 0 or node[STATE] >= 128:
        return np.int64(0)
    return _word(data, node[FIRST], node[OUTPUT_BYTES])


@subroutine
def target_of(data: Any, node: Any, i: Any) -> Any:
    """Return the target address of transition `i`. Returns -1 if it is neither 0 nor before this node."""
    if node[STATE] >= 192:
        return node[FIRST] - 1
    at = node[DELTAS] + (node[COUNT] - 1 - i) * node[DELTA_BYTES]
    delta = _word(data, at, node[DELTA_BYTES])
    if delta == 0:
        return np.int64(0)
    return node[FIRST] - delta if 0 < delta < node[FIRST] else np.int64(-1)


@subroutine
def follow(data: Any, node: Any, transition: Any, key: Any, depth: Any) -> Any:
    """Write the byte of a transition to `key`. Returns (address of the target, status without an index)."""
    byte = input_of(data, node, transition)
    if transition > 0 and byte <= np.int64(key[depth]):
        return np.int64(-1), status.BAD_CODE
    address = target_of(data, node, transition)
    if address < 0:
        return address, status.BAD_OFFSETS
    key[depth] = np.uint8(byte)
    return address, status.OK


@subroutine
def _word(data: Any, at: Any, size: Any) -> Any:
    value = np.int64(0)
    for i in range(size):
        value |= np.int64(data[at + i]) << (8 * i)
    return value


@kernel
def find_terms(
    data: Bytes,
    low: int,
    root: int,
    has_index: bool,
    common: Bytes,
    num_terms: int,
    keys: Bytes,
    offsets: Int64s,
    node: Int64s,
    ids: Int64s,
) -> int:
    """Look up the values of keys.

    Args:
        data: The FST up to the end of its nodes.
        low: Offset of the first node.
        root: Address of the root.
        has_index: Whether nodes with more than 32 transitions have an index.
        common: Frequent input bytes. In a state byte, c > 0 stands for `common[c - 1]`.
        num_terms: All values are smaller.
        keys: Bytes of the keys.
        offsets: Byte offset of each key, and the end of the last one.
        node: (`NODE_FIELDS`,), scratch space.
        ids: Output: the value of each key, or -1 if the FST does not contain it.

    Returns:
        A status with the index of a key.
    """
    for i in range(len(offsets) - 1):
        ids[i] = -1
        address, value, at = np.int64(root), np.int64(0), offsets[i]
        if at < 0 or offsets[i + 1] < at or offsets[i + 1] > len(keys):
            return status.BAD_OFFSETS | (i << 8)
        while True:
            if not read_node(data, low, address, has_index, common, node):
                return status.TOO_SHORT | (i << 8)
            if at == offsets[i + 1]:
                if node[IS_FINAL]:
                    ids[i] = value + final_output(data, node)
                    if ids[i] < 0 or ids[i] >= num_terms:
                        return status.BAD_VALUE | (i << 8)
                break
            key = np.int64(keys[at])
            transition = np.int64(0)
            while transition < node[COUNT] and input_of(data, node, transition) != key:
                transition += 1
            if transition == node[COUNT]:
                break
            value += output_of(data, node, transition)
            address = target_of(data, node, transition)
            if address < 0:
                return status.BAD_OFFSETS | (i << 8)
            at += 1
    return status.OK


@kernel
def list_terms(
    data: Bytes,
    low: int,
    root: int,
    has_index: bool,
    common: Bytes,
    stack: NDArray[np.int64],
    key: Bytes,
    keys: Bytes,
    offsets: Int64s,
    ids: Int64s,
    totals: Int64s,
    is_counting: bool,
) -> int:
    """Write all keys in order, or count them.

    Args:
        data: The FST up to the end of its nodes.
        low: Offset of the first node.
        root: Address of the root.
        has_index: Whether nodes with more than 32 transitions have an index.
        common: Frequent input bytes. In a state byte, c > 0 stands for `common[c - 1]`.
        stack: (longest key + 1, NODE_FIELDS + 2), scratch space.
        key: Scratch space, as many bytes as the stack has rows.
        keys: Output: bytes of the keys, sized by the count.
        offsets: (keys + 1,), output: byte offset of each key, and the end of the last one.
        ids: Output: the value of each key.
        totals: (3,). Input: maximum number of keys, and maximum size of all keys in bytes. Output: number of keys, size
            of all keys in bytes, size of the longest key.
        is_counting: Whether to write `totals` only.

    Returns:
        A status. TOO_SHORT can also mean that the stack is too short, and BAD_LENGTH that a maximum is exceeded.
    """
    max_keys, limit, count, size, longest = totals[0], totals[1], np.int64(0), np.int64(0), np.int64(0)
    if not is_counting and (max_keys >= len(offsets) or max_keys > len(ids) or limit > len(keys)):
        return status.BAD_LENGTH
    depth = 0
    address, value = np.int64(root), np.int64(0)
    while depth >= 0:
        node = stack[depth]
        if address >= 0:  # the node is new on the stack
            if not read_node(data, low, address, has_index, common, node):
                return int(status.BAD_OFFSETS | (count << 8))
            node[NODE_FIELDS] = 0
            node[NODE_FIELDS + 1] = value
            if node[COUNT] == 0 and not node[IS_FINAL] and depth > 0:
                return int(status.BAD_CODE | (count << 8))
            if node[IS_FINAL]:
                if count >= max_keys or depth > limit - size:
                    return int(status.BAD_LENGTH | (count << 8))
                if not is_counting:
                    offsets[count] = size
                    ids[count] = value + final_output(data, node)
                    for i in range(depth):
                        keys[size + i] = key[i]
                count += 1
                size += depth
                longest = max(longest, np.int64(depth))
        transition = node[NODE_FIELDS]
        if transition == node[COUNT]:
            depth -= 1
            address = np.int64(-1)
            continue
        if depth + 1 >= len(stack):
            return int(status.TOO_SHORT | (count << 8))
        address, code = follow(data, node, transition, key, depth)
        if code != status.OK:
            return int(code | (count << 8))
        value = node[NODE_FIELDS + 1] + output_of(data, node, transition)
        node[NODE_FIELDS] = transition + 1
        depth += 1
    if not is_counting:
        offsets[count] = size
    totals[0], totals[1], totals[2] = count, size, longest
    return status.OK


_POLYNOMIAL: Final = 0x82F63B78


def _crc_tables() -> NDArray[np.uint32]:
    """Return an (8, 256) table with the remainder of each byte value, followed by 0 to 7 zero bytes."""
    table: NDArray[Any] = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> 1) ^ np.where(table & 1, np.uint32(_POLYNOMIAL), np.uint32(0))
    tables = [table]
    for _ in range(7):
        tables.append((tables[-1] >> 8) ^ table[tables[-1] & 255])
    return np.stack(tables).astype(np.uint32)


CRC_TABLES: Final = _crc_tables()


@kernel
def crc32c(data: Bytes, tables: NDArray[np.uint32]) -> int:
    """Return the CRC-32C of bytes. `tables` is `CRC_TABLES`."""
    value = np.uint32(0xFFFFFFFF)
    whole = len(data) & ~7
    for at in range(0, whole, 8):
        low = np.uint32(value ^ load_u32(data, at))
        high = np.uint32(load_u32(data, at + 4))
        value = np.uint32(0)
        for i in range(4):
            value ^= tables[7 - i, (low >> np.uint32(8 * i)) & np.uint32(255)]
            value ^= tables[3 - i, (high >> np.uint32(8 * i)) & np.uint32(255)]
    for at in range(whole, len(data)):
        value = np.uint32((value >> np.uint32(8)) ^ tables[0, (value ^ np.uint32(data[at])) & np.uint32(255)])
    return int(value ^ np.uint32(0xFFFFFFFF))
