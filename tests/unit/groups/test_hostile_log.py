"""Damaged and hostile commit logs raise errors of the package, and nothing outside the folder changes."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest
from support.faults import Faults, Plan, answer_twice, fail_at, fail_from, lose_answer
from unit.groups.group_tables import (
    EDITS,
    OPTIONS,
    Edit,
    after,
    alter,
    append,
    before,
    change_rows,
    commit_group,
    copy_folder,
    delete_fragment,
    files_of,
    group_of,
    make_folder,
    put,
    rows_of,
    write_table,
)

import lance_duck as ld
from lance_duck.errors import (
    CorruptError,
    LanceDuckError,
    StoreError,
    UnsupportedError,
)
from lance_duck.groups.finish import base_of, finish, settle, staged_digest
from lance_duck.groups.log import PUBLISHED, CommitLog
from lance_duck.wire.paths import GROUP_COMMITS, STAGED_GROUPS
from lance_duck.wire.pb import transaction_pb2

BEYOND: Final = 2**64 - 1
VALUES: Final = [
    None,
    True,
    -1,
    0,
    7,
    2**62,
    2**63,
    2**70,
    1.5,
    "",
    ".",
    "..",
    "../x",
    "/x",
    "a\0b",
    "x" * 5000,
    [],
    {},
]
"""Values of no use for most fields of an entry."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an entry that is not finished."""
    root = tmp_path / "outside" / "folder"
    put(make_folder(str(root)), group_of(str(root)))
    return root


def entry_file(folder: Path, suffix: str = ".json") -> Path:
    return folder / GROUP_COMMITS / f"{BEYOND - 1}{suffix}"


def settled(folder: Path) -> CommitLog:
    log = CommitLog(str(folder), OPTIONS)
    settle(log, wait=0)
    return log


def refused(folder: Path) -> LanceDuckError | None:
    """Finish the newest entry. Returns the error."""
    try:
        settled(folder)
    except LanceDuckError as error:
        return error
    return None


def check_unchanged(folder: Path) -> None:
    assert {name: rows_of(str(folder), name) for name in EDITS} == {name: before(name) for name in EDITS}


@pytest.mark.parametrize("suffix", [".json", ".end", ".undone"])
def test_a_file_of_the_log_that_is_cut_short_is_corrupt(folder: Path, suffix: str) -> None:
    contents = {".json": entry_file(folder).read_bytes(), ".end": b'{"outcome":"undo"}', ".undone": b'{"kept":{}}'}
    file = entry_file(folder, suffix)
    if suffix == ".undone":
        entry_file(folder, ".end").write_bytes(contents[".end"])
    for size in range(len(contents[suffix])):
        file.write_bytes(contents[suffix][:size])
        log = CommitLog(str(folder), OPTIONS)
        with pytest.raises(CorruptError, match="commit log"):
            finish(log, log.read(1))
    check_unchanged(folder)


@pytest.mark.parametrize("suffix", [".json", ".end", ".undone"])
def test_random_bytes_in_the_log_raise_errors_of_the_package(folder: Path, suffix: str) -> None:
    rng = random.Random(0)
    for _ in range(200):
        entry_file(folder, suffix).write_bytes(rng.randbytes(rng.randrange(100)))
        log = CommitLog(str(folder), OPTIONS)
        with pytest.raises(LanceDuckError):
            log.undone(1) if suffix == ".undone" else settle(log, wait=0)
    check_unchanged(folder)


@pytest.mark.parametrize("text", ['{"outcome":"other"}', '{"outcome":5}', "{}", "[]", "5", '"undo"', "null"])
def test_an_unknown_outcome_is_corrupt(folder: Path, text: str) -> None:
    entry_file(folder, ".end").write_text(text)
    assert isinstance(refused(folder), CorruptError)
    check_unchanged(folder)


@pytest.mark.parametrize("kept", ["5", '"x"', "[1]", '{"a.lance":"x"}', '{"a.lance":null}', '{"a.lance":[]}'])
def test_damaged_lists_of_kept_tables_are_corrupt(folder: Path, kept: str) -> None:
    entry_file(folder, ".end").write_text('{"outcome":"undo"}')
    entry_file(folder, ".undone").write_text(f'{{"outcome":"partly","kept":{kept}}}')
    log = CommitLog(str(folder), OPTIONS)
    with pytest.raises(CorruptError):
        finish(log, log.read(1))


