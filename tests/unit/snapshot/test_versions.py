from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, NotFoundError
from lance_duck.snapshot import open_snapshot
from lance_duck.snapshot.versions import all_versions, latest_version, seems_newest, to_moment
from lance_duck.store import open_store
from lance_duck.wire.paths import transaction_file

Make = Callable[[], Any]


@pytest.mark.parametrize("naming", [1, 2])
def test_versions_are_sorted_with_either_naming_scheme(hand_made: Make, tmp_path: Path, naming: int) -> None:
    table = hand_made()
    for version in (9, 10, 1, 100):
        table.commit(version, naming=naming)
    table.files["_versions/d14370293101055168885.manifest"] = b"detached"
    table.files["_versions/.tmp"] = b"temporary"
    store = open_store(table.write(tmp_path))
    assert [n.version for n in all_versions(store)] == [1, 9, 10, 100]
    assert latest_version(store).version == 100
    assert open_snapshot(tmp_path).version == 100
    assert open_snapshot(tmp_path, 9).version == 9


@pytest.mark.parametrize("hint", [b'{"version":1}', b'{"version":99}', b"garbage", b"[]", None])
def test_a_wrong_hint_does_not_matter(hand_made: Make, tmp_path: Path, hint: bytes | None) -> None:
    table = hand_made()
    table.commit(1)
    table.commit(2)
    if hint is not None:
        table.files["_versions/latest_version_hint.json"] = hint
    assert open_snapshot(table.write(tmp_path)).version == 2


@pytest.mark.parametrize("place", ["nowhere", ".", "file", "x" * 300, "x/" * 3000])
def test_a_path_that_is_not_a_table_raises_not_found(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_bytes(b"PAR1")
    with pytest.raises(NotFoundError, match="Lance table not found") as caught:
        open_snapshot(tmp_path / place)
    assert isinstance(caught.value, FileNotFoundError)
    assert isinstance(caught.value, ValueError)


def test_opening_a_folder_of_tables_suggests_its_tables(tmp_path: Path) -> None:
    (tmp_path / "trips.lance").mkdir()
    with pytest.raises(
        NotFoundError, match=r"the folder contains tables: open trips\.lance, or all with lance_duck\.connect$"
    ):
        open_snapshot(tmp_path)


@pytest.mark.parametrize("version", [0, -1, 3, 2**64, 2**70])
def test_a_missing_version_raises_not_found(hand_made: Make, tmp_path: Path, version: int) -> None:
    table = hand_made()
    table.commit(1)
    with pytest.raises(NotFoundError, match="expected one of 1;"):
        open_snapshot(table.write(tmp_path), version)


def test_asof_selects_the_newest_version_before_a_timestamp(hand_made: Make, tmp_path: Path) -> None:
    table = hand_made()
    for version in (1, 2, 3):
        table.commit(version, seconds=1_700_000_000 + 100 * version)
    root = table.write(tmp_path)
    at = lambda seconds: datetime.fromtimestamp(1_700_000_000 + seconds, UTC)  # noqa: E731
    assert open_snapshot(root, asof=at(201)).version == 2
    assert open_snapshot(root, asof=at(200)).version == 1
    assert open_snapshot(root, asof=at(299).isoformat()).version == 2
    assert open_snapshot(root, asof=at(299).astimezone().replace(tzinfo=None)).version == 2
    assert open_snapshot(root, asof=date(2100, 1, 1)).version == 3
    assert open_snapshot(root, 1, asof=at(299)).version == 1
    with pytest.raises(NotFoundError, match="earlier than the first version"):
        open_snapshot(root, asof=at(100))


@pytest.mark.parametrize("moment", ["yesterday", 3, b"2020"])
def test_values_that_are_not_timestamps_are_rejected(moment: Any) -> None:
    with pytest.raises(InvalidInputError):
        to_moment(moment)


def test_versions_are_described_like_in_pylance(hand_made: Make, tmp_path: Path) -> None:
    table = hand_made()
    fragment = {"id": 0, "physical_rows": 10, "files": [{"path": "x.lance", "file_size_bytes": 7}]}
    deletion = {"read_version": 1, "id": 1, "num_deleted_rows": 3}
    table.commit(1, fragments=[fragment | {"deletion_file": deletion}, fragment | {"id": 1}])
    (described,) = open_snapshot(table.write(tmp_path)).versions()
    assert described["version"] == 1
    assert described["timestamp"] == datetime.fromtimestamp(1_700_000_001)
    assert described["metadata"] == {
        "total_data_file_rows": "20",
        "total_data_files": "2",
        "total_deletion_file_rows": "3",
        "total_deletion_files": "1",
        "total_files_size": "14",
        "total_fragments": "2",
        "total_rows": "17",
    }


def _table(place: Path, rows: int = 1) -> ld.LanceDataset:
    return ld.write_dataset({"a": list(range(rows))}, place, storage_options={"fsync": "false"})


def test_the_hinted_version_counts_as_newest_until_another_follows(tmp_path: Path) -> None:
    first = _table(tmp_path / "t").handle.snapshot
    assert seems_newest(first.store, first.manifest)
    second = ld.write_dataset({"a": [5]}, first.uri, mode="append").handle.snapshot
    assert not seems_newest(first.store, first.manifest)
    assert seems_newest(second.store, second.manifest)
    (tmp_path / "t/_versions/latest_version_hint.json").write_text('{"version": 1}')
    assert not seems_newest(first.store, first.manifest)
    assert not seems_newest(second.store, second.manifest)


def test_a_recreated_table_does_not_count_as_newest(tmp_path: Path) -> None:
    before = _table(tmp_path / "t").handle.snapshot
    shutil.rmtree(tmp_path / "t")
    after = _table(tmp_path / "t").handle.snapshot
    assert not seems_newest(before.store, before.manifest)
    assert seems_newest(after.store, after.manifest)
    assert before.checkout().manifest.transaction_name == after.manifest.transaction_name


def test_an_unchanged_newest_version_is_not_read_again(tmp_path: Path) -> None:
    table = _table(tmp_path / "t").handle.snapshot
    assert table.checkout() is table
    table.store.delete([transaction_file(table.manifest.transaction_name)])
    assert table.checkout() is table  # its manifest tells
    ld.write_dataset({"a": [5]}, table.uri, mode="append")
    assert table.checkout().version == 2
