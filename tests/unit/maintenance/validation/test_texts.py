"""Validation compares full-text index entries with the terms of each row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from unit.index.plain import indexed

import lance_duck as ld
from lance_duck.index.build import build_segment
from lance_duck.index.inverted.kind import INVERTED
from lance_duck.index.kind import ROW, VALUE, BuildOptions
from lance_duck.maintenance.validation.validate import find_problems
from lance_duck.snapshot import Snapshot, open_snapshot

TEXTS: list[str | None] = ["the lake", "a duck", None, "lake lake duck", "", "swimming ducks"]
ROWS = [0, 1, 2, (1 << 32), (1 << 32) | 1, (1 << 32) | 2]


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    ld.write_dataset(pa.table({"s": TEXTS}), tmp_path / "t.lance", max_rows_per_file=3)
    return open_snapshot(tmp_path / "t.lance")


def problems(snapshot: Snapshot, texts: Sequence[str | None], rows: Sequence[int] = ROWS, **parameters: Any) -> str:
    """Return the problems of an index with these strings for the rows."""
    table = pa.table({VALUE: pa.array(texts, pa.string()), ROW: pa.array(np.array(rows, np.uint64))})
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    options = BuildOptions(parameters)
    segment = build_segment(snapshot, "s", INVERTED, reader, [0, 1], name="s_idx", options=options)
    return "; ".join(str(problem) for problem in find_problems(indexed(snapshot, segment)))


@pytest.mark.parametrize("with_position", [True, False])
def test_a_valid_index_has_no_problems_after_changes(snapshot: Snapshot, with_position: bool) -> None:
    assert problems(snapshot, TEXTS, with_position=with_position) == ""
    dataset = ld.dataset(snapshot.uri)
    dataset.update({"s": "'renewed'"}, where="s = 'a duck'")
    dataset.delete("s = 'the lake'")
    assert find_problems(open_snapshot(snapshot.uri)) == []


def test_rows_that_are_missing_are_a_problem(snapshot: Snapshot) -> None:
    texts = [None if text == "a duck" else text for text in TEXTS]
    assert "the index lacks row 1 of fragment 0" in problems(snapshot, texts)


def test_index_terms_of_rows_without_terms_are_a_problem(snapshot: Snapshot) -> None:
    texts = ["lake" if text == "" else text for text in TEXTS]
    assert "the index has terms of row 1 of fragment 1" in problems(snapshot, texts)


@pytest.mark.parametrize(
    ("text", "other", "with_position"),
    [
        ("a duck", "a goose", False),
        ("lake lake duck", "lake duck duck", False),
        ("lake lake duck", "lake duck", False),
        ("lake lake duck", "duck lake lake", True),
    ],
)
def test_different_terms_are_a_problem(snapshot: Snapshot, text: str, other: str, with_position: bool) -> None:
    texts = [other if each == text else each for each in TEXTS]
    assert "the index has different terms for row" in problems(snapshot, texts, with_position=with_position)


def test_word_order_is_not_compared_without_positions(snapshot: Snapshot) -> None:
    assert problems(snapshot, ["duck lake lake" if t == "lake lake duck" else t for t in TEXTS]) == ""


def test_a_row_that_is_in_an_index_twice_is_a_problem(snapshot: Snapshot) -> None:
    assert "twice" in problems(snapshot, [*TEXTS, "the lake"], [*ROWS, 0])


def test_a_row_beyond_its_fragment_is_a_problem(snapshot: Snapshot) -> None:
    assert "a row offset is out of range in fragment 1" in problems(snapshot, [*TEXTS, "lake"], [*ROWS, (1 << 32) | 9])
