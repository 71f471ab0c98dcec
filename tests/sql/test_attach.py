"""ATTACH and DETACH of folders of Lance tables, and names in them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import (
    AlreadyExistsError,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    UnsupportedError,
)

Connect = Callable[..., ld.Connection]


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Tables `t` in `home` (id 0), in `one` (1, 2) and in `two` (3; 4 was deleted in version 2), and `u` in `two`."""
    for folder, ids in (("home", [0]), ("one", [1, 2]), ("two", [3, 4])):
        ld.write_dataset({"id": ids, "s": [folder] * len(ids)}, tmp_path / folder / "t.lance")
    ld.dataset(tmp_path / "two" / "t.lance").delete("id = 4")
    ld.write_dataset({"x": [9]}, tmp_path / "two" / "u.lance")
    return tmp_path


@pytest.fixture
def con(folders: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> ld.Connection:
    """Connected to `home`, with `one` and `two` attached."""
    monkeypatch.chdir(folders)
    con = connect(folders / "home")
    assert con.execute("ATTACH 'one' (TYPE lance)").fetchall() == []
    con.execute("ATTACH DATABASE 'two' AS two (TYPE 'LANCE')")
    return con


def ids(con: ld.Connection, table: str) -> list[int]:
    return [row[0] for row in con.execute(f"SELECT id FROM {table} ORDER BY id").fetchall()]


def test_tables_of_several_folders_have_names(con: ld.Connection) -> None:
    assert [ids(con, name) for name in ("t", "lance.t", "one.t", "ONE.main.T", "two.t")] == [
        [0],
        [0],
        [1, 2],
        [1, 2],
        [3],
    ]
    assert con.execute("FROM one.t JOIN two.t AS b ON one.t.id + 2 = b.id SELECT one.t.s, b.s").fetchall() == [
        ("one", "two")
    ]
    assert con.sql("SELECT count(*) FROM two.t").fetchall() == [(1,)]
    assert con.table("one.t").fetchall() == [(1, "one"), (2, "one")]


def test_time_travel_is_that_of_the_named_table(con: ld.Connection) -> None:
    assert ids(con, "two.t AT (VERSION => 1)") == ids(con, "lance_scan('two.t', version := 1)") == [3, 4]
    con.execute("USE two")
    assert ids(con, "t AT (VERSION => 1)") == ids(con, "main.t AT (VERSION => 1)") == [3, 4]


def test_what_is_attached_is_listed_and_described_by_duckdb(con: ld.Connection) -> None:
    assert con.execute("SHOW TABLES FROM two").fetchall() == [("t",), ("u",)]
    assert {("lance",), ("one",), ("two",)} <= set(con.execute("SHOW DATABASES").fetchall())
    assert [row[:3] for row in con.execute("SHOW ALL TABLES").fetchall()] == [
        ("lance", "main", "t"),
        ("one", "main", "t"),
        ("two", "main", "t"),
        ("two", "main", "u"),
    ]
    assert [row[:2] for row in con.execute("DESCRIBE one.t").fetchall()] == [("id", "BIGINT"), ("s", "VARCHAR")]
    assert [row[2:4] for row in con.execute("SUMMARIZE one.t").fetchall()] == [("1", "2"), ("one", "one")]
    listed = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = 'two' ORDER BY 2"
    assert con.execute(listed).fetchall() == [("main", "t"), ("main", "u")]


def test_statements_change_the_table_of_the_database_that_they_name(con: ld.Connection, folders: Path) -> None:
    con.execute("INSERT INTO one.t SELECT id + 7, s FROM two.t")
    assert con.execute(
        "UPDATE one.main.t SET s = upper(s) WHERE id = (SELECT min(id) FROM one.t) RETURNING *"
    ).fetchall() == [(1, "ONE")]
    con.execute("DELETE FROM one.t WHERE id IN (SELECT id - 1 FROM two.t)")
    con.execute("MERGE INTO one.t USING two.t AS q ON one.t.id = q.id WHEN NOT MATCHED THEN INSERT VALUES (q.id, q.s)")
    con.execute("ALTER TABLE one.t ADD COLUMN z INTEGER DEFAULT 5")
    assert con.execute("FROM one.t ORDER BY id").fetchall() == [(1, "ONE", 5), (3, "two", 5), (10, "two", 5)]
    assert [ids(con, "t"), ids(con, "two.t")] == [[0], [3]]
    con.execute("TRUNCATE one.t")
    assert ld.dataset(folders / "one" / "t.lance").count_rows() == 0


def test_tables_are_made_and_dropped_in_the_folder_of_the_database(con: ld.Connection, folders: Path) -> None:
    con.execute("CREATE TABLE one.fresh AS SELECT 1 AS a")
    con.execute("CREATE TABLE two.main.fresh (b INTEGER)")
    assert con.execute("FROM one.fresh").fetchall() == [(1,)]
    assert con.execute("FROM two.fresh").fetchall() == []
    con.execute("DROP TABLE one.fresh")
    assert not (folders / "one" / "fresh.lance").exists()
    assert (folders / "two" / "fresh.lance").is_dir()
    with pytest.raises(UnsupportedError, match="expected main"):
        con.execute("CREATE TABLE one.other.fresh AS SELECT 1 AS a")
    for sql in ("CREATE SCHEMA one.other", "DROP SCHEMA one.main CASCADE", "CREATE SCHEMA IF NOT EXISTS lance.x"):
        with pytest.raises(UnsupportedError, match="one schema main"):
            con.execute(sql)


@pytest.mark.parametrize("database", ["lance", "one", "lance.main"])
def test_in_a_database_that_is_used_new_tables_are_lance_tables(
    con: ld.Connection, folders: Path, database: str
) -> None:
    con.execute(f"USE {database}")
    con.execute("CREATE TABLE foo AS SELECT 1 AS a")
    con.execute("CREATE TABLE main.bar (a INTEGER)")
    con.execute("INSERT INTO bar FROM foo")
    assert con.execute("FROM bar").fetchall() == [(1,)]
    folder = folders / ("one" if database == "one" else "home")
    assert {"foo.lance", "bar.lance"} <= {path.name for path in folder.iterdir()}
    con.execute("CREATE TEMP TABLE own AS SELECT 2 AS b")
    con.execute("USE memory")
    con.execute("CREATE TABLE own_too AS SELECT 3 AS c")
    assert con.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall() == [("own",), ("own_too",)]


def test_a_used_database_changes_what_names_mean(con: ld.Connection) -> None:
    con.execute("USE two")
    assert ids(con, "t") == [3]
    con.execute("INSERT INTO t VALUES (5, 'new')")
    con.execute("UPDATE main.t SET id = id + 1 WHERE id IN (SELECT max(id) FROM t)")
    assert [ids(con, "t"), ids(con, "lance.t"), ids(con, "one.t")] == [[3, 6], [0], [1, 2]]
    with pytest.raises(duckdb.BinderException, match="default database"):
        con.execute("DETACH two")
    con.execute("USE memory")
    with pytest.raises(duckdb.CatalogException, match=r"Did you mean"):
        con.execute("FROM t")


def test_transactions_are_of_one_table_whatever_others_are_called(con: ld.Connection, folders: Path) -> None:
    con.execute("BEGIN")
    con.execute("INSERT INTO one.t VALUES (7, 'x')")
    assert [ids(con, "one.t"), ids(con, "t"), ids(con, "two.t")] == [[1, 2, 7], [0], [3]]
    con.execute("UPDATE one.main.t SET id = 8 WHERE id = 7")
    with pytest.raises(UnsupportedError, match="one Lance table"):
        con.execute("INSERT INTO two.t VALUES (7, 'x')")
    con.execute("ROLLBACK")
    con.execute("BEGIN; INSERT INTO two.t VALUES (7, 'x'); DELETE FROM two.t WHERE id = 3; COMMIT")
    assert [ids(con, "one.t"), ids(con, "two.t")] == [[1, 2], [7]]
    assert ld.dataset(folders / "two" / "t.lance").version == 3
    for sql in ("ATTACH 'one' AS other (TYPE lance)", "DETACH one"):
        with pytest.raises(UnsupportedError, match="transaction"):
            con.execute(f"BEGIN; {sql}")
        con.execute("ROLLBACK")


def test_tables_that_come_and_go_are_noticed(con: ld.Connection, folders: Path) -> None:
    ld.write_dataset({"id": [5]}, folders / "one" / "late.lance")
    assert ids(con, "one.late") == [5]
    shutil.rmtree(folders / "one" / "late.lance")
    with pytest.raises(duckdb.CatalogException):
        con.execute("FROM one.late")


def test_a_folder_that_is_gone_leaves_other_tables_alone(con: ld.Connection, folders: Path) -> None:
    shutil.rmtree(folders / "two")
    assert [ids(con, "t"), ids(con, "one.t")] == [[0], [1, 2]]
    for _ in range(2):
        with pytest.raises(NotFoundError, match="no such folder"):
            con.execute("FROM two.u")
    con.execute("DETACH two")
    with pytest.raises(duckdb.CatalogException):
        con.execute("FROM two.u")


READS = (
    "FROM new.t",
    "FROM new.main.t",
    "DESCRIBE new.t",
    "INSERT INTO new.t VALUES (1)",
    "DELETE FROM new.t",
    "UPDATE new.t SET id = 1",
    "DROP TABLE new.t",
    "ALTER TABLE new.t ADD COLUMN x INTEGER",
)


@pytest.mark.parametrize("sql", READS)
def test_reading_from_a_folder_that_does_not_exist_says_so(con: ld.Connection, folders: Path, sql: str) -> None:
    con.execute("ATTACH 'new/deep' AS new (TYPE lance)")
    for run in (con.execute, con.sql):
        with pytest.raises(NotFoundError, match="new/deep: no such folder"):
            run(sql)
    with pytest.raises(duckdb.CatalogException, match="unrelated"):
        con.execute("FROM unrelated")
    assert not (folders / "new").exists()


def test_the_first_table_makes_the_folder(con: ld.Connection, folders: Path) -> None:
    con.execute("ATTACH 'new/deep' AS new (TYPE lance)")
    assert con.execute("SELECT count(*) FROM duckdb_views() WHERE database_name = 'new'").fetchone() == (0,)
    con.execute("CREATE TABLE new.t AS SELECT 7 AS id")
    assert ids(con, "new.t") == ids(con.cursor(), "new.t") == [7]
    assert [each.name for each in (folders / "new" / "deep").iterdir()] == ["t.lance"]
    with pytest.raises(duckdb.CatalogException):
        con.execute("FROM new.u")


def test_a_folder_that_somebody_else_makes_is_noticed(con: ld.Connection, folders: Path) -> None:
    con.execute("ATTACH 'new' AS new (TYPE lance); ATTACH 'memory://new_in_memory' AS other (TYPE lance)")
    ld.write_dataset({"id": [3]}, folders / "new" / "t.lance")
    ld.write_dataset({"id": [4]}, "memory://new_in_memory/t.lance")
    assert [ids(con, "new.t"), ids(con, "other.t")] == [[3], [4]]


def test_a_change_that_fails_makes_no_folder(con: ld.Connection, folders: Path) -> None:
    con.execute("ATTACH 'new' AS new (TYPE lance)")
    with pytest.raises(duckdb.Error):
        con.execute("CREATE TABLE new.t AS SELECT error('no') AS id")
    assert not (folders / "new").exists()


def test_all_cursors_see_what_is_attached(con: ld.Connection, folders: Path) -> None:
    before, after = con.cursor(), con.cursor()
    con.execute("ATTACH 'one' AS third (TYPE lance)")
    after.execute("INSERT INTO third.t VALUES (6, 'c')")
    assert ids(before, "third.t") == ids(con.cursor(), "one.t") == [1, 2, 6]
    before.execute("DETACH third")
    with pytest.raises(duckdb.Error):
        con.execute("FROM third.t")


def test_detached_databases_leave_nothing(con: ld.Connection) -> None:
    con.execute("DETACH DATABASE one")
    assert con.execute("SELECT count(*) FROM duckdb_views() WHERE database_name = 'one'").fetchall() == [(0,)]
    with pytest.raises(duckdb.Error):
        con.execute("FROM one.t")
    con.execute("DETACH DATABASE IF EXISTS one")
    with pytest.raises(duckdb.BinderException, match="not found"):
        con.execute("DETACH one")
    con.execute("ATTACH 'two' AS one (TYPE lance)")
    assert ids(con, "one.t AT (VERSION => 1)") == [3, 4]
    with pytest.raises(UnsupportedError, match="own tables"):
        con.execute("DETACH lance")


def test_a_name_is_attached_again_where_that_is_said(con: ld.Connection) -> None:
    with pytest.raises(AlreadyExistsError, match=r"database .One."):
        con.execute("ATTACH 'two' AS One (TYPE lance)")
    con.execute("ATTACH IF NOT EXISTS 'two' AS one (TYPE lance)")
    assert ids(con, "one.t") == [1, 2]
    with pytest.raises(NotFoundError):
        con.execute("ATTACH OR REPLACE 'nope' AS one (TYPE lance)")
    assert ids(con, "one.t") == [1, 2]
    con.execute("ATTACH OR REPLACE 'two' AS one (TYPE lance)")
    assert ids(con, "one.t") == [3]
    con.execute("ATTACH ':memory:' AS own")
    con.execute("ATTACH OR REPLACE 'two' AS own (TYPE lance)")
    assert ids(con, "own.t") == [3]


CHANGES = [
    "INSERT INTO q.t VALUES (1, 'x')",
    "UPDATE q.t SET id = 1",
    "DELETE FROM q.t",
    "TRUNCATE q.t",
    "MERGE INTO q.t USING (SELECT 1 AS id) u USING (id) WHEN MATCHED THEN DELETE",
    "ALTER TABLE q.t DROP COLUMN s",
    "DROP TABLE q.t",
    "CREATE TABLE q.v AS SELECT 1 AS a",
    "CREATE OR REPLACE TABLE q.t AS SELECT 1 AS a",
    "USE q; CREATE TABLE v (a INTEGER)",
    "CREATE INDEX i ON q.t (id)",
    "OPTIMIZE q.t",
    "CALL lance_compact('q.t')",
    "CALL q.compact(t)",
    "COMMENT ON TABLE q.t IS 'x'",
    "COMMENT ON COLUMN q.main.t.id IS 'x'",
    "COPY q.t FROM 'rows.csv'",
]


@pytest.mark.parametrize("sql", CHANGES)
@pytest.mark.parametrize("options", ["READ_ONLY", "read_only true", "VERSION 1", "TIMESTAMP '2100-01-01'"])
def test_what_is_attached_to_be_read_is_not_changed(con: ld.Connection, folders: Path, options: str, sql: str) -> None:
    con.execute(f"ATTACH 'two' AS q (TYPE lance, {options})")
    with pytest.raises(UnsupportedError, match=r"the database q is attached"):
        con.execute(sql)
    assert ld.dataset(folders / "two" / "t.lance").version == 2
    assert sorted(path.name for path in (folders / "two").iterdir()) == ["t.lance", "u.lance"]
    con.execute("INSERT INTO two.t VALUES (1, 'x')")


def test_a_folder_is_attached_at_a_version(con: ld.Connection, folders: Path) -> None:
    table = ld.dataset(folders / "two" / "t.lance")
    table.tags.create("first", 1)
    moment = table.versions()[0]["timestamp"]
    for options, expected in (("VERSION 1", [3, 4]), ("VERSION 'first'", [3, 4]), ("VERSION 2, READ_ONLY", [3])):
        con.execute(f"ATTACH OR REPLACE 'two' AS q (TYPE lance, {options})")
        assert ids(con, "q.t") == expected
    assert ids(con, "q.t AT (VERSION => 1)") == [3, 4]
    with pytest.raises(LanceDuckError):  # `u` has one version alone
        con.execute("FROM q.u")
    con.execute(f"ATTACH OR REPLACE 'two' AS q (TYPE lance, TIMESTAMP '{moment.isoformat()}')")
    assert ids(con, "q.t") == [3, 4]
    earlier = moment - timedelta(microseconds=1)
    con.execute(f"ATTACH OR REPLACE 'two' AS q (TYPE lance, TIMESTAMP '{earlier.isoformat()}')")
    with pytest.raises(LanceDuckError):
        con.execute("FROM q.t")
    con.execute("ATTACH OR REPLACE 'two' AS q (TYPE lance, TIMESTAMP TIMESTAMP '2100-01-01')")
    assert ids(con, "q.t") == [3]
    table.create_branch("b", 1).insert({"id": [8], "s": ["branch"]})
    con.execute("ATTACH OR REPLACE 'two' AS q (TYPE lance, BRANCH 'b')")
    assert [ids(con, "q.t"), ids(con, "two.t")] == [[3, 4, 8], [3]]
    con.execute("ATTACH OR REPLACE 'two' AS q (TYPE lance, BRANCH b, VERSION 1)")
    assert ids(con, "q.t") == [3, 4]
    with pytest.raises(UnsupportedError, match="another version than the newest"):
        con.execute("DELETE FROM q.t")


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("ATTACH 'nope' AS q (TYPE lance, READ_ONLY)", NotFoundError),
        ("ATTACH 'nope' AS q (TYPE lance, VERSION 1)", NotFoundError),
        ("ATTACH 'nope' AS q (TYPE lance, BRANCH 'b')", NotFoundError),
        ("ATTACH OR REPLACE 'nope' AS one (TYPE lance)", NotFoundError),
        ("ATTACH 'one/t.lance' AS q (TYPE lance)", InvalidInputError),
        ("ATTACH 'a.txt' AS q (TYPE lance)", NotFoundError),
        ("ATTACH '' AS q (TYPE lance)", InvalidInputError),
        ("ATTACH 'one' AS q (TYPE lance, ENDPOINT 'x')", InvalidInputError),
        ("ATTACH 'one' AS q (TYPE lance, READ_ONLY, READ_WRITE)", InvalidInputError),
        ("ATTACH 'one' AS q (TYPE lance, VERSION 1, TIMESTAMP '2020-01-01')", InvalidInputError),
        ("ATTACH 'one' AS q (TYPE lance, TYPE lance)", InvalidInputError),
        ("ATTACH 'one' AS q (TYPE lance, VERSION 1, READ_WRITE)", InvalidInputError),
        ("ATTACH 'one' AS main (TYPE lance)", duckdb.BinderException),
        ("ATTACH 'one' AS temp (TYPE lance)", AlreadyExistsError),
    ],
)
def test_what_cannot_be_attached_is_refused(
    con: ld.Connection, folders: Path, sql: str, error: type[Exception]
) -> None:
    (folders / "a.txt").write_text("no folder", encoding="utf-8")
    with pytest.raises(error):
        con.execute(sql)
    assert {row[0] for row in con.execute("SHOW DATABASES").fetchall()} == {"lance", "memory", "one", "two"}
    assert con.execute("SELECT 1").fetchall() == [(1,)]


