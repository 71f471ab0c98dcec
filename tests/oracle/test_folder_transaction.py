"""`lance_duck.transaction` changes several tables of a folder in one commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidInputError,
    NotFoundError,
    PartlyCommittedError,
    ReferencedError,
    UnsupportedError,
)
from lance_duck.groups import pending
from lance_duck.groups.finish import settle
from lance_duck.groups.log import CommitLog


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    for name in ("a", "b"):
        ld.write_dataset({"id": [0, 1, 2], "v": [10, 10, 10]}, tmp_path / f"{name}.lance")
    return tmp_path


def values(shop: Path, name: str, column: str = "v") -> list[Any]:
    """Return a column as pylance reads it, in the order of the ids."""
    table = lance.dataset(str(shop / f"{name}.lance")).to_table()
    return [row[column] for row in sorted(table.to_pylist(), key=lambda row: row["id"])]


def names(shop: Path) -> list[str]:
    return sorted(path.name for path in shop.iterdir() if not path.name.startswith("__"))


def test_changes_of_several_tables_become_visible_together(shop: Path) -> None:
    with ld.transaction(shop, message="move 3") as tx:
        tx["a"].update({"v": "v - 3"}, where="id = 1")
        tx["b"].update({"v": "v + 3"}, where="id = 2")
        assert tx["a"].to_table(filter="id = 1")["v"].to_pylist() == [7]
        assert (values(shop, "a"), values(shop, "b")) == ([10, 10, 10], [10, 10, 10])
    assert (values(shop, "a"), values(shop, "b")) == ([10, 7, 10], [10, 10, 13])
    assert tx.versions == {"a": 2, "b": 2}
    (transaction, _) = ld.dataset(shop / "a.lance").get_transactions()
    assert transaction.transaction_properties["__lance_commit_message"] == "move 3"


def test_every_kind_of_row_change_belongs_to_the_transaction(shop: Path) -> None:
    with ld.transaction(shop) as tx:
        for name in ("a", "b"):
            tx[name].insert({"id": [3, 4], "v": [1, 2]})
            tx[name].delete("id = 0")
            tx[name].update({"v": "v * 2"}, where="id >= 2")
            merge = tx[name].merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
            merge.execute(pa.table({"id": [1, 9], "v": [77, 99]}))
        assert values(shop, "a") == [10, 10, 10]
    assert values(shop, "a") == values(shop, "b") == [77, 20, 2, 4, 99]
    assert tx.versions == {"a": 2, "b": 2}


def test_columns_and_rows_change_together(shop: Path) -> None:
    with ld.transaction(shop) as tx:
        tx["a"].add_columns({"w": "v + 1"})
        tx["a"].delete("id = 0")
        tx["b"].drop_columns(["v"])
        tx["b"].insert({"id": [5]})
    assert values(shop, "a", "w") == [11, 11]
    assert values(shop, "b", "id") == [0, 1, 2, 5]


def test_a_table_without_changes_gets_no_version(shop: Path) -> None:
    with ld.transaction(shop) as tx:
        assert tx["a"].count_rows() == 3
        tx["b"].delete("id = 0")
    assert tx.versions == {"b": 2}
    assert not (shop / "__lance_duck").exists()  # one table needs no log
    with ld.transaction(shop) as tx:
        tx["a"].count_rows()
    assert tx.versions == {}


def test_an_error_in_the_block_discards_everything(shop: Path) -> None:
    files = sorted(path for path in shop.rglob("*") if path.is_file())

    def change() -> None:
        with ld.transaction(shop) as tx:
            tx["a"].insert({"id": [7], "v": [7]})
            tx["b"].delete("id = 1")
            tx.create_table("c", {"x": [1]})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        change()
    assert sorted(path for path in shop.rglob("*") if path.is_file()) == files


def test_names_and_rows_change_together(shop: Path) -> None:
    with ld.transaction(shop) as tx:
        tx.create_table("new", {"x": [1]})
        tx["new"].insert({"x": [2]})
        tx.rename_table("new", "newer")
        tx.rename_table("a", "old")
        tx["old"].delete("id = 0")
        tx.drop_table("b")
        tx.create_table("b", {"id": [9], "v": [9]})
        assert names(shop) == ["a.lance", "b.lance"]
    assert names(shop) == ["b.lance", "newer.lance", "old.lance"]
    assert (values(shop, "old"), values(shop, "b")) == ([10, 10], [9])
    assert tx.versions == {"old": 2, "newer": 2, "b": 1}
    assert ld.dataset(shop / "newer.lance").to_table()["x"].to_pylist() == [1, 2]


def test_two_tables_swap_their_names(shop: Path) -> None:
    ld.dataset(shop / "a.lance").delete("id > 0")
    with ld.transaction(shop) as tx:
        tx.rename_table("a", "tmp")
        tx.rename_table("b", "a")
        tx.rename_table("tmp", "b")
    assert (values(shop, "a", "id"), values(shop, "b", "id")) == ([0, 1, 2], [0])
    assert names(shop) == ["a.lance", "b.lance"]


def test_namespaces_and_their_tables_are_part_of_the_commit(shop: Path) -> None:
    with ld.transaction(shop) as tx:
        tx.create_namespace("s")
        tx.create_table("s$t", {"x": [1]})
        tx.create_table(["s", "u"], {"x": [2]})
        tx.rename_table("s$t", "s$w")
        tx.drop_table("s$u")
        tx["a"].delete("id = 0")
        assert ld.DirectoryNamespace(str(shop)).list_namespaces() == []
    namespace = ld.DirectoryNamespace(str(shop))
    assert namespace.list_tables("s") == ["w"]
    assert namespace.open_table("s$w").to_table()["x"].to_pylist() == [1]
    with ld.transaction(namespace) as tx:
        tx.drop_namespace("s", cascade=True)
        tx["a"].delete("id = 1")
    assert namespace.list_namespaces() == []
    assert names(shop) == ["a.lance", "b.lance"]


def test_all_tables_are_read_in_one_state(shop: Path) -> None:
    reader = ld.transaction(shop)
    assert reader["a"].to_table()["v"].to_pylist() == [10, 10, 10]
    with ld.transaction(shop) as tx:
        tx["a"].update({"v": "0"})
        tx["b"].update({"v": "0"})
    assert reader["b"].to_table()["v"].to_pylist() == [10, 10, 10]
    reader.rollback()


def test_a_conflict_in_one_table_commits_nothing(shop: Path) -> None:
    tx = ld.transaction(shop)
    tx["a"].update({"v": "1"}, where="id = 0")
    tx["b"].update({"v": "1"}, where="id = 0")
    tx.create_table("c", {"x": [1]})
    lance.dataset(str(shop / "b.lance")).update({"v": "2"}, where="id = 0")
    with pytest.raises(CommitConflictError, match="both commits change the same row"):
        tx.commit()
    assert (values(shop, "a"), values(shop, "b")) == ([10, 10, 10], [2, 10, 10])
    assert names(shop) == ["a.lance", "b.lance"]


def test_appends_of_other_writers_are_kept(shop: Path) -> None:
    tx = ld.transaction(shop)
    tx["a"].delete("id = 0")
    tx["b"].insert({"id": [3], "v": [3]})
    for name in ("a", "b"):
        lance.write_dataset(pa.table({"id": [8], "v": [8]}), str(shop / f"{name}.lance"), mode="append")
    assert tx.commit() == {"a": 3, "b": 3}
    assert (values(shop, "a"), values(shop, "b")) == ([10, 10, 8], [10, 10, 10, 3, 8])


def test_a_partly_committed_transaction_names_the_tables(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lance_duck.groups import finish

    publish = finish.publish_staged

    def overtaken(staged: Any, *arguments: Any) -> Any:
        version = publish(staged, *arguments)
        if staged.base.uri.endswith("a.lance"):
            lance.write_dataset(pa.table({"id": [8], "v": [8]}), str(shop / "a.lance"), mode="append")
            lance.dataset(str(shop / "b.lance")).update({"v": "2"}, where="id = 0")
        return version

    monkeypatch.setattr(finish, "publish_staged", overtaken)
    tx = ld.transaction(shop)
    tx["a"].delete("id = 0")
    tx["b"].delete("id = 0")
    with pytest.raises(PartlyCommittedError, match=r"in: a\.lance \(version 2\); not in: b\.lance"):
        tx.commit()
    assert (values(shop, "a"), values(shop, "b")) == ([10, 10, 8], [2, 10, 10])


def test_a_commit_without_an_answer_is_finished_by_the_next_reader(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pending, "finish", killed)
    tx = ld.transaction(shop)
    tx["a"].delete("id = 0")
    tx["b"].delete("id = 0")
    with pytest.raises(KeyboardInterrupt):
        tx.commit()
    monkeypatch.undo()
    assert values(shop, "a") == [10, 10, 10]
    settle(CommitLog(str(shop)), wait=0)
    assert (values(shop, "a"), values(shop, "b")) == ([10, 10], [10, 10])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda tx: tx["a"].create_scalar_index("id", "BTREE"), "CreateIndex"),
        (lambda tx: tx["a"].optimize.compact_files(), "Rewrite|ReserveFragments|transaction"),
        (lambda tx: tx["a"].restore(), "Restore|transaction"),
        (lambda tx: tx["a"].tags.create("x"), "commit the transaction"),
        (lambda tx: tx["a"].cleanup_old_versions(), "open transaction"),
        (
            lambda tx: tx["a"].insert({"id": [1], "v": [1]}, commit_message="mine"),
            "pass the message to the transaction",
        ),
        (lambda tx: tx.rename_table("a", "s$a"), "another namespace"),
    ],
)
def test_what_cannot_be_part_of_a_transaction_is_refused(shop: Path, change: Any, words: str) -> None:
    ld.dataset(shop / "a.lance").insert({"id": [3], "v": [3]})
    with ld.transaction(shop) as tx, pytest.raises(UnsupportedError, match=words):
        change(tx)
    assert ld.dataset(shop / "a.lance").version == 2


def test_names_that_exist_or_do_not_are_errors(shop: Path) -> None:
    with ld.transaction(shop) as tx:
        with pytest.raises(NotFoundError):
            tx["nosuch"]
        with pytest.raises(AlreadyExistsError):
            tx.create_table("a", {"x": [1]})
        with pytest.raises(AlreadyExistsError):
            tx.rename_table("a", "b")
        tx.drop_table("a")
        with pytest.raises(NotFoundError):
            tx["a"]
        with pytest.raises(NotFoundError):
            tx.drop_table("a")
        tx.rollback()
    assert names(shop) == ["a.lance", "b.lance"]


def test_an_ended_transaction_accepts_nothing(shop: Path) -> None:
    with ld.transaction(shop) as tx:
        table = tx["a"]
        table.delete("id = 0")
    for call in (tx.commit, tx.rollback, lambda: tx["a"], lambda: tx.drop_table("a")):
        with pytest.raises(InvalidInputError, match="has ended"):
            call()
    table.delete("id = 1")  # an ordinary change now
    assert values(shop, "a") == [10]


def test_a_dropped_table_that_others_changed_is_a_conflict(shop: Path) -> None:
    tx = ld.transaction(shop)
    tx.drop_table("a")
    tx["b"].delete("id = 0")
    lance.write_dataset(pa.table({"id": [8], "v": [8]}), str(shop / "a.lance"), mode="append")
    with pytest.raises(CommitConflictError, match="the transaction drops"):
        tx.commit()
    assert (values(shop, "a"), values(shop, "b")) == ([10, 10, 10, 8], [10, 10, 10])


def test_object_stores_commit_rows_and_refuse_folders() -> None:
    root = "memory://folder-transactions"
    for name in ("a", "b"):
        ld.write_dataset({"id": [0, 1], "v": [1, 1]}, f"{root}/{name}.lance")
    with ld.transaction(root) as tx:
        tx["a"].delete("id = 0")
        tx["b"].insert({"id": [2], "v": [2]})
        tx.create_namespace("s")
        tx.create_table("s$t", {"x": [1]})
        for refused in (
            lambda: tx.create_table("c", {"x": [1]}),
            lambda: tx.drop_table("a"),
            lambda: tx.rename_table("a", "z"),
        ):
            with pytest.raises(UnsupportedError, match="object store"):
                refused()
    assert [ld.dataset(f"{root}/{name}.lance").count_rows() for name in ("a", "b")] == [1, 3]
    assert ld.DirectoryNamespace(root).open_table("s$t").count_rows() == 1


REPLACED = "DROP TABLE b; CREATE TABLE b AS SELECT 1 AS id, 'precious' AS k"


@pytest.fixture
def schemas(shop: Path) -> Path:
    with ld.connect(shop) as con:
        con.execute("CREATE SCHEMA s; CREATE TABLE s.b AS SELECT 1 AS id; CREATE TABLE s.c AS SELECT 2 AS id")
    return shop


@pytest.mark.parametrize(
    ("change", "theirs"),
    [
        (lambda tx: tx.drop_table("b"), REPLACED),
        (lambda tx: tx.rename_table("b", "b2"), REPLACED),
        (lambda tx: tx.drop_table("b"), "ALTER TABLE b RENAME TO kept; CREATE TABLE b AS SELECT 1 AS id"),
        (lambda tx: tx.drop_table("s$b"), "DROP TABLE s.b; CREATE TABLE s.b AS SELECT 3 AS id"),
        (
            lambda tx: tx.drop_table("s$b"),
            "ALTER TABLE s.b RENAME TO t; ALTER TABLE s.c RENAME TO b; ALTER TABLE s.t RENAME TO c",
        ),
        (lambda tx: tx.rename_table("s$b", "s$b2"), "DROP TABLE s.b; CREATE TABLE s.b AS SELECT 3 AS id"),
        (lambda tx: tx.drop_namespace("s", cascade=True), "INSERT INTO s.b VALUES (9)"),
        (lambda tx: tx.drop_namespace("s", cascade=True), "CREATE TABLE s.new AS SELECT 1 AS id"),
        (lambda tx: tx.drop_table("b"), "INSERT INTO b VALUES (9, 9)"),
    ],
)
def test_tables_that_others_have_replaced_or_changed_are_not_dropped(schemas: Path, change: Any, theirs: str) -> None:
    tx = ld.transaction(schemas)
    change(tx)
    tx["a"].delete("id = 0")
    with ld.connect(schemas) as con:
        con.execute(theirs)
        before = con.execute("SELECT schema_name, table_name FROM duckdb_tables() ORDER BY ALL").fetchall()
        with pytest.raises(CommitConflictError):
            tx.commit()
        assert con.execute("SELECT schema_name, table_name FROM duckdb_tables() ORDER BY ALL").fetchall() == before
    assert values(schemas, "a") == [10, 10, 10]


def test_datasets_of_a_refused_transaction_read_the_version_before(shop: Path) -> None:
    tx = ld.transaction(shop)
    a = tx["a"]
    a.update({"v": "5"})
    tx["b"].delete("id = 1")
    ld.dataset(shop / "a.lance").update({"v": "9"})
    with pytest.raises(CommitConflictError):
        tx.commit()
    assert a.to_table()["v"].to_pylist() == [10, 10, 10]
    a.insert({"id": [3], "v": [3]})  # an ordinary change now
    assert values(shop, "a") == [9, 9, 9, 3]


def test_a_dropped_table_accepts_no_changes(shop: Path) -> None:
    with ld.transaction(shop) as tx:
        b = tx["b"]
        tx.drop_table("b")
        with pytest.raises(InvalidInputError, match="dropped"):
            b.insert({"id": [1], "v": [1]})
    assert names(shop) == ["a.lance"]


def test_branches_and_clones_need_committed_versions(shop: Path) -> None:
    with ld.transaction(shop) as tx:
        tx["a"].insert({"id": [3], "v": [3]})
        with pytest.raises(UnsupportedError, match="committed version"):
            tx["a"].create_branch("x")
        with pytest.raises(UnsupportedError, match="committed version"):
            tx["a"].shallow_clone(shop / "c.lance")
    assert ld.dataset(shop / "a.lance").branches.list() == {}


def test_write_dataset_adds_rows_within_the_transaction(shop: Path) -> None:
    with ld.transaction(shop) as tx:
        ld.write_dataset({"id": [3], "v": [3]}, tx["a"], mode="append")
        assert tx["a"].count_rows() == 4
        tx["a"].insert({"id": [4], "v": [4]})
        assert values(shop, "a") == [10, 10, 10]
        tx["b"].delete("id = 0")
    assert values(shop, "a") == [10, 10, 10, 3, 4]


def test_two_datasets_of_one_table_do_not_overwrite_each_other(shop: Path) -> None:
    with ld.transaction(shop) as tx:
        a = tx["a"]
        ld.write_dataset({"id": [3], "v": [3]}, a, mode="append")
        with pytest.raises(InvalidInputError, match="open the table again"):
            a.insert({"id": [4], "v": [4]})
        tx.rollback()
    assert values(shop, "a") == [10, 10, 10]


def test_new_and_renamed_tables_are_usable_after_the_commit(shop: Path) -> None:
    with ld.transaction(shop) as tx:
        new, a = tx.create_table("new", {"x": [1]}), tx["a"]
        tx.rename_table("a", "z")
        a.delete("id = 0")
    new.insert({"x": [2]})
    a.insert({"id": [8], "v": [8]})
    assert (new.uri, a.uri) == (str(shop / "new.lance"), str(shop / "z.lance"))
    assert (ld.dataset(new.uri).count_rows(), values(shop, "z")) == (2, [10, 10, 8])


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda tx: tx.create_table("nope$t", {"x": [1]}), NotFoundError),
        (lambda tx: tx.create_namespace("s"), AlreadyExistsError),
        (lambda tx: tx.drop_namespace("s"), ReferencedError),
        (lambda tx: tx.drop_namespace("nope"), NotFoundError),
        (lambda tx: tx.create_table("v", {"x": [1]}), AlreadyExistsError),
    ],
)
def test_names_that_do_not_fit_are_errors_at_the_call(schemas: Path, change: Any, error: type[Exception]) -> None:
    with ld.connect(schemas) as con:
        con.execute("CREATE VIEW v AS SELECT 1 AS x")
    with ld.transaction(schemas) as tx:
        with pytest.raises(error):
            change(tx)
        tx["a"].delete("id = 0")
    assert values(schemas, "a") == [10, 10]


def test_a_namespace_is_dropped_and_created_in_one_transaction(schemas: Path) -> None:
    with ld.transaction(schemas) as tx:
        tx.drop_namespace("s", cascade=True)
        tx.create_namespace("s")
        tx.create_table("s$n", {"x": [1]})
    assert ld.DirectoryNamespace(str(schemas)).list_tables("s") == ["n"]


@pytest.mark.parametrize(
    ("theirs", "name"),
    [
        ("DROP TABLE b; CREATE TABLE b AS SELECT 7 AS id", "b"),
        ("ALTER TABLE b RENAME TO moved; UPDATE a SET v = 0", "b"),
        ("ALTER TABLE b RENAME TO moved; UPDATE a SET v = 0", "moved"),
        ("DROP TABLE s.b; CREATE TABLE s.b AS SELECT 7 AS id; UPDATE a SET v = 0", "s$b"),
        (
            "ALTER TABLE s.b RENAME TO t; ALTER TABLE s.c RENAME TO b; ALTER TABLE s.t RENAME TO c; UPDATE a SET v = 0",
            "s$b",
        ),
    ],
)
def test_a_name_that_a_later_commit_changed_is_not_opened(schemas: Path, theirs: str, name: str) -> None:
    tx = ld.transaction(schemas)
    assert tx["a"].to_table()["v"].to_pylist() == [10, 10, 10]
    with ld.connect(schemas) as con:
        con.execute(f"BEGIN; {theirs}; COMMIT")
    with pytest.raises(CommitConflictError, match=r"renamed or dropped tables|changed names"):
        tx[name]
    tx.rollback()


def test_a_transaction_opens_tables_that_later_commits_do_not_rename(schemas: Path) -> None:
    tx = ld.transaction(schemas)
    assert tx["a"].count_rows() == 3
    with ld.connect(schemas) as con:
        con.execute("BEGIN; ALTER TABLE b RENAME TO moved; UPDATE s.b SET id = 8; COMMIT")
    assert tx["s$b"].to_table()["id"].to_pylist() == [1]
    tx.rollback()
