"""Compiled masks agree with the three-valued evaluation, null counted as no."""

from __future__ import annotations

import datetime as dt
import decimal
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.errors import InvalidInputError
from lance_duck.scan.predicate.evaluate import evaluate, mask
from lance_duck.scan.predicate.tree import And, Compare, ConstantCondition, In, IsNull, Not, Or, Predicate

TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy]] = {
    "i8": (pa.int8(), st.integers(-128, 127)),
    "u64": (pa.uint64(), st.integers(0, 2**64 - 1) | st.sampled_from([0, 2**63, 2**64 - 1])),
    "i64": (pa.int64(), st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-(2**63), 0, 2**63 - 1])),
    "f32": (pa.float32(), st.floats(width=32)),
    "f64": (pa.float64(), st.floats() | st.sampled_from([0.0, -0.0, math.inf, math.nan])),
    "s": (pa.string(), st.text(max_size=2)),
    "d": (pa.date32(), st.dates(dt.date(1960, 1, 1), dt.date(1960, 1, 9))),
    "ts": (pa.timestamp("ns"), st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 2))),
    "dec": (pa.decimal64(15, 2), st.integers(-9, 9).map(lambda n: decimal.Decimal(n) / 4)),
    "dec128": (pa.decimal128(20, 2), st.integers(-9, 9).map(lambda n: decimal.Decimal(n) / 4)),
    "dict": (pa.dictionary(pa.int32(), pa.string()), st.sampled_from(["a", "b", ""])),
    "dict of numbers": (pa.dictionary(pa.uint8(), pa.int32()), st.integers(-3, 3)),
    "dict of floats": (pa.dictionary(pa.int8(), pa.float64()), st.sampled_from([-0.5, 0.0, -0.0, 1.5, math.nan])),
    "dict of bytes": (pa.dictionary(pa.int16(), pa.binary()), st.sampled_from([b"", b"a", b"b"])),
    "b": (pa.bool_(), st.booleans()),
}


@st.composite
def questions(draw: st.DrawFn) -> tuple[Predicate, dict[str, pa.Array], int]:
    count = draw(st.integers(0, 40))
    start = draw(st.integers(0, 9))
    columns = {}
    for name, (kind, values) in TYPES.items():
        content = draw(st.lists(values | st.none(), min_size=count + start, max_size=count + start))
        columns[name] = pa.array(content, kind).slice(start)
    return draw(st.recursive(leaves(), trees, max_leaves=5)), columns, count


def leaves() -> st.SearchStrategy[Predicate]:
    def of(name: str) -> st.SearchStrategy[Predicate]:
        kind, values = TYPES[name]
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        scalar = st.builds(lambda v: pa.scalar(v, plain), values)
        several = st.lists(values | st.none(), max_size=3).map(lambda v: pa.array(v, plain))
        return st.one_of(
            st.builds(Compare, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), st.just((name,)), scalar),
            st.builds(In, st.just((name,)), several),
            st.builds(IsNull, st.just((name,))),
        )

    return st.one_of(
        st.sampled_from(sorted(TYPES)).flatmap(of), st.builds(ConstantCondition, st.sampled_from([True, False, None]))
    )


def trees(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.one_of(st.builds(And, several), st.builds(Or, several), st.builds(Not, inner))


@given(questions())
def test_a_mask_equals_the_evaluation_with_null_as_false(question: tuple[Predicate, dict[str, pa.Array], int]) -> None:
    predicate, columns, count = question

    expected = evaluate(predicate, columns, count).fill_null(False)

    assert mask(predicate, columns, count).to_pylist() == expected.to_pylist()


def test_a_constant_outside_the_type_is_rejected_in_comparisons() -> None:
    values = {"i": pa.array([1, 2], pa.int8())}

    with pytest.raises(InvalidInputError, match="does not fit"):
        mask(Compare("<", ("i",), pa.scalar(1000)), values, 2)


def test_a_bound_at_the_end_of_the_type_excludes_or_includes_it() -> None:
    values = {"i": pa.array(np.array([-128, 127], np.int8))}

    assert mask(Compare("<", ("i",), pa.scalar(-128, pa.int8())), values, 2).to_pylist() == [False, False]
    assert mask(Compare(">=", ("i",), pa.scalar(127, pa.int8())), values, 2).to_pylist() == [False, True]
