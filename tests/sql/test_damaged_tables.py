"""A table with a damaged manifest is listed, raises its own error, and can be dropped and replaced."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from corruption.containers import read_manifest, with_manifest
from support.command_line import run

import lance_duck as ld
from lance_duck.duck.changes.tables import write_options
from lance_duck.errors import CorruptError, FormatError, NotFoundError, StoreError, TableWarning, UnsupportedError

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
WITHOUT_COLUMNS = [
    "SELECT count(*) FROM bad",
    "SELECT count(*), 1 FROM lance.bad WHERE true",
    "SELECT count(*) FROM lance_scan('bad.lance')",
    "SELECT 1 FROM bad",
    "SELECT 1 FROM bad LIMIT 1",
    "SELECT exists(FROM bad)",
    "SELECT (SELECT count(*) FROM bad)",
    "SELECT id FROM good WHERE exists (SELECT 1 FROM bad)",
    "SELECT id FROM good WHERE 1 IN (SELECT 1 FROM bad)",
    "SELECT good.id FROM good CROSS JOIN bad",
    "SELECT good.id FROM good, bad",
    "SELECT good.id FROM good LEFT JOIN bad ON true",
    "WITH c AS (SELECT 1 FROM bad) SELECT count(*) FROM c",
    "SELECT 1 FROM bad UNION ALL SELECT id FROM good",
    "SELECT id FROM good LIMIT (SELECT count(*) FROM bad)",
    "FROM query('SELECT count(*) FROM bad')",
    "FROM query_table('bad')",
    "SELECT nope FROM bad",
    "SUMMARIZE bad",
    "EXPLAIN SELECT 1 FROM bad",
    "EXPLAIN ANALYZE SELECT 1 FROM bad",
    "PREPARE p AS SELECT count(*) FROM bad",
    "CREATE VIEW memory.main.v AS SELECT count(*) AS n FROM lance.bad",
    "CREATE TABLE memory.main.n AS SELECT 1 AS a FROM bad",
    "COPY (SELECT 1 FROM bad) TO 'new.parquet'",
    "COPY (SELECT 1 AS a FROM bad) TO 'new.lance'",
    "CREATE TABLE lance.new AS SELECT 5 AS z FROM bad",
    "CREATE OR REPLACE TABLE lance.good AS SELECT 5 AS z FROM bad",
    "INSERT INTO good SELECT 99 FROM bad",
    "DELETE FROM good WHERE exists (SELECT 1 FROM bad)",
    "DELETE FROM good USING bad",
    "UPDATE good SET id = 99 FROM bad",
    "UPDATE good SET id = (SELECT count(*) FROM bad)",
    "MERGE INTO good USING (SELECT 7 AS k FROM bad) AS s ON id = k WHEN NOT MATCHED THEN INSERT VALUES (k)",
]
"""Statements that read no column of `bad`."""
ROUTES: dict[str, Callable[[ld.Connection], Any]] = {
    "sql": lambda con: con.sql("SELECT count(*) FROM bad").fetchall(),
    "table": lambda con: con.table("bad").count("*").fetchall(),
    "qualified table": lambda con: con.table("lance.bad").count("*").fetchall(),
    "view": lambda con: con.view("bad").count("*").fetchall(),
    "cursor": lambda con: con.cursor().execute("SELECT count(*) FROM bad").fetchall(),
    "parsed": lambda con: [con.execute(each) for each in con.extract_statements("SELECT 1 FROM bad")],
    "parameters": lambda con: con.execute("SELECT ? FROM bad", [1]).fetchall(),
    "many": lambda con: con.executemany("INSERT INTO good SELECT ? FROM bad", [[1], [2]]),
    "read-only": lambda _: ld.connect(".", read_only=True).execute("SELECT count(*) FROM bad"),
    "by path": lambda con: con.execute("SELECT count(*) FROM 'bad.lance'").fetchall(),
    "several": lambda con: con.execute("BEGIN; INSERT INTO good SELECT 99 FROM bad; COMMIT"),
    "function": lambda con: con.execute("SELECT count(*) FROM lance_scan('bad')").fetchall(),
}


def attached(con: ld.Connection) -> None:
    """Read a table without its columns in an attached folder."""
    con.execute("ATTACH '.' AS other (TYPE lance)")
    con.execute("SELECT count(*) FROM other.bad")


def in_transaction(con: ld.Connection) -> None:
    """Read a table without its columns in a transaction."""
    con.execute("BEGIN")
    con.execute("SELECT count(*) FROM bad")


ROUTES |= {"attached": attached, "transaction": in_transaction}


def with_unknown_flag(text: bytes) -> bytes:
    """Return a manifest that requires an unknown feature of readers."""
    manifest = read_manifest(text)
    manifest.reader_feature_flags |= 1 << 40
    return with_manifest(text, manifest)


def with_broken_message(text: bytes) -> bytes:
    """Return a manifest whose message is not protobuf."""
    message = read_manifest(text).SerializeToString()
    assert message in text
    return text.replace(message, b"\xff" * len(message))


UNREADABLE: dict[str, tuple[Callable[[bytes], bytes], type[FormatError], str]] = {
    "damaged": (DAMAGES["empty"], CorruptError, "manifest is cut short"),
    "not protobuf": (with_broken_message, CorruptError, "the protobuf message is corrupt"),
    "unknown flag": (with_unknown_flag, UnsupportedError, "reader feature flags 1099511627776"),
}


@pytest.fixture(params=UNREADABLE)
def unreadable(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, str]:
    """The error of `bad` in a folder with `good`."""
    monkeypatch.chdir(tmp_path)
    for name in ("good", "bad"):
        ld.write_dataset({"id": [1, 2]}, f"{name}.lance", storage_options={"checksums": "false"})
    change, kind, message = UNREADABLE[request.param]
    for manifest in Path("bad.lance", "_versions").glob("*.manifest"):
        manifest.write_bytes(change(manifest.read_bytes()))
    return kind, rf"bad\.lance/_versions/.*{message}"


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
    assert con.execute("SELECT count(*) FROM duckdb_tables() WHERE database_name = 'lance'").fetchall() == [(2,)]
    for sql in MENTIONS:
        with pytest.raises(CorruptError, match=r"bad\.lance/_versions/.* manifest is cut short"):
            con.execute(sql)
    with pytest.raises(CorruptError):
        con.sql("SELECT id FROM bad").fetchall()
    with pytest.raises(duckdb.BinderException, match="nope"):
        con.execute("SELECT nope FROM good")
    con.execute("CREATE TEMP TABLE bad AS SELECT 5 AS x")
    assert con.execute("SELECT x FROM bad").fetchall() == [(5,)]
    with pytest.raises(duckdb.BinderException, match="nope"):
        con.execute("SELECT nope FROM bad")


def test_statements_that_read_no_column_raise_the_error_and_change_nothing(unreadable: tuple[Any, str]) -> None:
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    with ld.connect(".") as con:
        for sql in WITHOUT_COLUMNS:
            for method in (con.execute, con.sql):
                with pytest.raises(unreadable[0], match=unreadable[1]):
                    method(sql)
    for name, route in ROUTES.items():
        with ld.connect(".") as con, pytest.raises(unreadable[0], match=unreadable[1]):
            raise AssertionError(f"{name}: {route(con)}")
    done = run("sql", ".", "SELECT count(*) FROM bad")
    assert (done.exit_code, done.stdout, re.search(unreadable[1], done.stderr) is not None) == (1, "", True)
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before
    with ld.connect(".") as con:
        assert con.execute("SELECT count(*) FROM good").fetchall() == [(2,)]
        comments = con.execute("SELECT comment FROM duckdb_tables() WHERE table_name = 'bad'").fetchall()
        assert [re.search(unreadable[1], comment) is not None for (comment,) in comments] == [True]


def test_the_error_of_a_damaged_manifest_names_remedies(con: ld.Connection) -> None:
    restore = r"restore the file from a copy, or read another version with AT .* DROP TABLE and CREATE OR"
    for sql in ("SELECT count(*) FROM bad", "INSERT INTO bad VALUES (1)", "FROM 'bad.lance'"):
        with pytest.raises(CorruptError, match=restore):
            con.execute(sql)
    exists = r"table bad exists, but cannot be opened: manifest is .* DROP TABLE or CREATE OR REPLACE TABLE removes it$"
    for clause in ("(a INT)", "AS SELECT 1 AS a", "AS FROM good"):
        for condition in ("", "IF NOT EXISTS"):
            with pytest.raises(CorruptError, match=exists):
                con.execute(f"CREATE TABLE {condition} lance.bad {clause}")
    with pytest.raises(UnsupportedError, match=r"^(?!.*exists)"):
        con.execute("CREATE TABLE lance.new AS SELECT 1::BIT AS a")


def test_older_versions_of_a_damaged_table_are_read(con: ld.Connection) -> None:
    shutil.rmtree("bad.lance")
    ld.write_dataset({"id": [1]}, "bad.lance").update({"id": "2"})
    newest = min(Path("bad.lance", "_versions").glob("*.manifest"))
    newest.write_bytes(b"")
    with pytest.raises(CorruptError):
        con.execute("FROM bad")
    assert con.execute("FROM bad AT (VERSION => 1)").fetchall() == [(1,)]
    assert ld.dataset("bad.lance", version=1).to_table().to_pydict() == {"id": [1]}
    newest.unlink()
    assert con.execute("FROM bad").fetchall() == [(1,)]
    con.execute("INSERT INTO bad VALUES (3)")
    assert con.execute("FROM bad").fetchall() == [(1,), (3,)]
    assert con.execute("SELECT comment FROM duckdb_tables() WHERE table_name = 'bad'").fetchall() == [(None,)]


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
