"""Arrays of all B-tree types with awkward values, and the meaning of queries on plain values."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import Decimal
from functools import total_ordering
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from lance_duck.index.query import Among, Between, Except, HasPrefix, Null, Query

_ODD = {2: "<H", 4: "<I", 8: "<Q"}
_NANS = {
    2: (0x7E00, 0xFE00, 0x7C01),
    4: (0x7FC00000, 0xFFC00000, 0x7F800001),
    8: (0x7FF8 << 48, 0xFFF8 << 48, (0x7FF << 52) + 1),
}


def _floats(width: int) -> st.SearchStrategy[bytes]:
    """Bit patterns, for NaNs of all sorts."""
    odd = [struct.pack(_ODD[width], bits) for bits in _NANS[width]]
    code = {2: "e", 4: "f", 8: "d"}[width]
    plain = [struct.pack(f"<{code}", x) for x in (0.0, -0.0, 1.0, -1.0, 1.5, math.inf, -math.inf)]
    return st.sampled_from(odd + plain) | st.floats(width=8 * width).map(lambda x: struct.pack(f"<{code}", x))


def _bits(type_: pa.DataType) -> Callable[[list[bytes | None]], pa.Array]:
    def make(values: list[bytes | None]) -> pa.Array:
        width = type_.bit_width // 8
        data = b"".join(v or bytes(width) for v in values)
        valid = np.packbits(np.array([v is not None for v in values], np.bool_), bitorder="little").tobytes()
        return pa.Array.from_buffers(type_, len(values), [pa.py_buffer(valid), pa.py_buffer(data)])

    return make


def _stored(type_: pa.DataType) -> Callable[[list[int | None]], pa.Array]:
    storage = pa.int32() if type_.bit_width == 32 else pa.int64()
    return lambda values: pa.array(values, storage).view(type_)


def _integers(bits: int, *, signed: bool = True) -> st.SearchStrategy[int]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return st.integers(low, high) | st.integers(max(low, -3), 3) | st.sampled_from([low, high])


_TEXT = st.text(max_size=3) | st.sampled_from(["", "a", "ab", "a\0", "é", "\U0010ffff", "abcdefghijk", "abcdefghijl"])
_BYTES = st.binary(max_size=3) | st.sampled_from(
    [b"", b"\0", b"\0\0", b"\xff", b"\xff\xff", b"abcdefgh\0", b"abcdefgh"]
)
_DECIMALS = st.integers(-(10**19) + 1, 10**19 - 1).map(lambda i: Decimal(i).scaleb(-2))

TYPES: dict[str, tuple[st.SearchStrategy[Any], Callable[[list[Any]], pa.Array]]] = {
    "int8": (_integers(8), lambda v: pa.array(v, pa.int8())),
    "int64": (_integers(64), lambda v: pa.array(v, pa.int64())),
    "uint16": (_integers(16, signed=False), lambda v: pa.array(v, pa.uint16())),
    "uint64": (_integers(64, signed=False), lambda v: pa.array(v, pa.uint64())),
    "float16": (_floats(2), _bits(pa.float16())),
    "float32": (_floats(4), _bits(pa.float32())),
    "float64": (_floats(8), _bits(pa.float64())),
    "bool": (st.booleans(), lambda v: pa.array(v, pa.bool_())),
    "string": (_TEXT, lambda v: pa.array(v, pa.string())),
    "large_string": (_TEXT, lambda v: pa.array(v, pa.large_string())),
    "binary": (_BYTES, lambda v: pa.array(v, pa.binary())),
    "large_binary": (_BYTES, lambda v: pa.array(v, pa.large_binary())),
    "fixed_size_binary": (st.binary(min_size=3, max_size=3), lambda v: pa.array(v, pa.binary(3))),
    "date32": (_integers(32), _stored(pa.date32())),
    "date64": (_integers(64), _stored(pa.date64())),
    "time32": (st.integers(0, 86399), _stored(pa.time32("s"))),
    "time64": (st.integers(0, 86399 * 10**6), _stored(pa.time64("us"))),
    "timestamp": (_integers(64), _stored(pa.timestamp("us"))),
    "timestamp with a zone": (_integers(64), _stored(pa.timestamp("ns", "Europe/Berlin"))),
    "duration": (_integers(64), _stored(pa.duration("ms"))),
    "decimal128": (_DECIMALS, lambda v: pa.array(v, pa.decimal128(38, 2))),
    "decimal256": (_DECIMALS, lambda v: pa.array(v, pa.decimal256(50, 2))),
}


@total_ordering
class Plain:
    """A value as queries mean it: NaN equals NaN and is the greatest, text orders by its bytes."""

    def __init__(self, scalar: pa.Scalar) -> None:
        if pa.types.is_floating(scalar.type):
            x = float(scalar.as_py())
            self.key: Any = (1, 0.0) if math.isnan(x) else (0, x)
        elif pa.types.is_temporal(scalar.type):
            self.key = scalar.value
        else:
            value = scalar.as_py()
            self.key = value.encode() if isinstance(value, str) else value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plain) and self.key == other.key

    def __lt__(self, other: Plain) -> bool:
        return bool(self.key < other.key)

    __hash__ = None  # type: ignore[assignment]


def satisfies(scalar: pa.Scalar, query: Query) -> bool:
    """Whether a value satisfies a query."""
    if isinstance(query, Null) or not scalar.is_valid:
        return isinstance(query, Null) and not scalar.is_valid
    if isinstance(query, Except):
        return not satisfies(scalar, query.query)
    value = Plain(scalar)
    if isinstance(query, Among):
        return any(value == Plain(each) for each in query.values)
    if isinstance(query, HasPrefix):
        return bool(value.key.startswith(Plain(query.prefix).key))
    assert isinstance(query, Between)
    above = query.low is None or value > Plain(query.low) or (not query.low_open and value == Plain(query.low))
    below = query.high is None or value < Plain(query.high) or (not query.high_open and value == Plain(query.high))
    return above and below


@st.composite
def values_and_query(draw: st.DrawFn) -> tuple[pa.Array, Query]:
    """Values of some type, and a query on them."""
    name = draw(st.sampled_from(sorted(TYPES)))
    one, make = TYPES[name]
    pool = draw(st.lists(one, min_size=1, max_size=8))
    some = st.none() | st.sampled_from(pool)
    array = make(draw(st.lists(some, max_size=24)))
    constants = make(draw(st.lists(st.sampled_from(pool) | one, min_size=2, max_size=6)))
    queries: list[Query] = [Null(), Among(constants), Among(constants.slice(0, 1)), Among(constants.slice(0, 0))]
    low, high, opens = constants[0], constants[1], st.booleans()
    queries += [Between(low, None, draw(opens)), Between(None, high, False, draw(opens)), Between()]
    queries += [Between(low, high, draw(opens), draw(opens))]
    if name in ("string", "large_string", "binary", "large_binary"):
        queries.append(HasPrefix(low))
    query = draw(st.sampled_from(queries))
    return array, Except(query) if draw(st.booleans()) else query
