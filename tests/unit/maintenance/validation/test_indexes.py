"""Validation checks index segments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from unit.index.plain import FILE, PlainKind, built, changed, indexed

import lance_duck as ld
from lance_duck.index import registry
from lance_duck.index.build import build_segment
from lance_duck.index.kind import ROW, VALUE
from lance_duck.maintenance.validation.validate import Problem, find_problems
from lance_duck.snapshot import Snapshot, open_snapshot
from lance_duck.wire.index import IndexMetadata


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> PlainKind:
    made = PlainKind()
    monkeypatch.setattr(registry, "KINDS", (registry.KindEntry.of(made),))
    return made


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    x = pa.array([None if i == 4 else i for i in range(30)], pa.int64())
    ld.write_dataset(pa.table({"x": x}), tmp_path / "t.lance", max_rows_per_file=10)
    return open_snapshot(tmp_path / "t.lance")


def entries(snapshot: Snapshot, kind: PlainKind, values: list[int | None], rows: list[int]) -> IndexMetadata:
    """A segment of fragment 0 with entries of any kind."""
    table = pa.table({VALUE: pa.array(values, pa.int64()), ROW: pa.array(np.array(rows, np.uint64))})
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    return build_segment(snapshot, "x", kind, reader, [0], name="x_idx")


def found(snapshot: Snapshot, metadata: IndexMetadata) -> list[Problem]:
    return find_problems(indexed(snapshot, metadata))


def test_a_valid_segment_has_no_problems_after_changes(snapshot: Snapshot, kind: PlainKind) -> None:
    indexed(snapshot, built(snapshot, kind))
    dataset = ld.dataset(snapshot.uri)
    dataset.update({"x": "x + 1"}, where="x > 20")
    dataset.delete("x = 3")
    assert find_problems(open_snapshot(snapshot.uri)) == []


def test_an_unknown_index_kind_is_not_a_problem(snapshot: Snapshot, kind: PlainKind) -> None:
    assert found(snapshot, changed(built(snapshot, kind), details_type="/new.OtherDetails")) == []


def test_a_missing_or_resized_file_is_a_problem(snapshot: Snapshot, kind: PlainKind) -> None:
    metadata = built(snapshot, kind)
    path = Path(snapshot.uri) / metadata.directory / FILE
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + b"more")
    (problem,) = found(snapshot, metadata)
    assert problem.where == f"index 'x_idx' ({metadata.uuid}): {FILE}"
    assert problem.what == f"wrong file size: expected {size}, found {size + 4}"
    path.unlink()
    (problem,) = find_problems(open_snapshot(snapshot.uri))
    assert FILE in problem.where


def test_an_unreadable_file_is_a_problem(snapshot: Snapshot, kind: PlainKind) -> None:
    metadata = built(snapshot, kind)
    path = Path(snapshot.uri) / metadata.directory / FILE
    path.write_bytes(bytes(path.stat().st_size))
    (problem,) = found(snapshot, metadata)
    assert problem.where == f"index 'x_idx' ({metadata.uuid})"
    assert "magic" in problem.what


VALUES: list[int | None] = [0, 1, 2, 3, None, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("values", "rows", "what"),
    [
        (VALUES, [*range(9), 10], "a row offset is out of range in fragment 0: expected below 10, found 10"),
        (VALUES[:9], list(range(9)), "does not know that row 9 of fragment 0 satisfies value = 9"),
        (
            [0, 1, 2, 3, 7, 5, 6, 7, 8, 9],
            list(range(10)),
            "not know that row 4 of fragment 0 satisfies value IS NULL",
        ),
        (
            [0, 1, 2, 3, None, 5, 6, 9, 8, 7],
            list(range(10)),
            "of fragment 0 satisfies value = ",
        ),
    ],
)
def test_entries_that_disagree_with_the_table_are_a_problem(
    values: list[int | None], rows: list[int], what: str, snapshot: Snapshot, kind: PlainKind
) -> None:
    (problem,) = found(snapshot, entries(snapshot, kind, values, rows))
    assert what in problem.what


def test_a_broken_fragment_is_not_reported_as_an_index_problem(snapshot: Snapshot, kind: PlainKind) -> None:
    metadata = built(snapshot, kind)
    (Path(snapshot.uri) / "data" / snapshot.fragments[1].files[0].path).unlink()
    (problem,) = found(snapshot, metadata)
    assert problem.where.startswith("fragment 1")
