"""Polars conditions as predicates, and the rows that a scan finds by them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.io.plugins import register_io_source

import lance_duck as ld
from lance_duck.scan.polars.expressions import PushedDown, pushed_down

NAN, INF = float("nan"), float("inf")
TEXTS = ["", "a", "ab", "b%", "a.b", "Ab", "é", None]
ROWS = pa.table(
    {
        "i": pa.array([1, 2, 3, None, -5, 100, 0, 2], pa.int64()),
        "t": pa.array([1, -1, None, 5, 127, -128, 0, 2], pa.int8()),
        "u": pa.array([1, 2**63, 2**64 - 1, 0, None, 3, 2, 1], pa.uint64()),
        "x": pa.array([1.5, NAN, -INF, INF, None, 0.0, -0.0, 2.0], pa.float64()),
        "f": pa.array([1.5, NAN, None, 0.1, 3.0, 0.0, -0.0, 2.0], pa.float32()),
        "s": pa.array(TEXTS, pa.string()),
        "c": pa.array(TEXTS).dictionary_encode(),
        "b": pa.array([True, False, None, True, False, True, None, False]),
        "d": pa.array([None if i == 3 else date(2024, 1, 1 + i) for i in range(8)], pa.date32()),
        "m": pa.array([None if i == 4 else datetime(2024, 1, 1, i) for i in range(8)], pa.timestamp("ms")),
        "z": pa.array([datetime(2024, 1, 1, i, tzinfo=UTC) for i in range(8)], pa.timestamp("us", "Europe/Paris")),
        "n": pa.array([Decimal(i) / 4 for i in range(8)], pa.decimal128(9, 2)),
        "y": pa.array([b"", b"a", b"\xff", None, b"b", b"ab", b"\x00", b"a"], pa.binary()),
        "r": pa.array([None if i == 2 else {"p": i, "q": TEXTS[i]} for i in range(8)]),
    }
)
C = pl.col
PARIS = ZoneInfo("Europe/Paris")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    return ld.write_dataset(ROWS, tmp_path_factory.mktemp("tables") / "t.lance", max_rows_per_file=3)


def asked(condition: pl.Expr) -> PushedDown:
    """Return the pushed-down part of a condition, in the form that polars passes to a source."""
    found: list[PushedDown] = []
    frame: Any = pl.from_arrow(ROWS.slice(0, 0))

    def source(columns: Any, predicate: pl.Expr | None, rows: Any, size: Any) -> Iterator[pl.DataFrame]:
        found.append(PushedDown(None, is_whole=False) if predicate is None else pushed_down(predicate, ROWS.schema))
        yield frame.select(columns) if columns else frame

    register_io_source(source, schema=frame.schema).filter(condition).collect()
    return found[0]


PUSHED = {
    "i > 3": C("i") > 3,
    "i < 3": pl.lit(3) > C("i"),
    "(NOT (i IS NULL) AND i = 3)": C("i").eq_missing(3),
    "i IN (1, 2)": C("i").is_in([1, 2, None]),
    "(i >= 1 AND i <= 4)": C("i").is_between(1, 4),
    "(i > 1 AND i < 4)": C("i").is_between(1, 4, closed="none"),
    "i IS NULL": C("i").is_null(),
    "NOT (i IS NULL)": C("i").is_not_null(),
    "x = nan": C("x").is_nan(),
    "NOT (x = nan)": C("x").is_not_nan(),
    "b = True": C("b"),
    "NOT (b = True)": ~C("b"),
    "(i > 3 OR s = 'a')": (C("i") > 3) | (C("s") == "a"),
    "c = 'a'": C("c") == "a",
    "starts_with(s, 'a')": C("s").str.starts_with("a"),
    "r.p != 4": C("r").struct.field("p") != 4,
    "d < 2024-01-05": C("d") < date(2024, 1, 5),
    "m <= 2024-01-01 03:00:00": C("m") <= datetime(2024, 1, 1, 3),
    "n >= 1.00": C("n") >= 1,
    "y = b'a'": C("y") == b"a",
}


@pytest.mark.parametrize("words", PUSHED)
def test_a_condition_is_the_predicate_that_it_means(words: str) -> None:
    found = asked(PUSHED[words])
    assert str(found.predicate).replace("1 00:", "1 ") == words
    assert found.is_whole


@pytest.mark.parametrize("condition", [C("s").str.contains("a.", literal=True), C("s").str.contains("ab")])
def test_substring_conditions_are_pushed_down(condition: pl.Expr) -> None:
    found = asked(condition)
    assert str(found.predicate).startswith('contains("s", ')
    assert found.is_whole


@pytest.mark.parametrize("condition", [C("i") % 3 == 1, C("r").struct.field("p") % 2 != 0, pl.lit(2) > C("i") % 4])
def test_remainder_conditions_are_pushed_down(condition: pl.Expr, table: ld.LanceDataset) -> None:
    found = asked(condition)
    assert "::BIGINT % ?" in str(found.predicate)
    assert found.is_whole
    expected = pl.from_arrow(ROWS).filter(condition)
    assert 0 < len(expected) < len(ROWS)
    assert table.to_polars().filter(condition).collect().equals(expected)


@pytest.mark.parametrize(
    "condition",
    [
        C("i") % 0 == 0,
        C("i") % -3 == 0,
        C("i") % 2 == 0.5,
        C("u") % 2 == 0,
        C("x") % 2 == 0,
        C("i") // 2 == 0,
        (C("i") % 2).eq_missing(0),
        C("i") > C("t"),
        C("t") > 2.5,
        C("s").str.contains("a."),
        C("s").str.to_lowercase() == "a",
        C("c") < "b",
        C("i").is_in([1, None], nulls_equal=True),
    ],
    ids=str,
)
def test_unsupported_conditions_are_evaluated_by_polars(condition: pl.Expr) -> None:
    assert asked(condition) == PushedDown(None, is_whole=False)
    found = asked((C("i") > 1) & condition)
    assert (str(found.predicate), found.is_whole) == ("i > 1", False)
    assert asked((C("i") > 1) | condition) == PushedDown(None, is_whole=False)


def test_python_functions_are_evaluated_by_polars(table: ld.LanceDataset) -> None:
    condition = C("i").map_batches(lambda values: values > 2, return_dtype=pl.Boolean)
    found = table.to_polars().filter(condition, C("i") < 50).collect()
    assert found["i"].to_list() == [3]


def test_a_condition_with_thousands_of_terms_is_evaluated(table: ld.LanceDataset) -> None:
    condition = pl.all_horizontal([C("i") != number for number in range(2, 400)])
    assert table.to_polars().filter(condition).collect()["i"].to_list() == [1, -5, 0]


NUMBERS = st.sampled_from([-128, -1, 0, 1, 2, 3, 100, 127, 1.5, 0.1, NAN, INF, -INF, -0.0])
TEXT = st.sampled_from([text for text in TEXTS if text is not None])
ITEMS = {
    "i": st.sampled_from([-5, 0, 1, 2, 99]),
    "t": st.sampled_from([-128, 0, 2, 127]),
    "u": st.sampled_from([0, 3, 2**63, 2**64 - 1]),
    "x": NUMBERS.map(float),
    "f": st.sampled_from([1.5, NAN, 3.0, -0.0]),
    "s": TEXT,
    "c": TEXT,
    "d": st.sampled_from([date(2024, 1, 1), date(2024, 1, 4), date(2025, 1, 1)]),
    "m": st.sampled_from([datetime(2024, 1, 1, 3), datetime(2024, 1, 1, 3, 0, 0, 1), datetime(1990, 1, 1)]),
    "z": st.sampled_from([datetime(2024, 1, 1, 4, tzinfo=PARIS), datetime(2030, 1, 1, tzinfo=PARIS)]),
    "n": st.sampled_from([Decimal("0.25"), Decimal("0.3"), Decimal("0.125"), 1]),
    "y": st.sampled_from([b"", b"a", b"\xff", b"zz"]),
}
OPS = ["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"]


@st.composite
def leaves(draw: st.DrawFn) -> pl.Expr:
    name = draw(st.sampled_from(sorted(ITEMS)))
    column = C(name)
    kind = draw(st.sampled_from(["op", "in", "between", "null", "text", "member", "b"]))
    if kind == "in":
        items = [draw(st.none() | ITEMS[name]) for _ in range(draw(st.integers(1, 3)))]
        # polars cannot build lists of decimals and integers
        return column.is_in([Decimal(item) if name == "n" and item is not None else item for item in items])
    if kind == "between" and name != "c":
        closed = draw(st.sampled_from(["both", "left", "right", "none"]))
        return column.is_between(pl.lit(draw(ITEMS[name])), pl.lit(draw(ITEMS[name])), closed=closed)
    if kind == "null":
        return column.is_null() if draw(st.booleans()) else column.is_not_null()
    if kind == "text":
        method = draw(st.sampled_from(["starts_with", "ends_with", "contains"]))
        found: pl.Expr = getattr(C("s").str, method)(draw(TEXT))
        return found
    if kind == "member":
        return C("r").struct.field("p") > draw(ITEMS["i"])
    if kind == "b":
        return draw(st.sampled_from([C("b"), C("x").is_nan(), C("i") % 2 == 0]))
    operator = draw(st.sampled_from(OPS if name != "c" else OPS[:2]))
    value = draw(NUMBERS if name in ("i", "x") else ITEMS[name])
    compared: pl.Expr = getattr(column, operator)(value)
    return compared


CONDITIONS = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: pair[0] & pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1]),
        inner.map(lambda part: ~part),
    ),
    max_leaves=5,
)


@given(CONDITIONS)
def test_filtered_rows_equal_those_of_polars(table: ld.LanceDataset, condition: pl.Expr) -> None:
    memory: Any = pl.from_arrow(ROWS)
    expected = memory.with_row_index().filter(condition)["index"].to_list()
    numbered = table.to_polars().with_row_index()
    assert table.to_polars().filter(condition).collect().height == len(expected)
    assert numbered.filter(condition).collect()["index"].to_list() == expected
    assert table.to_polars().filter(condition).select("i").collect()["i"].to_list() == [
        ROWS["i"][place].as_py() for place in expected
    ]


def test_a_polars_filter_uses_an_index(tmp_path: Path) -> None:
    dataset = ld.write_dataset({"s": ["duck", "goose", "a duck.", "lake"]}, tmp_path / "t.lance")
    dataset.create_scalar_index("s", "NGRAM")
    found = asked(C("s").str.contains("duck")).predicate
    assert found is not None
    assert "by s_idx (NGram" in dataset.scanner(filter=found).explain_plan()
    assert dataset.to_polars().filter(C("s").str.contains("duck")).collect()["s"].to_list() == ["duck", "a duck."]
