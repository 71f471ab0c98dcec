"""Converts JSON text to JSONB. `encoding.arrow.jsonb` describes the bytes.

The members of an object are sorted by the bytes of their keys. An integer that fits 64 bits is stored in as few bytes
as possible, unsigned unless it is negative. Any other number is a float. An empty text is null.
"""

from __future__ import annotations

import itertools
import json
import struct
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.encoding.block import VariableWidth
from lance_duck.errors import InvalidInputError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.json import parse
from lance_duck.kernels.json.write import write_jsonb
from lance_duck.kernels.memory import Bytes

_MAX_DEPTH: Final = 512
_SLICE: Final = 1 << 22
_EXCERPT: Final = 40
_REASONS: Final = {
    parse.BAD_VALUE: "a value",
    parse.BAD_STRING: "an escape that JSON knows",
    parse.BAD_NUMBER: "a number",
    parse.BAD_PLACE: "a quoted key, a colon, a comma or a closing bracket",
    parse.ENDS: "more text",
    parse.TRAILING: "nothing after the value",
    parse.DUPLICATE: "an object whose keys differ",
    parse.TOO_DEEP: f"at most {_MAX_DEPTH} levels",
    parse.TOO_LARGE: f"members of at most {parse.MAX_SIZE} bytes",
}


def encode_jsonb(texts: pa.Array, where: str = "JSON") -> VariableWidth:
    """Encode an array of JSON strings as JSONB. A null becomes an empty value.

    NaN, Infinity and -Infinity are accepted, and unpaired surrogates are kept.

    Args:
        texts: Texts, string or large_string.
        where: Name of the column, for messages.

    Raises:
        InvalidInputError: A string is not JSON (the message names its row), or the array does not contain strings.
    """
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        raise InvalidInputError("JSON documents must be strings", where=where, expected="strings", found=texts.type)
    skip = np.zeros(len(texts), np.uint8)
    if texts.null_count:
        skip = texts.is_null().to_numpy(zero_copy_only=False).view(np.uint8)
    data, offsets = _text_buffers(texts)
    bounds = _slice_bounds(offsets)
    parts: list[Bytes] = []
    ends = np.zeros(len(texts) + 1, np.int64)
    encoder = _Encoder(data, where)
    for start, stop in itertools.pairwise(bounds):
        part, part_ends = encoder.encode(offsets[start : stop + 1], skip[start:stop], start)
        ends[start : stop + 1] = part_ends + ends[start]
        parts.append(part)
    return VariableWidth(ends, parts[0] if len(parts) == 1 else np.concatenate([*parts, np.empty(0, np.uint8)]))


def encode_jsonb_reference(text: str) -> bytes:
    """Encode one JSON text without unpaired surrogates as JSONB, in plain Python."""
    return _value(json.loads(text) if text else None)


class _Encoder:
    """An encoder that reuses its buffers for each slice of the texts."""

    def __init__(self, data: Bytes, where: str) -> None:
        self._data, self._where = data, where
        self._tape = np.empty((1024, parse.NODE), np.int64)
        self._floats = np.empty((1024, 3), np.int64)
        self._stack = np.empty(_MAX_DEPTH, np.int64)

    def encode(self, offsets: NDArray[np.int64], skip: Bytes, first: int) -> tuple[Bytes, NDArray[np.int64]]:
        sizes = np.diff(offsets)
        scratch = np.empty(16 + 4 * int(sizes.max(initial=0)), np.uint8)
        out = np.empty(8 * len(sizes) + 4 * int(sizes.sum()), np.uint8)
        ends, state = np.zeros(len(offsets), np.int64), np.zeros(4, np.int64)
        while True:
            status = write_jsonb(
                self._data, offsets, skip, self._tape, self._stack, scratch, out, ends, self._floats, state
            )
            if status != parse.NO_ROOM:
                break
            self._floats = np.concatenate([self._floats, np.empty_like(self._floats)])
            self._tape = np.empty((2 * len(self._tape), parse.NODE), np.int64)
        if status != parse.OK:
            raise self._refusal(status, offsets, first, state)
        self._fill_floats(out, int(state[2]))
        return out[: state[1]].copy(), ends

    def _fill_floats(self, out: Bytes, count: int) -> None:
        if not count:
            return
        spans = self._floats[:count]
        sizes = spans[:, 1] - spans[:, 0]
        offsets = np.zeros(count + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        chars = self._data[np.arange(offsets[-1]) + np.repeat(spans[:, 0] - offsets[:-1], sizes)]
        texts = pa.LargeStringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(chars))
        values = pc.cast(texts, pa.float64()).to_numpy().astype(">f8").view(np.uint8).reshape(count, 8)
        out[spans[:, 2, None] + np.arange(8)] = values

    def _refusal(
        self, status: int, offsets: NDArray[np.int64], first: int, state: NDArray[np.int64]
    ) -> InvalidInputError:
        row, place = int(state[0]), int(state[3])
        start, stop = int(offsets[row]), int(offsets[row + 1])
        excerpt = self._data[start : min(stop, start + _EXCERPT)].tobytes().decode(errors="replace")
        dots = "…" if stop - start > _EXCERPT else ""
        return InvalidInputError(
            "the string is not JSON",
            where=f"{self._where}, row {first + row}",
            expected=f"{_REASONS[status]} at byte {place - start}",
            found=f"{excerpt!r}{dots}",
        )


