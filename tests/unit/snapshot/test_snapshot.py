from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyroaring import BitMap

from lance_duck.errors import CorruptError, InvalidInputError, NotFoundError, UnsupportedError
from lance_duck.snapshot import open_snapshot
from lance_duck.wire.pb import rowids_pb2, transaction_pb2

Make = Callable[[], Any]
DataFile = Callable[[int], bytes]


def ids(*ranges: tuple[int, int]) -> bytes:
    segments = [{"range": {"start": a, "end": b}} for a, b in ranges]
    return rowids_pb2.RowIdSequence(segments=segments).SerializeToString()


def file(path: str, **more: Any) -> dict[str, Any]:
    return {
        "path": path,
        "fields": [0],
        "column_indices": [0],
        "file_major_version": 2,
        "file_minor_version": 2,
        **more,
    }


def test_counts_come_from_metadata(hand_made: Make, tmp_path: Path) -> None:
    table = hand_made()
    deletion = {"read_version": 1, "id": 5, "num_deleted_rows": 3}
    table.commit(
        1,
        fragments=[
            {"id": 0, "physical_rows": 10, "files": [file("gone.lance")], "deletion_file": deletion},
            {"id": 7, "physical_rows": 4, "files": [file("gone.lance")]},
        ],
    )
    snapshot = open_snapshot(table.write(tmp_path))
    assert snapshot.count_rows() == 11
    assert [snapshot.num_rows(f) for f in snapshot.fragments] == [7, 4]
    assert snapshot.fragment(7).physical_rows == 4
    with pytest.raises(InvalidInputError):
        snapshot.fragment(1)
    with pytest.raises(NotFoundError):
        snapshot.data_file(snapshot.fragments[0].files[0])
    with pytest.raises(NotFoundError):
        snapshot.deletion_vector(snapshot.fragments[0])


def test_row_counts_missing_in_old_manifests_are_read_from_files(
    hand_made: Make, make_data_file: DataFile, tmp_path: Path
) -> None:
    table = hand_made()
    table.files["data/x.lance"] = make_data_file(10)
    table.files["_deletions/0-1-5.bin"] = BitMap([1, 2]).serialize()
    table.commit(
        1, fragments=[{"files": [file("x.lance")], "deletion_file": {"file_type": 1, "read_version": 1, "id": 5}}]
    )
    snapshot = open_snapshot(table.write(tmp_path))
    assert snapshot.physical_rows(snapshot.fragments[0]) == 10
    assert snapshot.count_rows() == 8


def test_data_files_are_opened_once(hand_made: Make, make_data_file: DataFile, tmp_path: Path) -> None:
    table = hand_made()
    table.files["data/x.lance"] = make_data_file(3)
    size = len(table.files["data/x.lance"])
    table.commit(1, fragments=[{"physical_rows": 3, "files": [file("x.lance", file_size_bytes=size)]}])
    snapshot = open_snapshot(table.write(tmp_path))
    (wanted,) = snapshot.fragments[0].files
    assert snapshot.data_file(wanted).num_rows == 3
    assert snapshot.data_file(wanted) is snapshot.data_file(wanted)


def test_a_file_with_another_size_than_its_manifest_entry_is_corrupt(
    hand_made: Make, make_data_file: DataFile, tmp_path: Path
) -> None:
    table = hand_made()
    table.files["data/x.lance"] = make_data_file(3)
    table.commit(1, fragments=[{"physical_rows": 3, "files": [file("x.lance", file_size_bytes=1)]}])
    snapshot = open_snapshot(table.write(tmp_path))
    with pytest.raises(CorruptError, match="size"):
        snapshot.data_file(snapshot.fragments[0].files[0])


