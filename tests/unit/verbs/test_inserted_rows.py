from __future__ import annotations

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.snapshot import Snapshot, open_snapshot
from lance_duck.verbs.inserted_rows import Arrivals, arrivals, unchanged_fragments


def rows(*values: int) -> pa.Table:
    return pa.table({"a": list(values)})


@pytest.fixture
def table(place: str, hasty: dict[str, str]) -> ld.LanceDataset:
    made = ld.write_dataset(rows(1, 2, 3), place, storage_options=hasty)
    return ld.write_dataset(rows(4, 5, 6, 7), made, mode="append", max_rows_per_file=2)


def snapshot(table: ld.LanceDataset, version: int) -> Snapshot:
    return open_snapshot(table.uri, version)


def last(table: ld.LanceDataset) -> Arrivals:
    return arrivals(snapshot(table, table.latest_version))


def forget_all_but_the_last(table: ld.LanceDataset) -> None:
    table.cleanup_old_versions(retain_versions=1)


def test_the_first_version_and_appends_insert_their_fragments(table: ld.LanceDataset) -> None:
    assert arrivals(snapshot(table, 1)) == Arrivals(1, "Overwrite", (0,))
    assert last(table) == Arrivals(2, "Append", (1, 2))
    forget_all_but_the_last(table)
    assert last(table) == Arrivals(2, "Append", (1, 2))


def test_compaction_indexes_settings_and_columns_insert_nothing(table: ld.LanceDataset) -> None:
    table.optimize.compact_files()
    assert last(table) == Arrivals(table.version, "Rewrite")
    table.create_scalar_index("a", "BTREE")
    assert last(table) == Arrivals(table.version, "CreateIndex")
    table.update_config({"k": "v"})
    assert last(table) == Arrivals(table.version, "UpdateConfig")
    table.add_columns({"b": "a + 1"})
    assert last(table) == Arrivals(table.version, "Merge")
    table.drop_columns(["b"])
    assert last(table) == Arrivals(table.version, "Project")


def test_deletes_updates_and_overwrites_are_changes(table: ld.LanceDataset) -> None:
    table.delete("a = 5")
    assert last(table) == Arrivals(3, "Delete", (), changed=True)
    table.update({"a": "a + 10"}, where="a = 1")
    assert last(table) == Arrivals(4, "Update", (), changed=True)
    table.merge_insert("a").when_matched_update_all().when_not_matched_insert_all().execute(rows(2, 50))
    assert last(table) == Arrivals(5, "Update", (), changed=True)
    table = ld.write_dataset(rows(8), table, mode="overwrite")
    assert last(table) == Arrivals(6, "Overwrite", (), changed=True)
    table.checkout_version(2).restore()
    assert last(table) == Arrivals(7, "Restore", (), changed=True)


def test_an_insert_only_merge_inserts_its_rows(table: ld.LanceDataset) -> None:
    table.merge_insert("a").when_not_matched_insert_all().execute(rows(3, 30))
    assert last(table) == Arrivals(3, "Update", (3,))


def test_overwriting_an_empty_table_inserts_all_rows(table: ld.LanceDataset) -> None:
    table.delete("true")
    table = ld.write_dataset(rows(8), table, mode="overwrite")
    assert not last(table).changed
    assert table.get_fragments()[0].fragment_id in last(table).fragments
    forget_all_but_the_last(table)
    assert last(table).changed


def test_without_its_transaction_a_version_is_compared(table: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    table.delete("a = 5")
    monkeypatch.setattr(Snapshot, "transaction", lambda self: None)
    assert arrivals(snapshot(table, 2)) == Arrivals(2, "Unknown", (1, 2))
    assert last(table) == Arrivals(3, "Unknown", (), changed=True)
    table.update_config({"k": "v"})
    forget_all_but_the_last(table)
    assert last(table) == Arrivals(4, "Unknown", (), changed=True)


def test_fragments_count_as_written_until_files_or_deletions_change(table: ld.LanceDataset) -> None:
    written = {f.id: tuple(file.path for file in f.files) for f in snapshot(table, 2).fragments}
    assert unchanged_fragments(written, snapshot(table, 2)) == {0, 1, 2}
    table.delete("a = 5")
    assert unchanged_fragments(written, snapshot(table, 3)) == {0, 2}
    assert unchanged_fragments({**written, 2: ("other.lance",), 9: ()}, snapshot(table, 3)) == {0}
    table.add_columns({"b": "1"})
    assert unchanged_fragments(written, snapshot(table, 4)) == frozenset()