def test_databases_of_duckdb_are_attached_as_ever(con: ld.Connection, folders: Path) -> None:
    con.execute(f"ATTACH '{folders}/own.db' AS own")
    con.execute("CREATE SCHEMA own.s")
    con.execute("CREATE TABLE own.s.t AS FROM one.t")
    assert ids(con, "own.s.t") == [1, 2]
    con.execute("DROP SCHEMA own.s CASCADE")
    con.execute("DETACH own")


def test_paths_of_folders_may_be_parameters_and_expressions(con: ld.Connection) -> None:
    con.execute("ATTACH ? AS q (TYPE lance)", ["two"])
    con.execute("ATTACH ('tw' || 'o') AS r (TYPE lance)")
    assert ids(con, "q.t") == ids(con, "r.t") == [3]


def test_a_connection_without_tables_attaches_folders(connect: Connect, folders: Path) -> None:
    con = connect(read_only=True)
    con.execute(f"ATTACH '{folders}/one' AS ns (TYPE lance)")
    assert ids(con, "ns.t") == [1, 2]
    with pytest.raises(UnsupportedError, match="connection is read-only"):
        con.execute("DELETE FROM ns.t")
    assert "2 tables" not in repr(con)


@pytest.mark.parametrize("name", ['odd "name"', "a.b", "Größe; DROP TABLE t", "select", "it's", "lance.main"])
def test_odd_names_of_databases_and_tables_are_names(con: ld.Connection, folders: Path, name: str) -> None:
    spelled = '"' + name.replace('"', '""') + '"'
    con.execute(f"ATTACH 'one' AS {spelled} (TYPE lance)")
    con.execute(f"CREATE TABLE {spelled}.{spelled} AS FROM two.t")
    con.execute(f"INSERT INTO {spelled}.main.{spelled} FROM {spelled}.t")
    assert ids(con, f"{spelled}.{spelled}") == [1, 2, 3]
    assert ids(con, f"{spelled}.{spelled} AT (VERSION => 1)") == [3]
    con.execute(f"USE {spelled}")
    con.execute(f"DELETE FROM {spelled} WHERE id = 3")
    assert ids(con, spelled) == [1, 2]
    assert (folders / "one" / f"{name}.lance").is_dir()
    con.execute(f"DROP TABLE {spelled}")
    con.execute(f"USE memory; DETACH {spelled}")
    assert ids(con, "one.t") == [1, 2]


