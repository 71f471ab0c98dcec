from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from unit.scan.fake_table import FakeSnapshot

from lance_duck.scan.projection import reads
from lance_duck.scan.read import fragment_reader
from lance_duck.scan.read.dictionary_hint import repeats
from lance_duck.scan.read.fragment_reader import ColumnCache

CURRENT: list[FakeSnapshot] = []


@pytest.fixture(autouse=True)
def fake_columns(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(fragment_reader, "open_column", lambda *args: CURRENT[0].open_column(*args))
    yield
    CURRENT.clear()


def asked(*fragments: list[str | None], uri: str = "/local") -> Any:
    CURRENT[:] = [
        FakeSnapshot({i: pa.table({"s": pa.array(f, pa.string())}) for i, f in enumerate(fragments)}, uri=uri)
    ]
    (read,) = reads(CURRENT[0].schema, [("s",)])
    return repeats(CURRENT[0], ColumnCache(), read)


def test_few_short_texts_travel_as_a_dictionary() -> None:
    assert asked(["a", "b", None] * 500, ["a"])


def test_many_or_long_texts_stay_as_they_are() -> None:
    assert not asked([str(i) for i in range(1000)])
    assert not asked(["a long text, again and again"] * 1000)


def test_all_fragments_at_the_ends_must_repeat() -> None:
    assert not asked(["a"] * 100, [str(i) for i in range(1000)])


def test_nothing_is_read_ahead_from_far_away_or_from_an_empty_table() -> None:
    assert not asked(["a"] * 100, uri="s3://bucket/t.lance")
    assert not asked([])
