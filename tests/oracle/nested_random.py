"""Random nested types and data of them."""

from __future__ import annotations

import decimal

import pyarrow as pa
from hypothesis import strategies as st
from oracle.columns import random_words
from oracle.kinds import Rng

PRIMITIVES = (
    pa.int8(),
    pa.int32(),
    pa.uint64(),
    pa.float32(),
    pa.float64(),
    pa.bool_(),
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.timestamp("us", "UTC"),
    pa.date32(),
    pa.decimal128(12, 3),
    pa.binary(5),
    pa.null(),
)
VECTOR_ITEMS = (pa.float32(), pa.uint8(), pa.int64(), pa.bool_())


def types(depth: int, *, maps: bool) -> st.SearchStrategy[pa.DataType]:
    """Draw a type of at most `depth` levels below the outermost."""
    flat = st.sampled_from(PRIMITIVES)
    if depth == 0:
        return flat
    below = types(depth - 1, maps=maps)
    fields = st.lists(st.tuples(below, st.booleans()), min_size=1, max_size=3)
    item = st.tuples(below, st.booleans()).map(lambda p: pa.field("item", p[0], p[1] or pa.types.is_null(p[0])))
    kinds = [
        fields.map(
            lambda parts: pa.struct([pa.field(f"f{i}", t, n or pa.types.is_null(t)) for i, (t, n) in enumerate(parts)])
        ),
        item.map(pa.list_),
        item.map(pa.large_list),
        st.tuples(st.sampled_from(VECTOR_ITEMS), st.sampled_from([1, 3, 80])).map(lambda p: pa.list_(p[0], p[1])),
    ]
    if maps:
        kinds.append(st.tuples(st.sampled_from([pa.string(), pa.int32()]), below).map(lambda p: pa.map_(*p)))
    return st.one_of(flat, *kinds)


def values(type_: pa.DataType, rng: Rng, n: int, nulls: float) -> pa.Array:
    """Make `n` values; `nulls` is the share of nulls at every level that may hold them."""
    return pa.array([value(type_, rng, nulls, True) for _ in range(n)], type_)


def value(type_: pa.DataType, rng: Rng, nulls: float, nullable: bool) -> object:
    """Make one value."""
    if pa.types.is_null(type_) or (nullable and rng.random() < nulls):
        return None
    if pa.types.is_struct(type_):
        fields = [type_.field(i) for i in range(type_.num_fields)]
        return {f.name: value(f.type, rng, nulls, f.nullable) for f in fields}
    if pa.types.is_map(type_):
        keys = range(int(rng.integers(0, 4)))
        name = str if pa.types.is_string(type_.key_type) else int
        return [(name(k), value(type_.item_type, rng, nulls, True)) for k in keys]
    if pa.types.is_fixed_size_list(type_):
        return _vector(type_, rng, nulls / 4)
    if pa.types.is_nested(type_):
        size = int(rng.choice([0, 1, 2, 5]))
        return [value(type_.value_type, rng, nulls, type_.value_field.nullable) for _ in range(size)]
    return _plain(type_, rng)


def _vector(type_: pa.DataType, rng: Rng, nulls: float) -> list[object]:
    numbers = rng.integers(0, 2, type_.list_size).astype(type_.value_type.to_pandas_dtype()).tolist()
    return [None if rng.random() < nulls else n for n in numbers] if nulls else numbers


def _plain(type_: pa.DataType, rng: Rng) -> object:
    if pa.types.is_boolean(type_):
        return bool(rng.random() < 0.5)
    if pa.types.is_floating(type_):
        return float(rng.integers(-100, 100)) / 4
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return random_words(rng, 1, 0, 300 if rng.random() < 0.05 else 9)[0]
    if pa.types.is_fixed_size_binary(type_) and not pa.types.is_decimal(type_):
        return rng.bytes(type_.byte_width)
    if pa.types.is_binary(type_):
        return rng.bytes(int(rng.integers(0, 9)))
    if pa.types.is_decimal(type_):
        return decimal.Decimal(int(rng.integers(-100, 100))).scaleb(-type_.scale)
    return _number(type_, rng)


def _number(type_: pa.DataType, rng: Rng) -> object:
    width = pa.int32() if type_.bit_width == 32 else pa.int64()
    number = int(rng.integers(0, 100))
    return pa.scalar(number, type_ if pa.types.is_integer(type_) else width).cast(type_).as_py()
