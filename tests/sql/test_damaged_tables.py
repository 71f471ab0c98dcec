"""A table with a damaged manifest is listed, raises its own error, and can be dropped and replaced."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import lance_duck as ld
from lance_duck.duck.changes.tables import write_options
from lance_duck.errors import CorruptError, NotFoundError, StoreError, TableWarning

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda text: text[: len(text) // 2],
    "empty": lambda text: b"",
    "junk": lambda text: b"xx",
    "other version": lambda text: text[:-8] + b"\xff\xff\xff\xff" + text[-4:],
}
MENTIONS = [
    "FROM bad",
    "SELECT id FROM bad",
    "SELECT id FROM lance.bad WHERE id > 1",
    "SELECT * FROM good JOIN bad USING (id)",
    "INSERT INTO bad VALUES (1)",
    "DELETE FROM bad",
    "UPDATE bad SET id = 2",
    "DESCRIBE bad",
    "ALTER TABLE bad ADD COLUMN x INT",
    "CREATE TABLE lance.bad AS SELECT 1 AS a",
    "CREATE OR REPLACE TABLE lance.bad AS FROM bad",
    "EXPORT DATABASE 'out'",
]


@pytest.fixture
def con(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ld.Connection:
    """The tables `good` and `bad`, which `damage` damages."""
    monkeypatch.chdir(tmp_path)
    for name in ("good", "bad"):
        ld.write_dataset({"id": [1, 2]}, tmp_path / f"{name}.lance")
    damage("empty")
    return ld.connect(tmp_path)


def damage(kind: str) -> None:
    """Damage all manifests of `bad`."""
    for manifest in Path("bad.lance", "_versions").glob("*.manifest"):
        manifest.write_bytes(DAMAGES[kind](manifest.read_bytes()))


def tables(con: ld.Connection) -> list[str]:
    """The listed tables."""
    return [name for (name,) in con.execute("SHOW TABLES").fetchall()]


def test_a_damaged_table_is_listed_and_raises_its_own_error(con: ld.Connection) -> None:
    assert tables(con) == ["bad", "good"]
    assert con.execute("SELECT count(*) FROM duckdb_views() WHERE database_name = 'lance'").fetchall() == [(2,)]
    for sql in MENTIONS:
        with pytest.raises(CorruptError, match=r"bad\.lance/_versions/.* manifest is cut short"):
            con.execute(sql)
    with pytest.raises(CorruptError):
        con.sql("SELECT id FROM bad").fetchall()
    with pytest.raises(duckdb.BinderException, match="nope"):
        con.execute("SELECT nope FROM good")
    con.execute("CREATE TABLE memory.main.bad AS SELECT 5 AS x")
    assert con.execute("SELECT x FROM bad").fetchall() == [(5,)]
    with pytest.raises(duckdb.BinderException, match="nope"):
        con.execute("SELECT nope FROM bad")


@pytest.mark.parametrize("kind", DAMAGES)
@pytest.mark.parametrize(
    "sql",
    ["DROP TABLE {}", "CREATE OR REPLACE TABLE {} AS SELECT 7 AS a", "COPY (SELECT 7 AS a) TO 'bad.lance'"],
)
@pytest.mark.parametrize("name", ["lance.bad", "'bad.lance'"])
def test_a_damaged_table_is_dropped_and_replaced(
    tmp_path: Path, con: ld.Connection, kind: str, sql: str, name: str
) -> None:
    shutil.rmtree("bad.lance")
    ld.write_dataset({"id": [1]}, "bad.lance").update({"id": "2"})
    damage(kind)
    con.execute(sql.format(name))
    if sql.startswith("DROP"):
        assert (tables(con), Path("bad.lance").exists()) == (["good"], False)
    else:
        assert con.execute("FROM bad").fetchall() == [(7,)]
        assert ld.dataset("bad.lance").version == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.lance", "good.lance"][sql.startswith("DROP") :]


def test_a_replacement_that_fails_keeps_the_damaged_files(con: ld.Connection) -> None:
    before = sorted(Path().rglob("*"))
    with pytest.raises(duckdb.InvalidInputException, match="late"):
        con.execute("CREATE OR REPLACE TABLE lance.bad AS SELECT error('late') AS a")
    assert sorted(Path().rglob("*")) == before
    assert tables(con) == ["bad", "good"]


@pytest.mark.parametrize("query", ["SELECT 7 AS a", "SELECT error('late') AS a"])
@pytest.mark.parametrize("sql", ["CREATE OR REPLACE TABLE lance.bad AS {}", "COPY ({}) TO 'bad.lance/'"])
def test_a_link_to_a_damaged_table_stays_and_its_target_is_replaced(con: ld.Connection, sql: str, query: str) -> None:
    Path("elsewhere").mkdir()
    Path("bad.lance").rename("elsewhere/target")
    Path("bad.lance").symlink_to("elsewhere/target")
    before = sorted(Path("elsewhere").rglob("*"))
    if "late" in query:
        with pytest.raises(duckdb.InvalidInputException, match="late"):
            con.execute(sql.format(query))
        assert sorted(Path("elsewhere").rglob("*")) == before
    else:
        con.execute(sql.format(query))
        assert con.execute("FROM bad").fetchall() == [(7,)]
    assert Path("bad.lance").readlink() == Path("elsewhere/target")
    assert [path.name for path in Path("elsewhere").iterdir()] == ["target"]
    assert sorted(path.name for path in Path().iterdir()) == ["bad.lance", "elsewhere", "good.lance"]


def test_a_replacement_stays_if_the_damaged_files_cannot_be_removed(
    con: ld.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StoreError("read-only")

    monkeypatch.setattr(write_options, "drop_table", fail)
    with pytest.warns(TableWarning, match=r"old files remain in .*bad\.lance#.*read-only"):
        con.execute("CREATE OR REPLACE TABLE lance.bad AS SELECT 7 AS a")
    assert con.execute("FROM bad").fetchall() == [(7,)]


def test_a_folder_with_other_files_is_never_dropped(con: ld.Connection) -> None:
    Path("bad.lance", "mine.txt").write_text("mine")
    Path("folder.lance", "_versions").mkdir(parents=True)
    before = sorted(Path().rglob("*"))
    for sql in ("DROP TABLE bad", "DROP TABLE 'bad.lance'", "CREATE OR REPLACE TABLE lance.bad AS SELECT 1 AS a"):
        with pytest.raises(NotFoundError, match=r"nothing was dropped: .* found a damaged manifest, and mine\.txt"):
            con.execute(sql)
    with pytest.raises(NotFoundError):
        con.execute("DROP TABLE 'folder.lance'")
    assert sorted(Path().rglob("*")) == before
    assert "folder" not in tables(con)


def test_a_restored_table_is_read_at_once(con: ld.Connection) -> None:
    assert tables(con) == ["bad", "good"]
    shutil.rmtree("bad.lance")
    ld.write_dataset({"id": [9]}, "bad.lance")
    assert con.execute("SELECT id FROM bad").fetchall() == [(9,)]
    assert con.execute("SELECT column_name FROM (DESCRIBE bad)").fetchall() == [("id",)]
