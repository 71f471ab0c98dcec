"""JSONB: binary JSON, big-endian, and its text.

    size       | field of a value
    4          | kind in the high four bits (2 scalar, 4 object, 8 array), number of members in the low ones
    4 x n      | object: an entry for each key
    4 x n      | an entry for each member (a scalar has one)
    any        | the keys of an object, then the members, one after the other

    an entry   | meaning
    bits 28-30 | 0 null, 1 string, 2 number, 3 false, 4 true, 5 an object or array
    bits 0-27  | bytes of the member

    a number   | meaning of its first byte; the others are the number, big-endian
    0x00       | zero
    0x10 - 0x30| NaN and the infinities, which JSON writes as null
    0x40, 0x50 | signed, unsigned integer of 1, 2, 4 or 8 bytes
    0x60       | float of 8 bytes

The text has no spaces; floats have the shortest form that reads back the same, with an exponent below 1e-5 and from
1e16 on.
"""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import Block, Dictionary, VariableWidth
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.json.jsonb import BAD_NUMBER, BAD_TYPE, FRAME, TOO_DEEP, TOO_SHORT, jsonb_text
from lance_duck.kernels.memory import Bytes

_MAX_DEPTH = 512
_REASONS = {TOO_SHORT: "value ends within a member", BAD_TYPE: "unknown kind of member", BAD_NUMBER: "unknown number"}


def jsonb_to_text(block: Block, where: str) -> Block:
    """Return the text of JSONB values; an empty value gives an empty text.

    Raises:
        CorruptError: A value is not JSONB.
        UnsupportedError: A value is nested deeper than 512 levels.
    """
    if isinstance(block, Dictionary):
        return Dictionary(block.indices, jsonb_to_text(block.items, where))
    if not isinstance(block, VariableWidth):
        raise CorruptError("JSON", where=where, expected="values of any length")
    data, offsets = readonly(block.data), readonly(block.offsets.astype(np.int64))
    if offsets[0] < 0 or offsets[-1] > len(data):
        raise CorruptError("offsets of JSON", where=where, expected=f"within {len(data)} bytes")
    nothing, no_floats = np.empty(0, dtype=np.uint8), np.empty(0, dtype=np.float64)
    stack = np.empty(_MAX_DEPTH * FRAME, dtype=np.int64)
    ends = np.zeros(block.count + 1, dtype=np.int64)
    no_ends = np.empty(0, dtype=np.int64)
    totals = np.zeros(2, dtype=np.int64)
    _check(jsonb_text(data, offsets, stack, nothing, ends, nothing, no_ends, no_floats, totals), where)
    size, texts = int(totals[0]), nothing
    if totals[1]:
        floats = np.empty(int(totals[1]), dtype=np.float64)
        jsonb_text(data, offsets, stack, nothing, ends, nothing, no_ends, floats, totals)
        texts, no_ends = _float_texts(floats)
        size += len(texts)
    out = np.empty(size, dtype=np.uint8)
    _check(jsonb_text(data, offsets, stack, out, ends, readonly(texts), no_ends, no_floats, totals), where)
    return VariableWidth(ends, out)


def float_text(value: float) -> str:
    """Return the shortest JSON text of a float; null for NaN and the infinities, which JSON does not have."""
    text = repr(value)
    if "n" in text:
        return "null"
    if "e" not in text:
        return text
    digits, exponent = text.split("e")
    if exponent == "-05":
        sign = "-" if digits.startswith("-") else ""
        return f"{sign}0.0000{digits.lstrip('-').replace('.', '')}"
    return f"{digits}e{exponent[0]}{exponent[1:].lstrip('0')}"


def jsonb_to_text_reference(value: bytes) -> str:
    """Return the text of one value: the plain reference of `jsonb_to_text`."""
    head = int.from_bytes(value[:4], "big")
    kind = head >> 28
    count = 1 if kind == 2 else head & 0x0FFFFFFF
    words = struct.unpack_from(f">{count * (2 if kind == 4 else 1)}I", value, 4)
    at = 4 + 4 * len(words)
    parts = []
    for word in words:
        size = word & 0x0FFFFFFF
        parts.append((word >> 28 & 7, value[at : at + size]))
        at += size
    if kind != 4:
        members = [_member_text(*part) for part in parts]
        return members[0] if kind == 2 else f"[{','.join(members)}]"
    pairs = zip(parts[:count], parts[count:], strict=True)
    return "{" + ",".join(f"{_member_text(1, key[1])}:{_member_text(*member)}" for key, member in pairs) + "}"


def _member_text(kind: int, data: bytes) -> str:
    if kind == 1:
        escapes = {ord(c): f"\\{e}" for c, e in zip('"\\\b\f\n\r\t', '"\\bfnrt', strict=True)}
        plain = {i: f"\\u{i:04x}" for i in range(32)} | escapes
        return '"' + data.decode().translate(plain) + '"'
    if kind == 2:
        tag, number = data[:1] or b"\0", data[1:]
        if tag == b"\0":
            return "0"
        if tag == b"\x60":
            return float_text(struct.unpack(">d", number)[0])
        return str(int.from_bytes(number, "big", signed=tag == b"\x40")) if number else "null"
    return jsonb_to_text_reference(data) if kind == 5 else {0: "null", 3: "false", 4: "true"}[kind]


def _float_texts(floats: NDArray[np.float64]) -> tuple[Bytes, NDArray[np.int64]]:
    texts = [float_text(value) for value in floats.tolist()]
    ends = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in texts], out=ends[1:])
    return np.frombuffer("".join(texts).encode(), dtype=np.uint8), ends


def _check(status: int, where: str) -> None:
    if status == 0:
        return
    place = f"{where}: JSON value {status >> 8}"
    if status & 0xFF == TOO_DEEP:
        raise UnsupportedError("nesting", where=place, expected=f"<= {_MAX_DEPTH} levels")
    raise CorruptError(_REASONS[status & 0xFF], where=place)
