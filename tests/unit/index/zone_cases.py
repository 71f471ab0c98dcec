"""Data and queries for zone-based index kinds, with a plain reference for the queries."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from unit.index.segments import Segments

from lance_duck.errors import LanceDuckError
from lance_duck.index.query import Among, Between, Except, HasPrefix, Null, Query

FLOATS = [0.0, -0.0, 1.5, -1.5, 2.0, math.inf, -math.inf, math.nan, -math.nan]
NONE: tuple[Any, ...] = (None,)

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [False, True]),
    "int8": (pa.int8(), [-128, -1, 0, 1, 2, 127]),
    "int64": (pa.int64(), [-(2**63), -1, 0, 1, 2, 2**63 - 1]),
    "uint64": (pa.uint64(), [0, 1, 2, 2**64 - 1]),
    "half": (pa.float16(), FLOATS),
    "float": (pa.float32(), FLOATS),
    "double": (pa.float64(), [*FLOATS, 5e-324]),
    "string": (pa.string(), ["", "a", "a\0", "ab", "b", "é", "z\U0001f600", "\uffff", "A"]),
    "large_string": (pa.large_string(), ["", "a", "ab", "é"]),
    "binary": (pa.binary(), [b"", b"\0", b"\xff", b"\xff\xff\x01", b"a", b"a\xff", b"b"]),
    "large_binary": (pa.large_binary(), [b"", b"a", b"\xff"]),
    "fixed": (pa.binary(2), [b"aa", b"a\0", b"\0a", b"\xff\0", b"\0\0"]),
    "decimal": (pa.decimal128(10, 2), [Decimal(text) for text in ("-1.50", "-0.01", "0.00", "2.56", "12345678.90")]),
    "decimal256": (pa.decimal256(50, 1), [Decimal(text) for text in ("-1e48", "-0.1", "0.0", "0.1", "1e48")]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(9999, 12, 31)]),
    "date64": (pa.date64(), [dt.date(1969, 12, 31), dt.date(1970, 1, 1)]),
    "time32": (pa.time32("ms"), [dt.time(0), dt.time(1), dt.time(23, 59, 59)]),
    "time": (pa.time64("us"), [dt.time(0), dt.time(1), dt.time(23, 59, 59, 999_999)]),
    "timestamp": (pa.timestamp("us", "UTC"), [-3, -1, 0, 1, 2]),
    "duration": (pa.duration("s"), [-3, -1, 0, 1, 2]),
}


@dataclass
class Case:
    """Rows of a table.

    Attributes:
        type: Of the values.
        values: In table order.
        rows: Their addresses.
        zone: Rows of a zone.
        batch: Rows of a batch.
    """

    type: pa.DataType
    values: list[Any]
    rows: list[int]
    zone: int
    batch: int

    def build(self, segments: Segments, zone: str) -> Any:
        values = pa.array(self.values, self.type)
        return segments.build(values, self.rows, batch=self.batch, parameters={zone: self.zone})


@st.composite
def cases(draw: st.DrawFn, names: Sequence[str]) -> Case:
    type_, choice = VALUES[draw(st.sampled_from(names))]
    values: list[Any] = []
    rows: list[int] = []
    for fragment in draw(st.lists(st.integers(0, 5), unique=True, min_size=1, max_size=3)):
        offsets = sorted(draw(st.sets(st.integers(0, 20), max_size=12)))
        rows += [fragment << 32 | offset for offset in offsets]
        some = st.sampled_from(draw(st.lists(st.sampled_from([*choice, None]), min_size=1, max_size=3)))
        values += draw(st.lists(some, min_size=len(offsets), max_size=len(offsets)))
    return Case(type_, values, rows, draw(st.integers(1, 5)), draw(st.integers(1, 7)))


@st.composite
def queries(draw: st.DrawFn, type_: pa.DataType) -> Query:
    choice = next(choice for each, choice in VALUES.values() if each == type_)
    bound = st.none() | st.sampled_from(choice)
    low, high = (None if v is None else pa.scalar(v, type_) for v in (draw(bound), draw(bound)))
    kinds: list[Query] = [
        Between(low, high, draw(st.booleans()), draw(st.booleans())),
        Among(pa.array(draw(st.lists(st.sampled_from(choice), max_size=4)), type_)),
        Null(),
    ]
    if isinstance(choice[0], str | bytes) and not pa.types.is_fixed_size_binary(type_):
        kinds.append(HasPrefix(pa.scalar(draw(st.sampled_from(choice)), type_)))
    query = draw(st.sampled_from(kinds))
    return Except(query) if draw(st.booleans()) else query


def satisfies(value: Any, query: Query) -> bool:
    """Whether a value, as Python has it, satisfies a query."""
    if isinstance(query, Null):
        return value is None
    if value is None:
        return False
    if isinstance(query, Except):
        return not satisfies(value, query.query)
    key = _key(value)
    if isinstance(query, Among):
        return any(key == _key(other) for other in query.values.to_pylist())
    if isinstance(query, HasPrefix):
        return bool(key.startswith(_key(query.prefix.as_py())))
    assert isinstance(query, Between)
    low, high = (None if bound is None else _key(bound.as_py()) for bound in (query.low, query.high))
    above = low is None or key > low or (key == low and not query.low_open)
    below = high is None or key < high or (key == high and not query.high_open)
    return above and below


def check_damaged(segments: Segments, file: str, data: st.DataObject) -> None:
    """Truncate a built segment file or flip bits of one byte: only LanceDuckErrors may be raised."""
    path = segments.path(file)
    raw = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        raw = raw[: data.draw(st.integers(0, len(raw)))]
    else:
        raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(raw)
    with suppress(LanceDuckError):
        index = segments.open(segments.directory, pa.string())
        index.search(Among(pa.array(["a"])))
        index.search(Null())


def satisfying(case: Case, query: Query) -> set[int]:
    """Return the positions of the rows that satisfy a query."""
    values = pa.array(case.values, case.type).to_pylist()
    return {place for place, value in enumerate(values) if satisfies(value, query)}


def check_answer(index: Any, query: Query, wanted: set[int], others: set[int]) -> None:
    """Hold an answer to its promises: rows that satisfy the query, and living rows that do not."""
    estimate = index.estimate(query)
    answer = index.search(query)
    sure, maybe = set(answer.sure), set(answer.maybe)
    assert sure <= maybe
    assert wanted <= maybe
    assert not sure & others
    assert estimate is not None
    assert estimate >= len(wanted)
    assert len(maybe) <= estimate
    asked = query.query if isinstance(query, Except) else query
    if isinstance(asked, Null):
        assert answer.is_exact


Follow = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def following(moves: dict[int, int]) -> Follow:
    """Return a function that moves the given rows and drops all others."""

    def follow(names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        new = np.array([moves.get(name, 0) for name in names.tolist()], np.uint64)
        return new, np.array([name in moves for name in names.tolist()], np.bool_)

    return follow


def _key(value: Any) -> Any:
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value
