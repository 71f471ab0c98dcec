from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.verbs.versions.row_changes import changed_rows

FRAGMENT = 1 << 32
Changes = list[tuple[list[int], list[int] | None, list[int] | None]]


def made(path: Path, *, stable: bool) -> ld.LanceDataset:
    return ld.write_dataset(pa.table({"x": [10, 11, 12]}), path / "t.lance", enable_stable_row_ids=stable)


def changes(table: ld.LanceDataset) -> Changes:
    """Return the changes of the newest version."""
    newest = table.handle.snapshot.checkout()
    older = newest.checkout(newest.version - 1) if newest.version > 1 else None
    return [
        (
            rows.ids.tolist(),
            None if rows.before is None else rows.before.tolist(),
            None if rows.after is None else rows.after.tolist(),
        )
        for rows in changed_rows(older, newest)
    ]


@pytest.mark.parametrize("stable", [True, False])
def test_all_rows_of_the_first_version_are_inserted(tmp_path: Path, stable: bool) -> None:
    assert changes(made(tmp_path, stable=stable)) == [([0, 1, 2], None, [0, 1, 2])]


@pytest.mark.parametrize("stable", [True, False])
def test_deleted_rows_have_addresses_only_in_the_older_version(tmp_path: Path, stable: bool) -> None:
    table = made(tmp_path, stable=stable)
    table.delete("x = 11")
    assert changes(table) == [([1], [1], None)]


def test_an_updated_row_keeps_its_stable_id(tmp_path: Path) -> None:
    table = made(tmp_path, stable=True)
    table.update({"x": "x + 100"}, where="x > 10")
    assert changes(table) == [([1, 2], [1, 2], [FRAGMENT, FRAGMENT + 1])]


def test_an_updated_row_without_a_stable_id_is_deleted_and_inserted(tmp_path: Path) -> None:
    table = made(tmp_path, stable=False)
    table.update({"x": "x + 100"}, where="x > 11")
    assert changes(table) == [([2], [2], None), ([FRAGMENT], None, [FRAGMENT])]


@pytest.mark.parametrize("stable", [True, False])
def test_compaction_and_new_columns_change_no_rows(tmp_path: Path, stable: bool) -> None:
    table = made(tmp_path, stable=stable)
    table.insert(pa.table({"x": [13]}))
    table.optimize.compact_files()
    assert changes(table) == []
    table.add_columns({"y": "x + 1"})
    assert changes(table) == []


@pytest.mark.parametrize("stable", [True, False])
def test_an_overwrite_deletes_all_rows_and_inserts_all(tmp_path: Path, stable: bool) -> None:
    made(tmp_path, stable=stable)
    table = ld.write_dataset(pa.table({"x": [10]}), tmp_path / "t.lance", mode="overwrite")
    found = changes(table)
    assert [(len(ids), before is None, after is None) for ids, before, after in found] == [
        (3, False, True), (1, True, False)
    ]  # fmt: skip


def test_a_restore_reverts_updates_by_stable_ids(tmp_path: Path) -> None:
    table = made(tmp_path, stable=True)
    table.update({"x": "0"}, where="x = 12")
    table.delete("x = 10")
    table.checkout_version(1).restore()
    assert changes(table) == [([2], [FRAGMENT], [2]), ([0], None, [0])]