def test_entries_of_newer_versions_are_not_supported(folder: Path) -> None:
    entry = json.loads(entry_file(folder).read_text())
    entry_file(folder).write_text(json.dumps(entry | {"lance_duck_commit": 2, "tables": "other"}))
    error = refused(folder)
    assert isinstance(error, UnsupportedError)
    assert "install the newer version" in str(error)
    check_unchanged(folder)


def hostile_entries(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield an entry with one value replaced or removed, for all its values."""
    for key in entry:
        yield {name: value for name, value in entry.items() if name != key}
        yield from ({**entry, key: value} for value in VALUES)
    for number, table in enumerate(entry["tables"]):
        for key in table:
            for value in VALUES:
                tables = list(entry["tables"])
                tables[number] = {**table, key: value}
                yield {**entry, "tables": tables}
    move = {"inode": 1, "source": "a.lance", "target": "x.lance"}
    for key in move:
        yield from ({**entry, "moves": [{**move, key: value}]} for value in VALUES)
    yield from ({**entry, key: [value]} for key in ("dropped", "moves", "tables") for value in VALUES)


def test_entries_with_hostile_values_change_nothing_outside_their_tables(folder: Path) -> None:
    outside = folder.parent
    write_table(str(outside), "other", 90)
    write_table(str(folder / STAGED_GROUPS / "running"), "other", 90)
    template = copy_folder(str(outside), str(outside.with_name("template")))
    log = str(entry_file(folder).relative_to(outside))
    known = files_of(str(outside))
    theirs = {name: state for name, state in known.items() if "other" in name}
    errors = 0
    for entry in hostile_entries(json.loads(entry_file(folder).read_text())):
        entry_file(folder).write_text(json.dumps(entry))
        errors += refused(folder) is not None
        found = files_of(str(outside))
        if {**found, log: ()} == {**known, log: ()}:
            continue
        assert {name: state for name, state in found.items() if "other" in name} == theirs, entry
        assert log in found, entry
        for name in EDITS:
            assert rows_of(str(folder), name) in (before(name), after(name, EDITS[name])), entry
        copy_folder(template, str(outside))
    assert errors > 300


@pytest.mark.parametrize(
    "name", ["x.json", f"{BEYOND}.json", f"{BEYOND - 2}.other", "0.json", "9" * 20 + ".end", "é" * 20]
)
def test_other_files_in_the_log_are_ignored(folder: Path, name: str) -> None:
    (folder / GROUP_COMMITS / name).write_bytes(b"?")
    assert settled(folder).outcome(1) == PUBLISHED


def test_numbers_from_the_future_are_continued_or_refused(folder: Path) -> None:
    settled(folder)
    shutil.copy(entry_file(folder), folder / GROUP_COMMITS / f"{BEYOND - 2**63 + 1:020}.json")
    assert isinstance(refused(folder), CorruptError)  # the entry has another number
    log = CommitLog(str(folder), OPTIONS)
    with pytest.raises(LanceDuckError):
        list(log.entries_after(1))
    (folder / GROUP_COMMITS / f"{BEYOND - 2**63 + 1:020}.end").write_text('{"outcome":"published"}')
    with pytest.raises(LanceDuckError):
        commit_group(CommitLog(str(folder), OPTIONS), group_of(str(folder)))


@pytest.mark.parametrize("name", EDITS)
def test_a_group_is_undone_if_one_of_its_tables_is_gone(folder: Path, name: str) -> None:
    shutil.rmtree(folder / f"{name}.lance")
    assert settled(folder).undone(1) == {}
    others = [other for other in EDITS if other != name]
    assert {other: rows_of(str(folder), other) for other in others} == {other: before(other) for other in others}


def staged_files(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / STAGED_GROUPS).rglob("*") if path.is_file())


def test_a_group_is_undone_if_a_staged_file_is_missing(folder: Path) -> None:
    template = copy_folder(str(folder), f"{folder}-template")
    for number in range(4):
        copy_folder(template, str(folder))
        staged_files(folder)[number].unlink()
        assert settled(folder).undone(1) == {}
        check_unchanged(folder)


def drop_column(dataset: ld.LanceDataset) -> None:
    dataset.drop_columns(["v"])


@pytest.mark.parametrize("edit", [append, change_rows, delete_fragment, alter, drop_column])
def test_a_change_is_not_published_into_another_table_of_the_same_name(tmp_path: Path, edit: Edit) -> None:
    root = str(tmp_path)
    log = make_folder(root)
    put(log, group_of(root, {"a": edit, "b": append}))
    shutil.rmtree(tmp_path / "a.lance")
    make_folder(root, "a")
    assert settled(tmp_path).undone(1) == {}
    assert rows_of(root, "a") == before("a")
    assert rows_of(root, "b") == before("b")


def messages(table: dict[str, Any]) -> Iterator[bytes]:
    """Yield messages that are no transactions, or not of a table, in place of the transaction of the table."""
    change = transaction_pb2.Transaction(uuid=table["transaction"], read_version=table["base"])
    yield b"?"
    yield b""
    yield change.SerializeToString()
    for other in ({"uuid": str(UUID(int=7))}, {"read_version": 7}):
        found = transaction_pb2.Transaction(delete=transaction_pb2.Transaction.Delete(), **other)
        change.MergeFrom(found)
        yield change.SerializeToString()
    change = transaction_pb2.Transaction(uuid=table["transaction"], read_version=table["base"])
    for fragment in (7, 2**63):
        change.delete.deleted_fragment_ids[:] = [fragment]
        yield change.SerializeToString()
    change.delete.deleted_fragment_ids[:] = []
    for path in ("../x", "missing.lance"):
        change.delete.updated_fragments.add(id=0).files.add(path=path)
        yield change.SerializeToString()
        change.append.fragments.add(id=0).files.add(path=path)
        yield change.SerializeToString()


def test_messages_with_a_right_digest_are_checked(tmp_path: Path) -> None:
    template, root = str(tmp_path / "template"), str(tmp_path / "folder")
    put(make_folder(template), group_of(template, {"a": append, "b": append}))
    entry = json.loads(entry_file(Path(template)).read_text())
    for data in messages(entry["tables"][0]):
        folder = Path(copy_folder(template, root))
        log = CommitLog(root, OPTIONS)
        base = base_of(log, log.read(1).tables[0])
        entry["tables"][0]["xxh3"] = staged_digest(base, data, None)
        entry_file(folder).write_text(json.dumps(entry))
        staged_files(folder)[0].write_bytes(data)
        assert settled(folder).undone(1) == {}, data
        assert [rows_of(root, name) for name in "ab"] == [before("a"), before("b")]


def test_a_group_is_undone_if_a_staged_file_is_damaged(folder: Path) -> None:
    template, rng = copy_folder(str(folder), f"{folder}-template"), random.Random(0)
    for number in range(4):
        for _ in range(5):
            copy_folder(template, str(folder))
            file = staged_files(folder)[number]
            data = bytearray(file.read_bytes())
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            file.write_bytes(data if rng.random() < 0.5 else data[:-1])
            log = settled(folder)
            assert log.undone(1) == {}
            assert "a staged change is damaged" in log.reason(1)
            check_unchanged(folder)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not hold for root")
def test_a_folder_for_reading_only_raises_an_error_and_changes_nothing(folder: Path) -> None:
    folders = [path for path in [folder, *folder.rglob("*")] if path.is_dir()]
    for path in folders:
        path.chmod(0o555)
    try:
        with pytest.raises(StoreError, match="check the permissions"):
            settled(folder)
    finally:
        for path in folders:
            path.chmod(0o755)
    check_unchanged(folder)
    assert settled(folder).outcome(1) == PUBLISHED


PLANS: dict[str, Callable[[int], Plan]] = {
    "full disk": lambda at: fail_from(at, errno.ENOSPC),
    "failing disk": lambda at: fail_at(at, errno.EIO),
    "lost response": lose_answer,
    "repeated request": answer_twice,
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_store_that_fails_at_any_step_leaves_all_or_nothing(tmp_path: Path, plan: Callable[[int], Plan]) -> None:
    template, folder = tmp_path / "template", tmp_path / "folder"
    make_folder(str(template))
    failures = 0
    for at in range(1000):
        copy_folder(str(template), str(folder))
        group = group_of(str(folder))
        error = None
        with Faults(plan(at)) as faults:
            try:
                commit_group(CommitLog(str(folder), OPTIONS), group)
            except StoreError as found:
                error = found
        log = settled(folder)
        is_in = log.state().number == 1 and log.outcome(1) == PUBLISHED
        for name in EDITS:
            assert rows_of(str(folder), name) == (after(name, EDITS[name]) if is_in else before(name)), at
        assert is_in or error is not None
        failures += error is not None
        if at >= len(faults.steps):
            break
    assert at > 40
