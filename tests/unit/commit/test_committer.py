from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from unit.commit.samples import NEW, OPERATIONS, ROWS, fragment, index, schema

from lance_duck.checksums.sealed import unsealed_transaction
from lance_duck.commit import (
    Append,
    CreateIndex,
    Delete,
    Operation,
    Overwrite,
    Restore,
    Update,
    UpdateConfig,
    UpdateMap,
    commit,
    create_table,
    run_again,
)
from lance_duck.commit.index_coverage import bitmap_fragments
from lance_duck.errors import (
    AlreadyExistsError,
    IncompatibleError,
    InvalidInputError,
    RetryableError,
    StoreError,
    UnsupportedError,
)
from lance_duck.rows import DeletionVector, RowIdSequence, read_versions
from lance_duck.snapshot import Location, Snapshot, open_snapshot
from lance_duck.store.local import LocalStore
from lance_duck.wire import paths
from lance_duck.wire.fragment import DeletionFile
from lance_duck.write.deletions import write_deletions

HandMade = Callable[[], Any]


@pytest.fixture
def table(tmp_path: Path) -> Snapshot:
    return create(tmp_path / "t")


def create(root: Path, **options: Any) -> Snapshot:
    operation = Overwrite(schema(), [fragment(0), fragment(1)])
    return create_table(Location(str(root), {"fsync": "false"}), operation, **options)


def reopened(snapshot: Snapshot, version: int | None = None) -> Snapshot:
    return open_snapshot(snapshot.uri, version)


def files(snapshot: Snapshot, directory: str) -> list[str]:
    return [entry.path.removeprefix(f"{directory}/") for entry in snapshot.store.walk(directory)]


def deleted(snapshot: Snapshot, fragment_id: int, *rows: int, kind: type = Delete) -> Operation:
    """Delete rows of a fragment, as a delete or an update that writes one new fragment."""
    old = snapshot.fragment(fragment_id)
    before = snapshot.deletion_vector(old) or DeletionVector.of(np.empty(0, np.uint32))
    vector = before.union(DeletionVector.of(np.array(rows)))
    if vector.count == old.physical_rows:
        return Delete([], [fragment_id])
    updated = replace(old, deletion_file=write_deletions(snapshot.store, fragment_id, snapshot.version, vector))
    if kind is Update:
        return Update(updated_fragments=[updated], new_fragments=[replace(NEW, physical_rows=len(rows))])
    return Delete([updated], [])


def delete(snapshot: Snapshot, fragment_id: int, *rows: int, kind: type = Delete) -> Snapshot:
    operation = deleted(snapshot, fragment_id, *rows, kind=kind)
    return commit(snapshot, operation, affected={fragment_id: np.array(rows, np.uint32)})


def rows_of(snapshot: Snapshot, fragment_id: int) -> list[int]:
    found = snapshot.deletion_vector(snapshot.fragment(fragment_id))
    return [] if found is None else found.deleted.tolist()


def test_a_commit_returns_the_version_on_disk(table: Snapshot) -> None:
    after = commit(table, Append([NEW]), properties={"why": "test"})
    on_disk = reopened(table)
    assert after.manifest.proto == on_disk.manifest.proto
    assert (after.version, after.manifest.path, after.manifest.size) == (
        2,
        on_disk.manifest.path,
        on_disk.manifest.size,
    )
    assert list(after.fragments) == list(on_disk.fragments)
    assert after.manifest.writer == on_disk.manifest.writer
    assert after.manifest.writer[0] == "lance_duck"


def test_the_transaction_is_in_the_manifest_and_in_a_file(table: Snapshot) -> None:
    after = commit(table, Append([NEW]), properties={"why": "test"})
    transaction = after.transaction()
    assert (transaction.operation, transaction.read_version, transaction.transaction_properties) == (
        "Append",
        1,
        {"why": "test"},
    )
    assert after.manifest.transaction_name == f"1-{transaction.uuid}.txn"
    data = table.store.get(paths.transaction_file(after.manifest.transaction_name))
    assert unsealed_transaction(data, "t") == (transaction.proto.SerializeToString(), True)
    assert json.loads(table.store.get(paths.VERSION_HINT)) == {"version": 2}


def test_a_table_is_created_once(table: Snapshot) -> None:
    with pytest.raises(AlreadyExistsError, match="a table already exists at this path: found version 1"):
        create(Path(table.uri))
    assert (table.version, table.transaction().read_version) == (1, 0)