def test_an_error_is_that_of_the_database_that_is_named(folders: Path, connect: Connect) -> None:
    con = connect()
    con.execute(f"ATTACH '{folders / 'one'}' AS old (TYPE lance, TIMESTAMP '2020-01-01')")
    con.execute(f"ATTACH '{folders / 'one'}' AS aside (TYPE lance, BRANCH 'nob')")
    for name, message in (
        ("aside.t", "no branch 'nob'"),
        ('"aside" . main.t AS x', "no branch 'nob'"),
        ("old.t", "2020-01-01"),
    ):
        with pytest.raises(NotFoundError, match=message):
            con.execute(f"SELECT 'ä' FROM {name}")
    with pytest.raises(duckdb.CatalogException, match="Table with name t does not exist"):
        con.execute("FROM t")
    con.execute("USE aside")
    with pytest.raises(NotFoundError, match="no branch 'nob'"):
        con.execute("FROM t")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x FROM lance_scan('u')",
        "SELECT x FROM lance_scan('main.u')",
        "SELECT max(version) + 8 FROM lance_versions('u')",
        "SELECT rows + 8 FROM lance_info('u')",
        "SELECT max(x) FROM lance_scan('u', version := 1)",
    ],
)
def test_functions_take_bare_names_of_the_database_in_use(con: ld.Connection, sql: str) -> None:
    with pytest.raises(LanceDuckError):
        con.execute(sql.replace("main.", ""))
    con.execute("USE two")
    assert con.execute(sql).fetchall() == con.sql(sql).fetchall() == [(9,)]
    con.execute("USE memory")
    assert ids(con, "lance_scan('t')") == [0]


