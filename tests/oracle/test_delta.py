from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_duck
from lance_duck.errors import InvalidInputError, NotFoundError

ROWS = {"a": pa.array(range(6), pa.int64()), "b": [f"s{i}" for i in range(6)]}


def ids(reader: pa.RecordBatchReader, column: str = "a") -> list[Any]:
    return sorted(reader.read_all().column(column).to_pylist())


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1: rows 0-5 · 2: + 10, 11 · 3: update 1, 10 · 4: delete 2, 11 · 5: upsert 1, 20 · 6, 7: compacted."""
    path = tmp_path_factory.mktemp("delta") / "t"
    ds = lance.write_dataset(pa.table(ROWS), path, enable_stable_row_ids=True, max_rows_per_file=4)
    ds.insert(pa.table({"a": [10, 11], "b": ["n", "n"]}))
    ds.update({"b": "'u'"}, where="a in (1, 10)")
    ds.delete("a in (2, 11)")
    new = pa.table({"a": [1, 20], "b": ["m", "m"]})
    ds.merge_insert("a").when_matched_update_all().when_not_matched_insert_all().execute(new)
    ds.optimize.compact_files()
    return path


@pytest.mark.parametrize(
    ("begin", "end", "inserted", "updated", "deleted"),
    [
        (1, 2, [10, 11], [], []),
        (2, 3, [], [1, 10], []),
        (1, 3, [10, 11], [1], []),
        (3, 4, [], [], [2, 11]),
        (1, 4, [10], [1], [2]),
        (4, 5, [20], [1], []),
        (1, 5, [10, 20], [1], [2]),
        (5, 7, [], [], []),
        (2, 7, [20], [1, 10], [2, 11]),
        (0, 1, [0, 1, 2, 3, 4, 5], [], []),
        (3, 3, [], [], []),
    ],
)
def test_rows_between_two_versions(
    life: Path, begin: int, end: int, inserted: list[int], updated: list[int], deleted: list[int]
) -> None:
    delta = lance_duck.dataset(life).delta(begin_version=begin, end_version=end)
    assert ids(delta.get_inserted_rows()) == inserted
    assert ids(delta.get_updated_rows()) == updated
    if begin:
        assert ids(delta.get_deleted_rows()) == deleted
    assert len(ids(delta.get_deleted_row_ids(), "_rowid")) == len(deleted)
    assert len(delta.list_transactions()) == end - begin


@pytest.mark.parametrize("version", [5, 7])
def test_compared_against_gives_the_same_delta_as_in_pylance(life: Path, version: int) -> None:
    ours, theirs = lance_duck.dataset(life, version=version), lance.dataset(life, version=version)
    mine, other = ours.delta(compared_against=2), theirs.delta(compared_against=2)
    for name in ("get_inserted_rows", "get_updated_rows", "get_deleted_row_ids"):
        found, expected = getattr(mine, name)().read_all(), getattr(other, name)().read_all()
        assert found.sort_by("_rowid").equals(expected.sort_by("_rowid")), name


def test_deleted_rows_are_returned_with_their_old_values(life: Path) -> None:
    delta = lance_duck.dataset(life).delta(begin_version=2, end_version=4)
    assert delta.get_deleted_rows().read_all().select(["a", "b"]).to_pylist() == [
        {"a": 2, "b": "s2"},
        {"a": 11, "b": "n"},
    ]


def test_invalid_version_ranges_are_rejected(life: Path) -> None:
    ds = lance_duck.dataset(life)
    for bad in ({}, {"begin_version": 1}, {"begin_version": 3, "end_version": 2}):
        with pytest.raises(InvalidInputError):
            ds.delta(**bad)
    with pytest.raises(InvalidInputError):
        ds.delta(1, begin_version=1, end_version=2)
    with pytest.raises(NotFoundError):
        ds.delta(begin_version=1, end_version=99).get_inserted_rows()


def test_tables_without_stable_row_ids_are_rejected(tmp_path: Path) -> None:
    lance.write_dataset(pa.table(ROWS), tmp_path / "t")
    with pytest.raises(InvalidInputError, match="stable row ids"):
        lance_duck.dataset(tmp_path / "t").delta(compared_against=1).get_inserted_rows()