def _text_buffers(texts: pa.Array) -> tuple[Bytes, NDArray[np.int64]]:
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid as error:
        raise InvalidInputError("the string is not valid UTF-8", where="JSON", found=error) from error
    _, raw_offsets, raw_data = texts.buffers()
    kind = np.int32 if pa.types.is_string(texts.type) else np.int64
    offsets = np.zeros(1, np.int64)
    if len(texts):
        offsets = np.frombuffer(raw_offsets, kind)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    data = np.empty(0, np.uint8) if raw_data is None else np.frombuffer(raw_data, np.uint8)
    return readonly(data), readonly(offsets)


def _slice_bounds(offsets: NDArray[np.int64]) -> list[int]:
    """Return the first row of each slice of about `_SLICE` bytes, then the number of rows."""
    rows, total = len(offsets) - 1, int(offsets[-1] - offsets[0])
    cuts = np.searchsorted(offsets, offsets[0] + np.arange(_SLICE, total, _SLICE))
    return [int(cut) for cut in np.unique([0, *cuts, rows])]


def _value(value: Any) -> bytes:
    kind, data = _member(value)
    return data if kind == 5 else struct.pack(">II", 2 << 28, kind << 28 | len(data)) + data


def _member(value: Any) -> tuple[int, bytes]:
    if isinstance(value, dict):
        pairs = sorted((key.encode(), _member(member)) for key, member in value.items())
        keys = b"".join(struct.pack(">I", 1 << 28 | len(key)) for key, _ in pairs)
        entries = b"".join(struct.pack(">I", kind << 28 | len(data)) for _, (kind, data) in pairs)
        names, values = b"".join(key for key, _ in pairs), b"".join(data for _, (_, data) in pairs)
        return 5, struct.pack(">I", 4 << 28 | len(pairs)) + keys + entries + names + values
    if isinstance(value, list):
        members = [_member(member) for member in value]
        entries = b"".join(struct.pack(">I", kind << 28 | len(data)) for kind, data in members)
        return 5, struct.pack(">I", 8 << 28 | len(members)) + entries + b"".join(data for _, data in members)
    if isinstance(value, str):
        return 1, value.encode()
    if value is None or isinstance(value, bool):
        return {None: 0, False: 3, True: 4}[value], b""
    return 2, _number(value)


def _number(value: float) -> bytes:
    if isinstance(value, int) and -(2**63) <= value < 2**64:
        if value == 0:
            return b"\0"
        fits = [w for w in (1, 2, 4, 8) if -(256**w) // 2 <= value < 256**w]
        return (b"\x40" if value < 0 else b"\x50") + value.to_bytes(fits[0], "big", signed=value < 0)
    value = float(value)
    if value != value or value in (float("inf"), float("-inf")):
        return b"\x10" if value != value else b"\x20" if value > 0 else b"\x30"
    return b"\x60" + struct.pack(">d", value)