def test_functions_take_bare_names_of_the_database_in_use_as_parameters(con: ld.Connection, folders: Path) -> None:
    con.execute("CREATE MACRO memory.rows_of(name) AS TABLE FROM lance_scan(name)")
    uri = "SELECT uri FROM lance_info(?)"
    for use, folder, expected in (
        ("USE two", "two", [(3,)]),
        ("SET search_path = 'memory.main,one.main,lance.main'", "one", [(1,), (2,)]),
        ("SET search_path = 'memory.main,lance.main,two.main'", "home", [(0,)]),
        ("USE memory", "home", [(0,)]),
    ):
        con.execute(use)
        for name in ("t", "T", '"t"'):
            assert con.execute("SELECT id FROM lance_scan(?) ORDER BY id", [name]).fetchall() == expected
            assert con.execute(uri, [name]).fetchall() == con.sql(uri, params=[name]).fetchall()
            assert con.execute(uri, [name]).fetchall() == [(str(folders / folder / "t.lance"),)]
        assert con.execute("SELECT id FROM memory.rows_of('t') ORDER BY id").fetchall() == expected
        assert con.execute("SELECT id FROM lance_scan(?)", ["two.t"]).fetchall() == [(3,)]
        assert con.execute("SELECT id FROM lance_scan(?)", ["home/t.lance"]).fetchall() == [(0,)]


