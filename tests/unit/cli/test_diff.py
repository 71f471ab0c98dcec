"""`diff`: rows and columns of two versions, compared."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from support.command_line import objects, rows, run

import lance_duck as ld
from lance_duck.errors import InvalidInputError, NotFoundError, UnknownColumnError


def changed_table(uri: Path, *, stable: bool) -> str:
    """Version 1 has ids 1 to 4; 2 updates one, 3 deletes two, 4 inserts two, 5 deletes one of them."""
    dataset = ld.write_dataset({"id": [1, 2, 3, 4], "word": list("abcd")}, uri, enable_stable_row_ids=stable)
    dataset.tags.create("first", 1)
    dataset.update({"word": "'z'"}, where="id = 2")
    dataset.delete("id >= 3")
    dataset.insert({"id": [8, 9], "word": ["new", "gone"]})
    dataset.delete("id = 9")
    return str(uri)


@pytest.fixture
def stable(tmp_path: Path) -> str:
    return changed_table(tmp_path / "t.lance", stable=True)


@pytest.fixture
def unstable(tmp_path: Path) -> str:
    return changed_table(tmp_path / "t.lance", stable=False)


def counted(table: str, *arguments: str) -> tuple[object, ...]:
    """Return rows before, after, inserted, updated, deleted."""
    (found,) = objects("diff", table, *arguments)
    return tuple(found[name] for name in ("rows_before", "rows_after", "inserted", "updated", "deleted"))


@pytest.mark.parametrize("older", ["1", "first"])
def test_versions_with_stable_ids_are_compared_by_row_id(stable: str, older: str) -> None:
    (found,) = objects("diff", stable, "--from", older)
    assert found == {
        "from": 1,
        "to": 5,
        "compared": "by row ids",
        "rows_before": 4,
        "rows_after": 3,
        "inserted": 1,
        "updated": 1,
        "deleted": 2,
        "columns_added": [],
        "columns_removed": [],
        "columns_changed": [],
    }


def test_changes_without_stable_ids_are_added_up(unstable: str) -> None:
    assert objects("diff", unstable, "--from", "1")[0]["compared"] == "version by version"
    assert counted(unstable, "--from", "1") == (4, 3, 3, 0, 4)


def test_diff_compares_the_newest_version_with_its_predecessor_by_default(stable: str) -> None:
    (found,) = objects("diff", stable)
    assert (found["from"], found["to"], found["deleted"]) == (4, 5, 1)
    assert counted(stable, "--to", "2") == (4, 4, 0, 1, 0)


@pytest.mark.parametrize("with_ids", [True, False])
def test_a_version_does_not_differ_from_itself(tmp_path: Path, with_ids: bool) -> None:
    table = changed_table(tmp_path / "t.lance", stable=with_ids)
    assert counted(table, "--from", "5", "--to", "5") == (3, 3, 0, 0, 0)
    assert rows("diff", table, "--from", "5", "--to", "5", "--rows") == []


def test_diff_shows_current_rows_and_deleted_rows_with_old_values(stable: str) -> None:
    assert objects("diff", stable, "--from", "1", "--rows") == [
        {"change_type": "insert", "id": 8, "word": "new", "_rowid": 4},
        {"change_type": "update", "id": 2, "word": "z", "_rowid": 1},
        {"change_type": "delete", "id": 3, "word": "c", "_rowid": 2},
        {"change_type": "delete", "id": 4, "word": "d", "_rowid": 3},
    ]
    assert rows("diff", stable, "--from", "1", "--to", "2", "--rows", "--columns", "word") == [
        {"change_type": "update", "_rowid": "1", "word": "z"}
    ]


def test_diff_without_stable_ids_lists_deletes_and_inserts(unstable: str) -> None:
    found = [(row["change_type"], row["id"]) for row in objects("diff", unstable, "--from", "3", "--rows")]
    assert sorted(found) == [("delete", 9), ("insert", 8), ("insert", 9)]


def test_diff_after_a_restore_shows_the_restored_rows(stable: str) -> None:
    ld.dataset(stable, version=1).restore()
    assert counted(stable, "--from", "5") == (3, 4, 2, 1, 1)
    assert counted(stable, "--from", "1") == (4, 4, 0, 0, 0)


@pytest.mark.parametrize("with_ids", [True, False])
def test_added_dropped_and_changed_columns_are_named(tmp_path: Path, with_ids: bool) -> None:
    table = changed_table(tmp_path / "t.lance", stable=with_ids)
    dataset = ld.dataset(table)
    dataset.add_columns({"twice": "id * 2"})
    dataset.alter_columns({"path": "id", "data_type": pa.int32()})
    dataset.drop_columns(["word"])
    (found,) = objects("diff", table, "--from", "5")
    assert (found["columns_added"], found["columns_removed"], found["columns_changed"]) == (
        ["twice: int64"],
        ["word: string"],
        ["id: int64 to int32"],
    )
    assert [found[name] for name in ("inserted", "updated", "deleted")] == [0, 3 if with_ids else 0, 0]
    dataset.delete("id = 1")
    gone = objects("diff", table, "--from", "5", "--rows")[-1]
    assert (gone["change_type"], gone["id"], gone["twice"]) == ("delete", 1, None if with_ids else 2)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (("--from", "3", "--to", "2"), InvalidInputError, "the versions are in the wrong order"),
        (("--to", "1"), InvalidInputError, "no older version to compare with"),
        (("--from", "99"), NotFoundError, "99"),
        (("--from", "frist"), NotFoundError, "did you mean 'first'"),
        (("--rows", "--columns", "wrod"), UnknownColumnError, "did you mean 'word'"),
    ],
)
def test_versions_that_cannot_be_compared_are_rejected(
    stable: str, arguments: tuple[str, ...], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        run("diff", stable, *arguments)
