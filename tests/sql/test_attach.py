"""Attached folders that others change, in several cursors; `statements/lance/attach.sql` has the rest."""

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


def test_new_and_dropped_tables_are_noticed(con: ld.Connection, folders: Path) -> None:
    ld.write_dataset({"id": [5]}, folders / "one" / "late.lance")
    assert ids(con, "one.late") == [5]
    shutil.rmtree(folders / "one" / "late.lance")
    with pytest.raises(duckdb.CatalogException):
        con.execute("FROM one.late")


def test_a_deleted_folder_does_not_affect_other_databases(con: ld.Connection, folders: Path) -> None:
    shutil.rmtree(folders / "two")
    assert [ids(con, "t"), ids(con, "one.t")] == [[0], [1, 2]]
    for _ in range(2):
        with pytest.raises(NotFoundError, match="no such folder"):
            con.execute("FROM two.u")
    con.execute("DETACH two")
    with pytest.raises(duckdb.CatalogException):
        con.execute("FROM two.u")


def test_a_folder_created_by_another_process_is_found(con: ld.Connection, folders: Path) -> None:
    con.execute("ATTACH 'new' AS new (TYPE lance); ATTACH 'memory://new_in_memory' AS other (TYPE lance)")
    ld.write_dataset({"id": [3]}, folders / "new" / "t.lance")
    ld.write_dataset({"id": [4]}, "memory://new_in_memory/t.lance")
    assert [ids(con, "new.t"), ids(con, "other.t")] == [[3], [4]]


def test_all_cursors_see_attached_databases(con: ld.Connection, folders: Path) -> None:
    before, after = con.cursor(), con.cursor()
    con.execute("ATTACH 'one' AS third (TYPE lance)")
    after.execute("INSERT INTO third.t VALUES (6, 'c')")
    assert ids(before, "third.t") == ids(con.cursor(), "one.t") == [1, 2, 6]
    before.execute("DETACH third")
    with pytest.raises(duckdb.Error):
        con.execute("FROM third.t")


def test_a_folder_is_attached_at_a_version(con: ld.Connection, folders: Path) -> None:
    table = ld.dataset(folders / "two" / "t.lance")
    table.tags.create("first", 1)
    moment = table.versions()[0]["timestamp"]
    for options, expected in (("VERSION 1", [3, 4]), ("VERSION 'first'", [3, 4]), ("VERSION 2, READ_ONLY", [3])):
        con.execute(f"ATTACH OR REPLACE 'two' AS q (TYPE lance, {options})")
        assert ids(con, "q.t") == expected
    assert ids(con, "q.t AT (VERSION => 1)") == [3, 4]
    with pytest.raises(LanceDuckError):  # `u` has a single version
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
    with pytest.raises(UnsupportedError, match="attached at an older version, which SQL cannot change"):
        con.execute("DELETE FROM q.t")
    con.execute("ATTACH OR REPLACE 'two' AS q (TYPE lance, BRANCH b)")
    with pytest.raises(UnsupportedError, match="database q is attached at branch 'b', which SQL cannot change"):
        con.execute("DELETE FROM q.t")


def test_folder_paths_may_be_parameters(con: ld.Connection) -> None:
    con.execute("ATTACH ? AS q (TYPE lance)", ["two"])
    assert ids(con, "q.t") == [3]
    assert con.table("one.t").fetchall() == [(1, "one"), (2, "one")]


def test_a_connection_without_tables_attaches_folders(connect: Connect, folders: Path) -> None:
    con = connect(read_only=True)
    con.execute(f"ATTACH '{folders}/one' AS ns (TYPE lance)")
    assert ids(con, "ns.t") == [1, 2]
    with pytest.raises(UnsupportedError, match="connection is read-only"):
        con.execute("DELETE FROM ns.t")
    assert "2 tables" not in repr(con)


def test_parameters_with_bare_names_use_the_current_database(con: ld.Connection, folders: Path) -> None:
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


def test_a_view_keeps_its_table_after_use_of_another_database(con: ld.Connection) -> None:
    con.execute("CREATE VIEW memory.v AS SELECT id FROM lance_scan('t')")
    con.execute("CREATE VIEW w AS SELECT uri FROM lance_info('t')")
    con.execute("CREATE MACRO memory.m() AS TABLE SELECT id FROM lance_scan('main.t')")
    uri = con.execute("FROM w").fetchall()
    con.execute("USE two")
    assert ids(con, "memory.v") == ids(con, "memory.m()") == [0]
    assert con.execute("FROM lance.w").fetchall() == uri
    relation = con.sql("SELECT id FROM lance_scan('t')")
    con.execute("USE memory")
    assert relation.fetchall() == [(3,)]


def test_searches_and_procedures_resolve_bare_names_in_the_current_database(con: ld.Connection, folders: Path) -> None:
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
def test_functions_accept_table_names_with_a_dot_in_the_current_database(
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