def test_prepared_functions_take_names_of_the_database_in_use(con: ld.Connection) -> None:
    con.execute("PREPARE p AS SELECT id FROM lance_scan(?)")
    assert con.execute("EXECUTE p('t')").fetchall() == [(0,)]
    con.execute("USE two")
    assert con.execute("EXECUTE p('t')").fetchall() == [(3,)]


@pytest.mark.parametrize("database", ["database := 'one'", "database => 'one'", "\"Database\" := 'one'"])
def test_a_named_database_comes_before_the_one_in_use(con: ld.Connection, database: str) -> None:
    con.execute("USE two")
    for name in ("'t'", "?"):
        values = ["t"] * name.count("?")
        assert con.execute(f"SELECT rows FROM lance_info({name}, {database})", values).fetchall() == [(2,)]


def test_a_view_made_before_another_database_is_used_keeps_its_table(con: ld.Connection) -> None:
    con.execute("CREATE VIEW memory.v AS SELECT id FROM lance_scan('t')")
    con.sql("SELECT uri FROM lance_info('t')").create_view("w")
    con.execute("CREATE MACRO memory.m() AS TABLE SELECT id FROM lance_scan('main.t')")
    uri = con.execute("FROM w").fetchall()
    con.execute("USE two")
    assert ids(con, "memory.v") == ids(con, "memory.m()") == [0]
    assert con.execute("FROM memory.w").fetchall() == uri