def test_a_table_keeps_its_manifest_naming_scheme(tmp_path: Path) -> None:
    after = commit(create(tmp_path / "t", v2_manifest_paths=False), Append([NEW]))
    assert sorted(files(after, "_versions")) == ["1.manifest", "2.manifest", "latest_version_hint.json"]


def test_commit_timestamps_do_not_decrease(hand_made: HandMade, tmp_path: Path) -> None:
    made = hand_made()
    made.commit(1, seconds=4_000_000_000)
    before = open_snapshot(made.write(tmp_path))
    assert commit(before, UpdateConfig(UpdateMap({"k": "v"}))).timestamp == before.timestamp


def test_a_stale_append_is_committed_on_the_newest_version(table: Snapshot) -> None:
    commit(table, Append([NEW]))
    last = commit(table, Append([NEW]))
    assert (last.version, last.fragments.ids(), last.transaction().read_version) == (3, [0, 1, 2, 3], 1)


def test_rows_get_their_ids_on_top_of_newer_ones(tmp_path: Path) -> None:
    table = create(tmp_path / "t", stable_row_ids=True)
    commit(table, Append([NEW]))
    last = commit(table, Append([NEW]))
    ids = last.row_ids(last.fragments[3])
    assert (ids.slice(0, 1).tolist(), last.manifest.next_row_id) == ([30], 40)
    assert last.created_at(last.fragments[3]).slice(0, 1).tolist() == [3]


def test_moved_rows_remember_when_they_were_created(tmp_path: Path) -> None:
    table = commit(create(tmp_path / "t", stable_row_ids=True), Append([NEW]))
    ids = RowIdSequence.from_ids(np.array([25, 3])).to_bytes()
    operation = deleted(table, 2, 5, kind=Update)
    moved = replace(operation, new_fragments=[replace(NEW, physical_rows=3, row_ids=ids)])
    after = commit(table, moved, affected={2: np.array([5], np.uint32)})
    assert after.created_at(after.fragments[3]).slice(0, 3).tolist() == [2, 1, 3]
    assert after.last_updated_at(after.fragments[3]).slice(0, 3).tolist() == [3, 3, 3]
    unknown = replace(moved, new_fragments=[replace(NEW, row_ids=RowIdSequence.range_of(99, 2).to_bytes())])
    with pytest.raises(InvalidInputError, match="no row of the table has"):
        commit(table, unknown)


@pytest.mark.parametrize("kind", [Delete, Update])
@pytest.mark.parametrize("theirs", [Delete, Update])
def test_deletions_of_different_rows_are_merged(table: Snapshot, kind: type, theirs: type) -> None:
    delete(table, 0, 1, 2, kind=theirs)
    after = delete(table, 0, 5, kind=kind)
    assert rows_of(after, 0) == rows_of(reopened(table), 0) == [1, 2, 5]
    assert after.fragment(0).num_deletions == 3
    updated = after.transaction().message.updated_fragments[0]
    assert updated.deletion_file.num_deleted_rows == 3


@pytest.mark.parametrize("kind", [Delete, Update])
def test_concurrent_deletions_of_the_same_row_are_retried(table: Snapshot, kind: type) -> None:
    delete(table, 0, 1, 2)
    before = sorted(files(table, "_transactions"))
    who = reopened(table).transaction().uuid
    with pytest.raises(
        RetryableError, match=f"both commits change the same row of fragment 0: found Delete {who} at version 2"
    ):
        delete(table, 0, 2, 3, kind=kind)
    assert (reopened(table).version, sorted(files(table, "_transactions"))) == (2, before)


def test_a_fragment_emptied_by_two_deletions_is_removed(table: Snapshot) -> None:
    delete(table, 0, *range(6))
    after = delete(table, 0, *range(6, ROWS))
    assert (after.fragments.ids(), after.manifest.reader_flags) == ([1], 0)


def test_deleting_a_fragment_conflicts_with_deleting_its_rows(table: Snapshot) -> None:
    delete(table, 0, 1)
    with pytest.raises(RetryableError, match="both delete rows of fragment 0"):
        commit(table, Delete([], [0]), affected={0: np.arange(ROWS, dtype=np.uint32)})
    after = commit(reopened(table), Delete([], [0]))
    with pytest.raises(RetryableError, match="a concurrent commit removed fragment 0"):
        delete(table, 0, 2)
    assert after.fragments.ids() == [1]


