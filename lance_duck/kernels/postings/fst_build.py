"""Kernel that builds a minimal FST of sorted terms. `index.inverted.codecs.fst` describes its bytes.

The nodes on the path of the last key are open, because the target of their last transition may still change. When the
next key leaves this path, the nodes below the fork are closed, deepest first. If the table contains an equal node, that
node replaces the closed node. Otherwise, the closed node is written. The table has a fixed size. A new node has a
choice of four slots. If all are used, it evicts the node in one of them.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes, store_u8
from lance_duck.kernels.postings.fst import INDEXED

Int64s = NDArray[np.int64]

OUTPUT, TARGET, NEXT = range(3)
TRANSITION_FIELDS: Final = 3
HEAD, COUNT, IS_FINAL, FINAL_OUTPUT, ADDRESS = range(5)
NODE_FIELDS: Final = 5
FREE, USED, TURN = range(3)
STATE_FIELDS: Final = 3

_PROBES: Final = 4
_NODE_BYTES: Final = 280
_TRANSITION_BYTES: Final = 17


@kernel
def build_fst(
    keys: Bytes,
    offsets: Int64s,
    values: Int64s,
    codes: NDArray[np.uint8],
    inputs: NDArray[np.uint8],
    transitions: NDArray[np.int64],
    open_nodes: NDArray[np.int64],
    table: NDArray[np.int64],
    state: Int64s,
    out: Bytes,
    begin: int,
) -> int:
    """Write the nodes of an FST.

    Args:
        keys: Bytes of the keys.
        offsets: Byte offset of each key, and the end of the last one. Keys are distinct and ascend.
        values: The value of each key, at least 0.
        codes: (256,), number that stands for each input byte in a state byte, or 0 if the byte is written separately.
        inputs: (size of the keys,), scratch space.
        transitions: (size of the keys, TRANSITION_FIELDS), scratch space.
        open_nodes: (longest key + 1, NODE_FIELDS), scratch space.
        table: (a power of 2, NODE_FIELDS), scratch space, initially -1.
        state: (STATE_FIELDS,), scratch space: -1, 0, 0.
        out: Output, written from `begin` on.
        begin: Number of bytes before the first node, at least 2.

    Returns:
        End of the nodes. The root is the last node. -1 if `out` is too small, -2 if keys are out of order.
    """
    at, previous, previous_end = np.int64(begin), np.int64(0), np.int64(0)
    _open(open_nodes[0])
    for i in range(len(values)):
        first, end = offsets[i], offsets[i + 1]
        common, shortest = np.int64(0), min(end - first, previous_end - previous)
        while common < shortest and keys[first + common] == keys[previous + common]:
            common += 1
        if i > 0 and (common == end - first or (common < shortest and keys[first + common] < keys[previous + common])):
            return -2
        output = _share_outputs(open_nodes, transitions, common, values[i])
        for depth in range(previous_end - previous, common, -1):
            at = _close(open_nodes, depth, codes, inputs, transitions, table, state, out, at)
            if at < 0:
                return -1
        for depth in range(common, end - first):
            place = _allocate(transitions, state)
            inputs[place] = keys[first + depth]
            transitions[place, OUTPUT] = output
            transitions[place, TARGET] = 0
            transitions[place, NEXT] = open_nodes[depth, HEAD]
            open_nodes[depth, HEAD] = place
            open_nodes[depth, COUNT] += 1
            _open(open_nodes[depth + 1])
            output = np.int64(0)
        open_nodes[end - first, IS_FINAL] = 1
        open_nodes[end - first, FINAL_OUTPUT] = output
        previous, previous_end = first, end
    for depth in range(previous_end - previous, 0, -1):
        at = _close(open_nodes, depth, codes, inputs, transitions, table, state, out, at)
        if at < 0:
            return -1
    if len(out) - at < _NODE_BYTES + _TRANSITION_BYTES * open_nodes[0, COUNT]:
        return -1
    return int(_write_node(open_nodes[0], codes, inputs, transitions, out, at))


@subroutine
def _open(node: Any) -> None:
    node[HEAD] = -1
    node[COUNT] = 0
    node[IS_FINAL] = 0
    node[FINAL_OUTPUT] = 0


@subroutine
def _share_outputs(open_nodes: Any, transitions: Any, common: Any, value: Any) -> Any:
    """Reduce the outputs of the first `common` transitions to their common part with `value`. Returns the rest."""
    rest = np.int64(value)
    for depth in range(common):
        head = open_nodes[depth, HEAD]
        shared = min(rest, transitions[head, OUTPUT])
        surplus = transitions[head, OUTPUT] - shared
        transitions[head, OUTPUT] = shared
        rest -= shared
        if surplus:
            _push(open_nodes[depth + 1], transitions, surplus)
    return rest


@subroutine
def _push(node: Any, transitions: Any, surplus: Any) -> None:
    """Add the output that was removed from the path above a node to all outputs of the node."""
    place = node[HEAD]
    while place >= 0:
        transitions[place, OUTPUT] += surplus
        place = transitions[place, NEXT]
    if node[IS_FINAL]:
        node[FINAL_OUTPUT] += surplus


@subroutine
def _allocate(transitions: Any, state: Any) -> Any:
    place = state[FREE]
    if place >= 0:
        state[FREE] = transitions[place, NEXT]
        return place
    state[USED] += 1
    return state[USED] - 1


@subroutine
def _release(transitions: Any, state: Any, head: Any) -> None:
    place = head
    while place >= 0:
        following = transitions[place, NEXT]
        transitions[place, NEXT] = state[FREE]
        state[FREE] = place
        place = following


@subroutine
def _close(
    open_nodes: Any,
    depth: Any,
    codes: Any,
    inputs: Any,
    transitions: Any,
    table: Any,
    state: Any,
    out: Any,
    at: Any,
) -> Any:
    """Write the open node at a depth, or reuse an equal one. Returns the end of the nodes, or -1 if `out` is full."""
    node = open_nodes[depth]
    above = open_nodes[depth - 1, HEAD]
    if node[COUNT] == 0 and node[FINAL_OUTPUT] == 0:
        transitions[above, TARGET] = 0
        return at
    first = _hash(node, inputs, transitions)
    slot = np.int64(-1)
    for probe in range(_PROBES):
        place = (first + probe) & (len(table) - 1)
        if table[place, HEAD] < 0 and table[place, COUNT] < 0:
            slot = place
            break
        if _is_equal(node, table[place], inputs, transitions):
            transitions[above, TARGET] = table[place, ADDRESS]
            _release(transitions, state, node[HEAD])
            return at
    if len(out) - at < _NODE_BYTES + _TRANSITION_BYTES * node[COUNT]:
        return np.int64(-1)
    at = _write_node(node, codes, inputs, transitions, out, at)
    transitions[above, TARGET] = at - 1
    if slot < 0:
        state[TURN] += 1
        slot = (first + (state[TURN] & (_PROBES - 1))) & (len(table) - 1)
        _release(transitions, state, table[slot, HEAD])
    for field in range(ADDRESS):
        table[slot, field] = node[field]
    table[slot, ADDRESS] = at - 1
    return at


@subroutine
def _hash(node: Any, inputs: Any, transitions: Any) -> Any:
    value = np.uint64(node[IS_FINAL]) * np.uint64(31) + np.uint64(node[FINAL_OUTPUT])
    place = node[HEAD]
    while place >= 0:
        for word in (np.uint64(inputs[place]), np.uint64(transitions[place, OUTPUT])):
            value = (value ^ word) * np.uint64(0x9E3779B97F4A7C15)
            value ^= value >> np.uint64(29)
        value = (value ^ np.uint64(transitions[place, TARGET])) * np.uint64(0xC2B2AE3D27D4EB4F)
        place = transitions[place, NEXT]
    return np.int64((value ^ (value >> np.uint64(31))) & np.uint64(0x7FFFFFFF))


@subroutine
def _is_equal(node: Any, other: Any, inputs: Any, transitions: Any) -> Any:
    for field in (COUNT, IS_FINAL, FINAL_OUTPUT):
        if node[field] != other[field]:
            return False
    own, others = node[HEAD], other[HEAD]
    while own >= 0:
        if inputs[own] != inputs[others]:
            return False
        if transitions[own, OUTPUT] != transitions[others, OUTPUT]:
            return False
        if transitions[own, TARGET] != transitions[others, TARGET]:
            return False
        own, others = transitions[own, NEXT], transitions[others, NEXT]
    return True


@subroutine
def _size_of(value: Any) -> Any:
    """Return the size of a number in bytes, at least 1."""
    rest, size = np.int64(value) >> 8, np.int64(1)
    while rest:
        rest >>= 8
        size += 1
    return size


@subroutine
def _store(out: Any, at: Any, value: Any, size: Any) -> Any:
    for i in range(size):
        store_u8(out, at + i, np.uint8((np.int64(value) >> (8 * i)) & 255))
    return at + size


@subroutine
def _delta(transitions: Any, place: Any, at: Any) -> Any:
    target = transitions[place, TARGET]
    return at - target if target else np.int64(0)


@subroutine
def _write_node(node: Any, codes: Any, inputs: Any, transitions: Any, out: Any, at: Any) -> Any:
    """Write a node. Returns its end."""
    if node[COUNT] == 1 and not node[IS_FINAL]:
        return _write_single(node, codes, inputs, transitions, out, at)
    start, output_bytes, delta_bytes = at, np.int64(0), np.int64(1)
    has_outputs = node[FINAL_OUTPUT] > 0
    if has_outputs:
        output_bytes = _size_of(node[FINAL_OUTPUT])
    place = node[HEAD]
    while place >= 0:
        if transitions[place, OUTPUT]:
            output_bytes = max(output_bytes, _size_of(transitions[place, OUTPUT]))
        delta_bytes = max(delta_bytes, _size_of(_delta(transitions, place, start)))
        place = transitions[place, NEXT]
    if output_bytes:
        if node[IS_FINAL]:
            at = _store(out, at, node[FINAL_OUTPUT], output_bytes)
        place = node[HEAD]
        while place >= 0:
            at = _store(out, at, transitions[place, OUTPUT], output_bytes)
            place = transitions[place, NEXT]
    place = node[HEAD]
    while place >= 0:
        at = _store(out, at, _delta(transitions, place, start), delta_bytes)
        place = transitions[place, NEXT]
    place = node[HEAD]
    while place >= 0:
        store_u8(out, at, inputs[place])
        at += 1
        place = transitions[place, NEXT]
    count = node[COUNT]
    if count > INDEXED:
        for i in range(256):
            store_u8(out, at + i, np.uint8(255))
        for i in range(count):
            store_u8(out, at + np.int64(out[at - 1 - i]), np.uint8(i))
        at += 256
    store_u8(out, at, np.uint8((delta_bytes << 4) | output_bytes))
    at += 1
    if count == 0 or count > 63:
        store_u8(out, at, np.uint8(1 if count == 256 else count))
        at += 1
        count = np.int64(0)
    store_u8(out, at, np.uint8((node[IS_FINAL] << 6) | count))
    return at + 1


@subroutine
def _write_single(node: Any, codes: Any, inputs: Any, transitions: Any, out: Any, at: Any) -> Any:
    """Write a node that is not final and has one transition. Returns its end."""
    place = node[HEAD]
    output = transitions[place, OUTPUT]
    is_next = output == 0 and transitions[place, TARGET] == at - 1
    if not is_next:
        delta = _delta(transitions, place, at)
        delta_bytes = _size_of(delta)
        output_bytes = _size_of(output) if output else np.int64(0)
        at = _store(out, at, output, output_bytes)
        at = _store(out, at, delta, delta_bytes)
        store_u8(out, at, np.uint8((delta_bytes << 4) | output_bytes))
        at += 1
    code = codes[inputs[place]]
    if code == 0:
        store_u8(out, at, inputs[place])
        at += 1
    store_u8(out, at, np.uint8((192 if is_next else 128) | code))
    return at + 1