def test_a_view_of_a_function_keeps_the_table_that_a_bare_name_meant(con: ld.Connection) -> None:
    con.execute("USE one; CREATE VIEW memory.v AS SELECT id FROM lance_scan('t'); USE two")
    assert ids(con, "lance_scan('t')") == [3]
    assert ids(con, "memory.v") == [1, 2]
    relation = con.sql("SELECT id FROM lance_scan('t')")
    con.execute("USE memory")
    assert relation.fetchall() == [(3,)]


def test_searches_and_procedures_take_bare_names_of_the_database_in_use(con: ld.Connection, folders: Path) -> None:
    ld.write_dataset({"id": [5, 6], "v": [[0.0, 1.0], [3.0, 4.0]]}, folders / "one" / "near.lance")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0, 1, 3, 4], pa.float32()), 2)
    ld.write_dataset(pa.table({"id": [5, 6], "v": vectors}), folders / "one" / "near.lance", mode="overwrite")
    con.execute("USE one")
    search = "SELECT id FROM lance_vector_search('near', 'v', [3, 3]::FLOAT[], k := 1)"
    assert con.execute(search).fetchall() == con.sql(search).fetchall() == [(6,)]
    named = search.replace("'near'", "?")
    assert con.execute(named, ["near"]).fetchall() == con.sql(named, params=["near"]).fetchall() == [(6,)]
    with pytest.raises(NotFoundError, match=r"did you mean 'one\.near'"):
        con.execute("USE two; SELECT id FROM lance_scan(?)", ["near"])
    con.execute("USE one")
    assert con.execute("CALL lance_restore('near', 1)").fetchall()
    assert ld.dataset(folders / "one" / "near.lance").version == 3


@pytest.mark.parametrize("function", ["lance_scan({})", "lance_info({})"])
def test_functions_take_a_name_with_a_dot_of_the_database_in_use(
    con: ld.Connection, folders: Path, function: str
) -> None:
    ld.write_dataset({"id": [5, 6]}, folders / "one" / "two.t.lance")
    ld.write_dataset({"id": [7]}, folders / "one" / "u.v.lance")
    con.execute("USE one")
    for name, count in (("u.v", 1), ('"u.v"', 1), ('"two.t"', 2), ('one."two.t"', 2), ("two.t", 1)):
        column = "count(*)" if "scan" in function else "rows"
        sql = f"SELECT {column} FROM {function}"
        answers = con.execute(sql.format("?"), [name]).fetchall(), con.sql(sql.format(f"'{name}'")).fetchall()
        assert answers == ([(count,)], [(count,)]), name