def test_deletions_of_unknown_rows_are_not_merged(table: Snapshot) -> None:
    delete(table, 0, 1)
    with pytest.raises(RetryableError, match="changed data that this Delete needs"):
        commit(table, deleted(table, 0, 2))
    with pytest.raises(RetryableError, match="both commits change rows of fragment 0"):
        commit(table, deleted(table, 0, 2), affected={})


def test_a_deletion_is_rebased_on_a_projection(table: Snapshot) -> None:
    two_files = [fragment(0, *OPERATIONS["UpdateCols(b) f0"].updated_fragments[0].files), fragment(1)]
    base = commit(table, Overwrite(schema(), two_files))
    commit(base, OPERATIONS["Project(drop c)"].__class__(schema("ac"), preserves_nullability=True))
    after = delete(base, 2, 4)
    assert [file.path for file in after.fragment(2).files] == ["0.lance"]
    assert rows_of(after, 2) == [4]


def test_an_in_place_update_is_rebased_on_deletions_of_other_rows(table: Snapshot) -> None:
    delete(table, 0, 1)
    with pytest.raises(RetryableError, match="both commits change the same row"):
        commit(table, OPERATIONS["UpdateCols(b) f0"], affected={0: np.array([1], np.uint32)})
    after = commit(table, OPERATIONS["UpdateCols(b) f0"], affected={0: np.array([3], np.uint32)})
    assert [file.path for file in after.fragment(0).files] == ["0.lance", "new-b.lance"]
    assert rows_of(after, 0) == [1]


def test_new_indexes_do_not_cover_fragments_changed_since(table: Snapshot) -> None:
    commit(table, OPERATIONS["UpdateCols(b) f0"])
    made = CreateIndex([index("a", 0, covers=(0, 1)), index("b", 1, covers=(0, 1), number=2)])
    after = commit(table, made)
    assert [bitmap_fragments(i.proto).tolist() for i in after.indices] == [[0, 1], [1]]


def test_an_older_version_is_restored_as_a_new_version(table: Snapshot) -> None:
    last = commit(commit(table, Append([NEW])), UpdateConfig(UpdateMap({"k": "v"})))
    after = commit(last, Restore(1))
    assert (after.version, after.fragments.ids(), after.config, after.manifest.max_fragment_id) == (4, [0, 1], {}, 2)


def test_a_detached_version_is_not_part_of_the_table_history(table: Snapshot) -> None:
    commit(table, Append([NEW]))
    apart = commit(table, Append([NEW, NEW]), detached=True)
    assert (len(apart.fragments), reopened(table).version) == (4, 2)
    assert len(reopened(table, apart.version).fragments) == 4
    assert paths.is_detached(apart.version)
    with pytest.raises(InvalidInputError, match="detached version"):
        commit(apart, Append([NEW]))


def test_without_retries_a_commit_must_follow_the_version_it_read(table: Snapshot) -> None:
    second = commit(table, Append([NEW]), retries=0)
    with pytest.raises(RetryableError, match="may only follow version 1: found version 2"):
        commit(table, Overwrite(schema(), [NEW]), retries=0)
    assert commit(second, Append([NEW]), retries=0).version == 3
    with pytest.raises(InvalidInputError, match="retries"):
        commit(second, Append([NEW]), retries=-1)


def test_a_guard_receives_the_newest_version_and_may_reject_the_commit(table: Snapshot) -> None:
    seen: list[int] = []
    commit(table, Append([NEW]), guard=lambda newest: seen.append(newest.version))
    commit(reopened(table), Append([NEW]))
    commit(table, Append([NEW]), guard=lambda newest: seen.append(newest.version))
    assert seen == [3]

    def refuse(newest: Snapshot) -> None:
        raise RetryableError("no", found=newest.version)

    with pytest.raises(RetryableError, match="no: found 4"):
        commit(table, Append([NEW]), guard=refuse)
    assert reopened(table).version == 4


def test_a_version_without_its_transaction_is_not_followed(table: Snapshot) -> None:
    commit(table, Append([NEW]))
    commit(table, Append([NEW]))
    (Path(table.uri) / paths.ManifestName(2, 2).path).unlink()
    with pytest.raises(RetryableError, match="onto version 2, because its transaction file is missing"):
        commit(table, Append([NEW]))
    assert run_again(table, lambda newest: commit(newest, Append([NEW]))).version == 4


