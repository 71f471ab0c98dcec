"""JSONB, a big-endian binary form of JSON, and its conversion to JSON text.

    size       | field of a value
    4          | bits 28-31: kind (2 scalar, 4 object, 8 array); bits 0-27: number of members
    4 x n      | object: an entry for each key
    4 x n      | an entry for each member (a scalar has one)
    any        | the keys of an object, then the members, one after the other

    an entry   | meaning
    bits 28-30 | 0 null, 1 string, 2 number, 3 false, 4 true, 5 an object or array, 6 an extension value
    bits 0-27  | bytes of the member

    a number   | meaning of its first byte; the others are the number, big-endian
    0x00       | zero
    0x10 - 0x30| NaN and the infinities, which JSON writes as null
    0x40, 0x50 | signed, unsigned integer of 1, 2, 4 or 8 bytes
    0x60       | float of 8 bytes
    0x70       | decimal: coefficient, 8, 16 or 32 bytes; precision, 1 byte, old writers only; scale, 1 byte

    extension  | meaning of its first byte; the others are big-endian
    0x00       | bytes
    0x10       | date: days since 1970, 4 bytes
    0x20       | timestamp: microseconds since 1970, 8 bytes
    0x30       | timestamp as above; time zone offset: seconds, 4 bytes; old writers: hours, 1 byte
    0x40       | interval: months, 4 bytes; days, 4 bytes; microseconds, 8 bytes

The text does not contain spaces. Floats have the shortest form that round-trips, with an exponent below 1e-5 and from
1e16 on. A decimal is written as a float, an extension value as a string, and bytes as hexadecimal digits.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.encoding.block import Block, Dictionary, VariableWidth
from lance_duck.errors import CorruptError, FormatError, InvalidInputError, UnsupportedError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.json.jsonb import (
    BAD_EXTENSION,
    BAD_NUMBER,
    BAD_TYPE,
    FRAME,
    TOO_DEEP,
    TOO_SHORT,
    TRAILING,
    jsonb_text,
)
from lance_duck.kernels.json.typed import typed_text
from lance_duck.kernels.memory import Bytes

_MAX_DEPTH = 512
_NULL = b"\x20\0\0\0\0\0\0\0"
_LONGEST = 96
"""Maximum text length of a typed value, in bytes, excluding hexadecimal digits of binary values."""
Int64s = NDArray[np.int64]
Float64s = NDArray[np.float64]
_REASONS = {
    TOO_SHORT: "value ends within a member",
    BAD_TYPE: "unknown kind of member",
    BAD_NUMBER: "unknown number",
    BAD_EXTENSION: "unknown extension value",
    TRAILING: "bytes that belong to no member",
}


def jsonb_to_text(
    block: Block, where: str, name_value: Callable[[int], str] | None = None, valid: Bytes | None = None
) -> Block:
    """Convert JSONB values to text. An empty value becomes an empty string.

    Args:
        block: The values.
        where: Name of the column, for messages.
        name_value: Formats the position of a value for messages. The default is like "JSON value 5".
        valid: uint8, nonzero for each value that is not null, or None if all are valid.

    Raises:
        CorruptError: A value is not JSONB.
        UnsupportedError: A value is nested deeper than 512 levels.
    """
    name_value = name_value or (lambda position: f"JSON value {position}")
    if isinstance(block, Dictionary):
        return _dictionary_to_text(block, where, name_value, valid)
    if not isinstance(block, VariableWidth):
        raise CorruptError("the JSON values are not variable-width", where=where)
    return _to_text(block, where, name_value)


def check_jsonb(values: pa.Array, where: str) -> VariableWidth:
    """Return the texts of binary values, after checking that each is JSONB: nesting, tags, lengths and UTF-8.

    At most 512 levels are allowed. The order of keys is not checked. A null has the text "null".

    Raises:
        InvalidInputError: A value is not JSONB, or is nested too deeply. The message names its row.
    """
    filled = values.fill_null(_NULL) if values.null_count else values
    _, raw_offsets, raw_data = filled.buffers()
    offsets = np.frombuffer(raw_offsets, np.int64, len(filled) + 1, 8 * filled.offset)
    data = np.empty(0, np.uint8) if raw_data is None else np.frombuffer(raw_data, np.uint8)
    empty = np.flatnonzero(np.diff(offsets) == 0)
    if len(empty):
        raise _refusal(where, int(empty[0]), "an empty value")
    try:
        texts = _to_text(VariableWidth(offsets, data), where, str, strict=True)
    except FormatError as error:
        row = str(error.where).rpartition(": ")[2]
        raise _refusal(where, int(row), error.found or f"nesting, expected {error.expected}") from error
    bad = _first_bad_text(texts)
    if bad is not None:
        raise _refusal(where, bad, "a string that is not UTF-8")
    return texts


def checked_jsonb(values: pa.Array, where: str) -> pa.Array:
    """Return binary values as large_binary, after checking that each is JSONB: see `check_jsonb`."""
    values = values.cast(pa.large_binary())
    if len(values):
        check_jsonb(values, where)
    return values


def jsonb_texts(values: pa.Array, where: str) -> pa.Array:
    """Return binary values as JSON strings, after checking that each is JSONB: see `check_jsonb`."""
    values = values.cast(pa.large_binary())
    if not len(values):
        return pa.array([], pa.string())
    block = check_jsonb(values, where)
    texts = pa.LargeStringArray.from_buffers(block.count, pa.py_buffer(block.offsets), pa.py_buffer(block.data))
    return pc.if_else(values.is_valid(), texts, pa.scalar(None, pa.large_string())).cast(pa.string())


def _refusal(where: str, row: int, found: object) -> InvalidInputError:
    return InvalidInputError(
        "the value is not JSONB",
        where=f"{where}, row {row}",
        expected="JSON in Lance's binary form",
        found=found,
        remedy="write JSON documents as strings",
    )


def _first_bad_text(block: VariableWidth) -> int | None:
    """Return the position of the first value that is not valid UTF-8, or None if all values are valid."""
    buffers = [None, pa.py_buffer(np.ascontiguousarray(block.offsets)), pa.py_buffer(block.data)]
    texts = pa.LargeStringArray.from_buffers(block.count, *buffers[1:])
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        values = pa.LargeBinaryArray.from_buffers(pa.large_binary(), block.count, buffers)
        return next(i for i, value in enumerate(values.to_pylist()) if not _is_text(value))
    return None


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _dictionary_to_text(
    block: Dictionary, where: str, name_value: Callable[[int], str], valid: Bytes | None
) -> Dictionary:
    """Return a dictionary of texts. Corrupt items raise an error only if a value refers to them."""
    with suppress(FormatError):
        return Dictionary(block.indices, jsonb_to_text(block.items, where))
    is_valid = np.ones(len(block.indices), np.bool_) if valid is None else valid[: len(block.indices)] != 0
    items, used = block.items, np.unique(block.indices[is_valid])
    sizes: Int64s = np.empty(0, np.int64)
    if isinstance(items, VariableWidth):
        sizes = items.offsets[1:].astype(np.int64) - items.offsets[:-1]
    if not isinstance(items, VariableWidth) or bool((sizes < 0).any()) or (len(used) and used[-1] >= items.count):
        return Dictionary(block.indices, jsonb_to_text(items, where))
    keep = np.zeros(items.count, np.bool_)
    keep[used] = True
    data = items.data[int(items.offsets[0]) : int(items.offsets[-1])][np.repeat(keep, sizes)]
    offsets = np.append(0, np.cumsum(sizes * keep))

    def name_item(position: int) -> str:
        return name_value(int(np.flatnonzero((block.indices == position) & is_valid)[0]))

    return Dictionary(block.indices, _to_text(VariableWidth(offsets, data), where, name_item))


def _to_text(
    block: VariableWidth, where: str, name_value: Callable[[int], str], *, strict: bool = False
) -> VariableWidth:
    data, offsets = readonly(block.data), readonly(block.offsets.astype(np.int64))
    if offsets[0] < 0 or offsets[-1] > len(data) or bool((np.diff(offsets) < 0).any()):
        raise CorruptError(
            "the offsets of the JSON values are invalid",
            where=where,
            expected=f"ascending offsets, at most {len(data)}",
        )
    nothing, no_numbers, no_floats = np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.float64)
    stack = np.empty(_MAX_DEPTH * FRAME, np.int64)
    ends = np.zeros(block.count + 1, np.int64)
    totals = np.zeros(3, np.int64)

    def run(out: Bytes, texts: Bytes, text_ends: Int64s, floats: Float64s, typed: Int64s) -> int:
        return jsonb_text(data, offsets, stack, out, ends, readonly(texts), text_ends, floats, typed, totals, strict)

    status = run(nothing, nothing, no_numbers, no_floats, no_numbers)
    _check(status, totals, where, name_value)
    (count, num_typed, size), texts, text_ends = totals.tolist(), nothing, no_numbers
    if count:
        floats, typed = np.zeros(count, np.float64), np.empty(3 * num_typed, np.int64)
        run(nothing, nothing, no_numbers, floats, typed)
        texts, text_ends = _texts(floats, typed, data)
        size += len(texts)
    out = np.empty(size, np.uint8)
    run(out, texts, text_ends, no_floats, no_numbers)
    return VariableWidth(ends, out)


def float_text(value: float) -> str:
    """Return the shortest JSON text of a float. NaN and the infinities become null, since JSON lacks them."""
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
    """Return the text of one value: the reference implementation of `jsonb_to_text`."""
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


def _texts(floats: Float64s, typed: Int64s, data: Bytes) -> tuple[Bytes, Int64s]:
    """Return the concatenated texts of floats and typed values, and their offsets."""
    strings: list[bytes] = []
    bounds = np.zeros(len(typed) // 3 + 1, np.int64)
    if len(typed):
        sizes = typed[2::3]
        out = np.empty(_LONGEST * len(sizes) + 2 * int(sizes.sum()), np.uint8)
        typed_text(data, typed, floats, out, bounds)
        joined = out[: bounds[-1]].tobytes()
        strings = [joined[start:stop] for start, stop in pairwise(bounds.tolist())]
    texts = [float_text(value).encode() for value in floats.tolist()]
    for number, string in zip(typed[::3].tolist(), strings, strict=True):
        texts[number] = string or texts[number]
    ends = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=ends[1:])
    return np.frombuffer(b"".join(texts), np.uint8), ends


def _check(status: int, totals: NDArray[np.int64], where: str, name_value: Callable[[int], str]) -> None:
    if status == 0:
        return
    place = f"{where}: {name_value(status >> 8)}"
    reason = status & 0xFF
    if reason == TOO_DEEP:
        raise UnsupportedError(
            "the JSON document is nested too deeply", where=place, expected=f"<= {_MAX_DEPTH} levels"
        )
    kind, tag = totals[:2].tolist()
    found = f"kind {kind}" if reason == BAD_TYPE else f"tag {tag:#04x}"
    raise CorruptError(
        "the JSON value is corrupt",
        where=place,
        found=f"{_REASONS[reason]}, {found}" if reason in (BAD_TYPE, BAD_NUMBER, BAD_EXTENSION) else _REASONS[reason],
    )