@pytest.mark.parametrize("kind", ["absolute", "parent", "link"])
@pytest.mark.parametrize("allowed", [False, True])
def test_paths_may_leave_the_root_only_into_a_base_path(
    hand_made: Make, make_data_file: DataFile, tmp_path: Path, kind: str, allowed: bool
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.lance").write_bytes(make_data_file(3))
    root = tmp_path / "table"
    (root / "data").mkdir(parents=True)
    (root / "data" / "link.lance").symlink_to(outside / "x.lance")
    path = {"absolute": str(outside / "x.lance"), "parent": "../../outside/x.lance", "link": "link.lance"}[kind]
    table = hand_made()
    bases = [{"id": 1, "path": str(outside)}] if allowed else []
    table.commit(1, base_paths=bases, fragments=[{"physical_rows": 3, "files": [file(path)]}])
    snapshot = open_snapshot(table.write(root))
    (wanted,) = snapshot.fragments[0].files
    if allowed:
        assert snapshot.data_file(wanted).num_rows == 3
    else:
        with pytest.raises(InvalidInputError, match="outside the table's folder"):
            snapshot.data_file(wanted)


def test_a_table_behind_a_symbolic_link_is_readable(hand_made: Make, make_data_file: DataFile, tmp_path: Path) -> None:
    table = hand_made()
    table.files["data/x.lance"] = make_data_file(3)
    table.commit(1, fragments=[{"physical_rows": 3, "files": [file("x.lance")]}])
    table.write(tmp_path / "table")
    (tmp_path / "link").symlink_to(tmp_path / "table")
    snapshot = open_snapshot(tmp_path / "link")
    assert snapshot.data_file(snapshot.fragments[0].files[0]).num_rows == 3


@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize("is_root", [True, False])
def test_files_are_read_from_their_base_path(
    hand_made: Make, make_data_file: DataFile, tmp_path: Path, scheme: str, is_root: bool
) -> None:
    base = tmp_path / "base"
    (base / "data").mkdir(parents=True)
    (base / "data" / "x.lance" if is_root else base / "x.lance").write_bytes(make_data_file(5))
    table = hand_made()
    table.commit(
        1,
        base_paths=[{"id": 0, "is_dataset_root": is_root, "path": f"{scheme}{base}"}],
        fragments=[{"physical_rows": 5, "files": [file("x.lance", base_id=0), file("x.lance", base_id=3)]}],
    )
    snapshot = open_snapshot(table.write(tmp_path / "table"))
    own, unknown = snapshot.fragments[0].files
    assert snapshot.data_file(own).num_rows == 5
    with pytest.raises(CorruptError, match="no base path 3"):
        snapshot.data_file(unknown)


def test_deletions_are_checked_against_the_manifest(hand_made: Make, tmp_path: Path) -> None:
    table = hand_made()
    table.files["_deletions/4-1-5.bin"] = BitMap([1, 8]).serialize()
    deletion = {"file_type": 1, "read_version": 1, "id": 5, "num_deleted_rows": 2}
    table.commit(1, fragments=[{"id": 4, "physical_rows": 9, "deletion_file": deletion}])
    table.commit(2, fragments=[{"id": 4, "physical_rows": 8, "deletion_file": deletion}])
    table.commit(3, fragments=[{"id": 4, "physical_rows": 9, "deletion_file": deletion | {"num_deleted_rows": 3}}])
    table.commit(4, fragments=[{"id": 4, "physical_rows": 1, "deletion_file": deletion}])
    root = table.write(tmp_path)
    good = open_snapshot(root, 1)
    vector = good.deletion_vector(good.fragments[0])
    assert vector is not None
    assert vector.deleted.tolist() == [1, 8]
    for version in (2, 3, 4):
        bad = open_snapshot(root, version)
        with pytest.raises(CorruptError):
            bad.deletion_vector(bad.fragments[0])


def test_row_ids_are_read_inline_and_from_files(hand_made: Make, tmp_path: Path) -> None:
    table = hand_made()
    table.files["_rows/ids"] = b"??" + ids((50, 54))
    external = {"path": "_rows/ids", "offset": 2, "size": len(ids((50, 54)))}
    table.commit(
        1,
        reader_feature_flags=2,
        fragments=[
            {"id": 0, "physical_rows": 4, "inline_row_ids": ids((10, 12), (0, 2))},
            {"id": 3, "physical_rows": 4, "external_row_ids": external},
        ],
    )
    snapshot = open_snapshot(table.write(tmp_path))
    sequences = [snapshot.row_ids(f) for f in snapshot.fragments]
    assert [s.slice(0, 4).tolist() for s in sequences if s is not None] == [[10, 11, 0, 1], [50, 51, 52, 53]]
    assert snapshot.row_id_index is not None
    addresses, lives = snapshot.row_id_index.addresses(np.array([52, 1, 7], np.uint64))
    assert addresses.tolist() == [(3 << 32) + 2, 3, 0]
    assert lives.tolist() == [True, True, False]


def test_tables_without_stable_row_ids_have_no_row_id_index(hand_made: Make, tmp_path: Path) -> None:
    table = hand_made()
    table.commit(1, fragments=[{"id": 0, "physical_rows": 4}])
    snapshot = open_snapshot(table.write(tmp_path))
    assert snapshot.row_ids(snapshot.fragments[0]) is None
    assert snapshot.created_at(snapshot.fragments[0]) is None
    assert snapshot.row_id_index is None


def test_missing_and_miscounted_row_ids_are_rejected(hand_made: Make, tmp_path: Path) -> None:
    table = hand_made()
    table.commit(1, reader_feature_flags=2, fragments=[{"physical_rows": 4}])
    table.commit(2, reader_feature_flags=2 | 2048, fragments=[{"physical_rows": 4}])
    table.commit(3, reader_feature_flags=2, fragments=[{"physical_rows": 4, "inline_row_ids": ids((0, 5))}])
    root = table.write(tmp_path)
    for version, error in ((1, CorruptError), (2, UnsupportedError), (3, CorruptError)):
        snapshot = open_snapshot(root, version)
        with pytest.raises(error):
            snapshot.row_ids(snapshot.fragments[0])


def test_transactions_are_read_inline_or_from_their_file(hand_made: Make, tmp_path: Path) -> None:
    table = hand_made()
    append = transaction_pb2.Transaction(uuid="u", read_version=0, append={})
    table.commit(1, transaction=append)
    table.commit(2, transaction_file="1-v.txn")
    table.files["_transactions/1-v.txn"] = transaction_pb2.Transaction(uuid="v", read_version=1).SerializeToString()
    table.commit(3, transaction_file="2-w.txn")
    table.commit(4)
    root = table.write(tmp_path)
    found = [open_snapshot(root, version).transaction() for version in (1, 2, 3, 4)]
    assert [t and (t.uuid, t.operation) for t in found] == [("u", "Append"), ("v", "Unknown"), None, None]


def test_a_snapshot_can_be_pickled(hand_made: Make, tmp_path: Path) -> None:
    table = hand_made()
    table.commit(1)
    table.commit(2)
    snapshot = pickle.loads(pickle.dumps(open_snapshot(table.write(tmp_path), 1)))
    assert snapshot.version == 1
    assert snapshot.latest_version() == 2


def test_duplicate_fragment_ids_are_corrupt(hand_made: Make, tmp_path: Path) -> None:
    table = hand_made()
    table.commit(1, fragments=[{"id": 1}, {"id": 1}])
    with pytest.raises(CorruptError, match="duplicate fragment id"):
        open_snapshot(table.write(tmp_path)).fragment(1)