def test_tables_with_unknown_writer_flags_are_rejected(hand_made: HandMade, tmp_path: Path) -> None:
    made = hand_made()
    made.commit(1, writer_feature_flags=1 << 17)
    table = open_snapshot(made.write(tmp_path / "t"))
    with pytest.raises(UnsupportedError, match=r"131072 \(unknown\)"):
        commit(table, Append([NEW]))


def test_tables_that_gain_unknown_writer_flags_are_rejected(hand_made: HandMade, tmp_path: Path) -> None:
    made = hand_made()
    made.commit(1)
    table = open_snapshot(made.write(tmp_path))
    transaction = commit(table, Append([NEW]), detached=True).transaction()
    made.commit(2, writer_feature_flags=1 << 17, transaction=transaction.proto)
    made.write(tmp_path)
    with pytest.raises(UnsupportedError, match=r"131072 \(unknown\)"):
        commit(table, Append([NEW]))


class Faulty(LocalStore):
    """A store that fails after, or instead of, putting manifests."""

    lose: list[str] = []  # noqa: RUF012

    def put_if_absent(self, path: str, data: Any, beside: Any = None, *, late: bool = False) -> None:
        match self.lose.pop() if self.lose else "":
            case "answer":
                super().put_if_absent(path, data, beside, late=late)
                raise StoreError("timed out")
            case "twice":
                super().put_if_absent(path, data, beside, late=late)
                raise AlreadyExistsError("taken")
            case "all":
                raise StoreError("no space left")
        super().put_if_absent(path, data, beside, late=late)


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Location:
    location = Location(str(tmp_path / "t"), {})
    monkeypatch.setattr(Location, "store", lambda self, *_, **__: Faulty(self.uri))
    monkeypatch.setattr(Faulty, "lose", [])
    return location


@pytest.mark.parametrize("fault", ["answer", "twice"])
def test_a_commit_with_a_lost_response_recognises_itself(faulty: Location, fault: str) -> None:
    Faulty.lose = [fault]
    table = create_table(faulty, Overwrite(schema(), [fragment(0)]))
    Faulty.lose = [fault]
    after = commit(table, Append([NEW]))
    assert (table.version, after.version, after.latest_version()) == (1, 2, 2)
    assert after.fragments.ids() == [0, 1]


