"""Implied predicates of pyarrow expressions keep every row that pyarrow keeps."""

from __future__ import annotations

import math
import operator
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_duck.errors import InvalidInputError
from lance_duck.scan.arrow.implied import implied_predicate
from lance_duck.scan.filters import make_filter
from lance_duck.scan.predicate.evaluate import mask
from lance_duck.scan.predicate.tree import And, ConstantCondition, Not, Opaque, Or, Predicate

NAN = math.nan
RNG = random.Random(3)
ROWS = 100
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "x": (pa.int32(), [1, 2, 3]),
    "f": (pa.float64(), [NAN, 0.0, -0.0, 1.5, math.inf]),
    "g": (pa.float32(), [NAN, 0.0, 0.1]),
    "s": (pa.string(), ["a", "abc", "b"]),
    "b": (pa.bool_(), [True, False]),
    "c": (pa.decimal128(6, 2), [Decimal("1.50"), Decimal("-0.01"), Decimal("3.00")]),
    "y": (pa.binary(), [b"", b"ab", b"\xff"]),
    "w": (pa.binary(2), [b"ab", b"\x00\xff"]),
}
COLUMNS = {n: pa.array([RNG.choice([None, *v]) for _ in range(ROWS)], t) for n, (t, v) in VALUES.items()}
SCHEMA = pa.schema([(name, array.type) for name, array in COLUMNS.items()])
OPS = (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge)


@st.composite
def leaves(draw: st.DrawFn) -> pc.Expression:
    name = draw(st.sampled_from(list(VALUES)))
    column, (type_, values) = pc.field(name), VALUES[name]
    kind = draw(st.integers(0, 8))
    if kind == 0:
        return column.is_null(nan_is_null=draw(st.booleans()) and name in "fg")
    if kind == 1:
        return column.is_valid()
    if kind == 2 and name != "b":
        return column.isin(pa.array(draw(st.lists(st.sampled_from([None, *values]), min_size=1, max_size=3)), type_))
    if kind == 3:
        return pc.starts_with(pc.field("s"), draw(st.sampled_from(["", "a", "ab"])))
    if kind == 4:
        return pc.field("b")
    if kind == 5:
        return pc.match_like(pc.field("s"), draw(st.sampled_from(["a%", "ab_", "%b", "abc", "a\\%", "a\\bc%"])))
    constants = [*values, 2.5, 5_000_000_000] if name == "x" else values
    return draw(st.sampled_from(OPS))(column, draw(st.sampled_from(constants)))


EXPRESSIONS = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] & p[1]),
        st.tuples(inner, inner).map(lambda p: p[0] | p[1]),
        inner.map(operator.invert),
    ),
    max_leaves=5,
)


def at_most(predicate: Predicate, *, true: bool = True) -> Predicate:
    """Return the predicate with unknown parts replaced by true, as far as they matter."""
    match predicate:
        case Opaque():
            return ConstantCondition(true)
        case And(operands):
            return And(tuple(at_most(o, true=true) for o in operands))
        case Or(operands):
            return Or(tuple(at_most(o, true=true) for o in operands))
        case Not(operand):
            return Not(at_most(operand, true=not true))
    return predicate


@settings(max_examples=300, deadline=None)
@given(EXPRESSIONS)
def test_an_implied_predicate_is_true_wherever_the_expression_is(expression: pc.Expression) -> None:
    try:
        kept = make_filter(expression, SCHEMA)
    except InvalidInputError:
        return
    implied = implied_predicate(expression, SCHEMA)
    if implied is not None and kept is not None:
        found = mask(at_most(implied), COLUMNS, ROWS).to_numpy(zero_copy_only=False)
        assert not (kept.mask(COLUMNS, ROWS).to_numpy(zero_copy_only=False) & ~found).any()


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        (pc.field("x") == 2, "x = 2"),
        (pc.scalar(2) < pc.field("x"), "x > 2"),
        ((pc.field("x") > 1) & (pc.field("s") == "a"), "(x > 1 AND s = 'a')"),
        (pc.field("x").isin([1, 2]), "x IN (1, 2)"),
        (~(pc.field("x") == 2), "NOT (x = 2)"),
        (pc.field("f") > 1.5, "f > 1.5"),
        (pc.is_null(pc.field("s")), "s IS NULL"),
        (pc.match_like(pc.field("s"), "ab%c"), "starts_with(s, 'ab')"),
        (pc.match_like(pc.field("s"), "ab\\%c"), "starts_with(s, 'ab')"),
        (~pc.match_like(pc.field("s"), "ab%c"), "NOT (a condition of pyarrow)"),
        (pc.match_like(pc.field("s"), "Ab%", ignore_case=True), None),
        (pc.field("c") == Decimal("1.5"), "c = 1.50"),
        (pc.field("w") == b"ab", "w = b'ab'"),
        (pc.field("w") == b"abc", None),
        (pc.field("x") == 2.5, None),
        (pc.field("g") == 0.1, None),
        (pc.add(pc.field("x"), 1) == 2, None),
    ],
)
def test_implied_predicates_have_the_expected_form(expression: pc.Expression, shown: str | None) -> None:
    found = implied_predicate(expression, SCHEMA)
    assert (None if found is None else str(found)) == shown