def test_a_lost_response_is_not_a_lost_race_if_the_version_cannot_be_listed(
    faulty: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create_table(faulty, Overwrite(schema(), [fragment(0)]))
    looks = iter([table.version])

    def latest(*_: Any) -> paths.ManifestName:
        for version in looks:
            return paths.ManifestName(version, 2)
        raise StoreError("timed out")

    Faulty.lose = ["twice"]
    monkeypatch.setattr("lance_duck.snapshot.versions.latest_version", latest)
    with pytest.raises(StoreError, match="timed out"):
        commit(table, Append([NEW]), retries=0)
    monkeypatch.undo()
    assert reopened(table).fragments.ids() == [0, 1]


def test_a_failing_store_leaves_no_version(faulty: Location) -> None:
    Faulty.lose = ["all"]
    with pytest.raises(StoreError, match="no space left"):
        create_table(faulty, Overwrite(schema(), [fragment(0)]))
    table = create_table(faulty, Overwrite(schema(), [fragment(0)]))
    Faulty.lose = ["all"]
    with pytest.raises(StoreError, match="no space left"):
        commit(table, Append([NEW]))
    assert table.latest_version() == 1


def test_a_commit_that_loses_every_race_names_the_winner(table: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    def rival(*_: Any, **options: Any) -> None:
        monkeypatch.undo()
        commit(reopened(table), Append([NEW]))
        monkeypatch.setattr("lance_duck.commit.version_files.publish_manifest", rival)
        raise AlreadyExistsError("taken")

    monkeypatch.setattr("lance_duck.commit.version_files.publish_manifest", rival)
    with pytest.raises(RetryableError, match=r"Append lost 3 races to other writers: found Append .* at version 4"):
        commit(table, Append([NEW]), retries=2)
    monkeypatch.undo()
    assert len(files(table, "_transactions")) == reopened(table).version == 4


def test_deletion_files_of_lost_races_are_deleted(table: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    delete(table, 0, 1)
    operation = deleted(table, 0, 5)

    def rival(*_: Any, **options: Any) -> None:
        monkeypatch.undo()
        delete(reopened(table), 0, 2)
        raise AlreadyExistsError("taken")

    monkeypatch.setattr("lance_duck.commit.version_files.publish_manifest", rival)
    after = commit(table, operation, affected={0: np.array([5], np.uint32)})
    assert rows_of(after, 0) == [1, 2, 5]
    # One of each change, and the one that was merged last.
    assert len(files(table, "_deletions")) == 4


def test_many_concurrent_writers_lose_nothing(table: Snapshot) -> None:
    def write() -> None:
        for _ in range(5):
            commit(table, Append([NEW]), retries=100)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    last = reopened(table)
    assert (last.version, last.fragments.ids()) == (21, list(range(22)))
    assert len({reopened(table, n).transaction().uuid for n in range(1, 22)}) == 21


def test_a_lost_change_is_rerun_on_the_newest_version(table: Snapshot) -> None:
    delete(table, 0, 1)
    seen: list[int] = []

    def attempt(snapshot: Snapshot) -> Snapshot:
        seen.append(snapshot.version)
        return delete(snapshot, 0, *({1, 2} - set(rows_of(snapshot, 0))))

    after = run_again(table, attempt)
    assert (seen, rows_of(after, 0)) == ([1, 2], [1, 2])


def test_a_change_that_loses_every_rerun_names_the_winner(table: Snapshot) -> None:
    delete(table, 0, 1)
    seen: list[int] = []

    def attempt(snapshot: Snapshot) -> Snapshot:
        seen.append(snapshot.version)
        return delete(table, 0, 1)

    with pytest.raises(RetryableError, match="both commits change the same row"):
        run_again(table, attempt, retries=2)
    assert seen == [1, 2, 2]
    with pytest.raises(RetryableError):
        run_again(table, attempt, retries=100, timeout=0.001)


def test_updated_versions_of_rows_survive_a_rebase(tmp_path: Path) -> None:
    table = create(tmp_path / "t", stable_row_ids=True)
    delete(table, 0, 1)
    change = replace(
        OPERATIONS["UpdateCols(b) f0"],
        updated_fragments=[replace(table.fragment(0), files=OPERATIONS["UpdateCols(b) f0"].updated_fragments[0].files)],
    )
    after = commit(table, change, affected={0: np.array([3], np.uint32)})
    changed = after.fragment(0)
    assert read_versions(changed.last_updated_at, "here").slice(0, 2).tolist() == [3, 3]
    assert changed.row_ids == table.fragment(0).row_ids
    assert isinstance(changed.deletion_file, DeletionFile)


def without_transaction_files(snapshot: Snapshot) -> Snapshot:
    shutil.rmtree(Path(snapshot.uri) / "_transactions")
    return snapshot


@pytest.mark.parametrize("keeps_files", [True, False])
@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("detached", [False, True])
def test_a_recreated_table_rejects_changes_of_the_old_one(
    table: Snapshot, version: int, keeps_files: bool, detached: bool
) -> None:
    before = commit(table, Append([NEW]))
    shutil.rmtree(table.uri)
    latest = create(Path(table.uri))
    while latest.version < version:
        latest = commit(latest, Append([NEW]))
    if not keeps_files:
        without_transaction_files(latest)
    manifests = files(latest, "_versions")
    with pytest.raises(
        IncompatibleError, match=r"another table replaced this one since it was read.*open the table again"
    ):
        commit(before, Append([NEW]), detached=detached)
    assert files(latest, "_versions") == manifests


def test_a_table_without_transaction_files_is_still_the_same_table(table: Snapshot) -> None:
    first = commit(without_transaction_files(table), Append([NEW]))
    assert commit(table, Append([NEW])).version == 3
    table.store.delete([first.manifest.path.removeprefix(f"{table.uri}/")])
    assert commit(reopened(table), Append([NEW])).version == 4


def test_a_table_with_a_cleaned_up_version_is_still_the_same_table(table: Snapshot) -> None:
    commit(without_transaction_files(table), Append([NEW]))
    table.store.delete([table.manifest.path.removeprefix(f"{table.uri}/")])
    assert commit(table, Append([NEW])).version == 3
