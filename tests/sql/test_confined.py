"""Confined connections reach only their tables, and everything inside works as on other connections."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sql.paths_support import INSIDE, OUTSIDE, contents, written_places
from sql.test_statement_files import FILES, LanceTables, runs_on
from support.statements import runs_of

import lance_duck as ld
from lance_duck.errors import ConfinedError, LanceDuckError

POSITIONS = [
    *("FROM '{path}'", 'FROM "{path}"', "SELECT id FROM '{path}' WHERE id = 3", "FROM '{path}' AT (VERSION => 1)"),
    *(
        "SELECT 1 FROM t JOIN '{path}' AS o USING (id)",
        "SELECT (SELECT max(id) FROM '{path}')",
        "EXPLAIN FROM '{path}'",
    ),
    *(
        "EXPLAIN ANALYZE FROM '{path}'",
        "WITH x AS (FROM '{path}') FROM x",
        "FROM t WHERE id IN (SELECT id FROM '{path}')",
    ),
    *("SELECT rowid FROM '{path}'", "SELECT match(s, 'duck') FROM '{path}'", "FROM lance_scan('{path}')"),
    *("FROM lance_scan('{path}'::VARCHAR || '')", "FROM query('FROM ''{path}''')", "FROM query_table('{path}')"),
    "FROM lance_vector_search('{path}', 'v', [1.0, 1.0], k := 2)",
    *("FROM lance_fts('{path}', 's', 'duck', k := 3)", "FROM lance_versions('{path}')", "FROM lance_schema('{path}')"),
    "FROM lance_hybrid_search('{path}', 'v', [1.0, 1.0], 's', 'duck', k := 3)",
    "SELECT id FROM '{path}' ORDER BY array_distance(v, [1, 1]::FLOAT[2]) LIMIT 1",
    *("FROM lance_indexes('{path}')", "FROM lance_table_changes('{path}', 1, 2)", "FROM lance_commits('{path}')"),
    *("SUMMARIZE '{path}'", "DESCRIBE '{path}'", "DESCRIBE FROM '{path}'", "PIVOT '{path}' ON s USING count(*)"),
    *("PREPARE p AS FROM '{path}'", "PREPARE q AS DELETE FROM '{path}'; EXECUTE q"),
    *("CREATE VIEW seen AS FROM '{path}'", "CREATE TEMP VIEW seen2 AS FROM '{path}'"),
    "CREATE TEMP MACRO read_it() AS TABLE FROM '{path}'; FROM read_it()",
    *("CREATE TABLE lance.a AS FROM '{path}'", "CREATE TEMP TABLE b AS FROM '{path}'"),
    *(
        "CREATE TABLE lance.c (LIKE '{path}')",
        "CREATE TABLE '{path}' AS SELECT 1 AS x",
        "CREATE TABLE '{path}' (x INTEGER)",
    ),
    *("CREATE TABLE IF NOT EXISTS '{path}' (x INTEGER)", "CREATE OR REPLACE TABLE '{path}' AS SELECT 1 AS x"),
    *("COPY (FROM '{path}') TO '{in}/copied.lance'", "COPY t TO '{path}'", "COPY t TO '{path}' (FORMAT lance)"),
    *("COPY t TO ('{path}' || '')", "COPY (SELECT 7 AS id) TO '{path}' (MODE 'append')", "COPY t FROM '{path}'"),
    "COPY t FROM '{path}' (FORMAT lance)",
    *("INSERT INTO '{path}' VALUES (1, 'x', NULL)", "INSERT INTO t FROM '{path}'", "UPDATE '{path}' SET s = 'y'"),
    *("UPDATE t SET s = o.s FROM '{path}' AS o WHERE t.id = o.id", "DELETE FROM '{path}'", "TRUNCATE '{path}'"),
    "DELETE FROM t USING '{path}' AS o WHERE t.id = o.id",
    "MERGE INTO '{path}' AS o USING t ON o.id = t.id WHEN MATCHED THEN DELETE",
    "MERGE INTO t USING '{path}' AS o ON o.id = t.id WHEN MATCHED THEN DELETE",
    *("ALTER TABLE '{path}' ADD COLUMN k INTEGER", "CREATE INDEX i ON '{path}' (s)", "DROP INDEX i ON '{path}'"),
    *("COMMENT ON TABLE '{path}' IS 'x'", "DROP TABLE '{path}'", "DROP TABLE IF EXISTS '{path}'"),
    *("OPTIMIZE '{path}'", "VACUUM '{path}'", "REINDEX '{path}'", "SHOW INDEXES ON '{path}'"),
    *("CALL lance_compact_files('{path}')", "CALL lance_restore('{path}', 1)", "FROM lance_compact_files('{path}')"),
    *("CALL lance_create_tag('{path}', 'a', 1)", "CALL lance_validate('{path}')"),
    "CALL lance_compact_log('{path}')",
    *("ATTACH '{path}' AS o (TYPE lance)", "ATTACH '{path}' AS o (TYPE lance, READ_ONLY)", "ATTACH '{path}' AS o"),
    *("ATTACH '{path}' AS o (TYPE lance, NAMESPACE 'x')", "ATTACH 'x' AS o (TYPE lance, ENDPOINT '{path}')"),
    *("EXPORT DATABASE '{path}'", "USE memory; EXPORT DATABASE '{path}'", "USE memory; IMPORT DATABASE '{path}'"),
    "CREATE SECRET (TYPE lance, SCOPE '{path}', region 'x')",
]
"""Every position of SQL that takes the path of a Lance table or of a folder."""
OF_DUCKDB = [
    *("FROM '{path}'", "FROM read_csv('{path}')", "FROM read_parquet('{path}')", "FROM read_blob('{path}')"),
    *("FROM glob('{path}/*')", "FROM sniff_csv('{path}')", "FROM read_json('{path}')", "COPY t FROM '{path}'"),
    *("COPY t TO '{path}'", "COPY t TO '{path}' (FORMAT parquet)", "COPY (SELECT 1 AS x) TO '{path}' (FORMAT csv)"),
    *("SUMMARIZE '{path}'", "INSERT INTO t FROM '{path}'", "CREATE TABLE lance.a AS FROM '{path}'"),
    *("ATTACH '{path}' AS o", "ATTACH '{path}' AS o (READ_ONLY)", "LOAD '{path}'", "CREATE VIEW v AS FROM '{path}'"),
    *("EXPORT DATABASE '{path}'", "EXPORT DATABASE memory TO '{path}'", "USE memory; IMPORT DATABASE '{path}'"),
    *("INSTALL '{path}'", "INSTALL x FROM '{path}'", "USE memory; PRAGMA import_database('{path}')"),
]
"""Positions of SQL that take the path of another file."""
FILES_OUTSIDE = [
    *(
        "{out}/{name}.csv",
        "{in}/../out/{name}.csv",
        "{in}/link/{name}.csv",
        "out/{name}.csv",
        "file://{out}/{name}.csv",
    ),
    *("{out}/{name}.parquet", "{out}/{name}", "{out}/{name}.db", "{in}/{name}.csv", "{out}/*.csv", "s3://b/{name}.csv"),
]
SPELLINGS = [
    *("{out}/{name}.lance", "{out}/{name}.lance/", "{out}//{name}.lance", "{out}/./{name}.lance", "out/{name}.lance"),
    *("file://{out}/{name}.lance", "FILE://{out}/{name}.lance", "file://localhost{out}/{name}.lance"),
    *("file://{in}/%2e%2e/out/{name}.lance", "file://{in}/..%2Fout/{name}.lance", "{in}/../out/{name}.lance"),
    *("{in}/t.lance/../../out/{name}.lance", "{in}/link/{name}.lance", "{in}2/{name}.lance", "in/../out/{name}.lance"),
    *("file://host{out}/{name}.lance", "s3://bucket/{name}.lance", "memory://b/{name}.lance", "odd://{name}.lance"),
    *("../{name}.lance", "~/{name}.lance"),
]
"""Spellings of locations outside the folder `in`."""


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    monkeypatch.chdir(tmp_path)
    return written_places(tmp_path)


@pytest.fixture
def closed(places: dict[str, Path]) -> Iterator[ld.Connection]:
    with ld.connect(places["in"], confined=True) as connection:
        yield connection


def refusal(connection: ld.Connection, sql: str) -> str:
    """Return the error of a refused statement."""
    with pytest.raises(ConfinedError) as refused, connection.cursor() as cursor:
        cursor.execute(sql).fetchall()
    return str(refused.value)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_statement_reaches_a_path_outside(places: dict[str, Path], closed: ld.Connection, spelling: str) -> None:
    check_refused(places, closed, POSITIONS, spelling)


@pytest.mark.parametrize("spelling", FILES_OUTSIDE)
def test_no_statement_reaches_other_files(places: dict[str, Path], closed: ld.Connection, spelling: str) -> None:
    for folder in places.values():
        for ending in ("", ".csv", ".parquet", ".db"):
            (folder / f"canary{ending}").write_bytes(b"a,b\n1,2\n")
    check_refused(places, closed, OF_DUCKDB, spelling)


def check_refused(places: dict[str, Path], closed: ld.Connection, positions: list[str], spelling: str) -> None:
    """Check that statements are refused with one error, whether a path has a table, a file or nothing."""
    before = contents(places["out"]), contents(places["in"])
    for position in positions:
        errors = set()
        for name in ("canary", "nobody"):
            path = spelling.format(**places, name=name)
            errors.add(refusal(closed, position.format(path=path, **places)).replace(name, "…"))
        assert len(errors) == 1, position
    assert (contents(places["out"]), contents(places["in"])) == before
    assert closed.execute("SELECT count(*) FROM t").fetchall() == [(50,)]


@pytest.mark.parametrize(
    "spelling",
    [
        *("memory://b/lake/../x/t.lance", "memory://b/lake/%2e%2e/x/t.lance", "memory://b/lake/..%2Fx/t.lance"),
        *("memory://b/lakes/t.lance", "memory://b/t.lance", "memory://c/lake/t.lance", "s3://b/lake/t.lance"),
        *("memory://b/lake/./../x.lance", "memory://b/Lake/t.lance", "memory://b/lake\t/../x.lance", "/b/lake/t.lance"),
    ],
)
def test_paths_outside_a_prefix_of_a_bucket_are_refused(spelling: str) -> None:
    ld.write_dataset({"id": [1, 2]}, "memory://b/lake/t.lance", mode="overwrite")
    with ld.connect("memory://b/lake", confined=True) as connection:
        for sql in ("FROM t", "FROM 'memory://b/lake/t.lance'", "FROM 'MEMORY://b//lake/%74.lance/'"):
            assert connection.execute(sql).fetchall() == [(1,), (2,)]
        for sql in (
            "FROM lance_scan('{path}')",
            "COPY t TO '{path}' (FORMAT lance)",
            "ATTACH '{path}' AS o (TYPE lance)",
        ):
            refusal(connection, sql.format(path=spelling))


class ConfinedTables(LanceTables):
    """Confined connections to the Lance tables of a folder."""

    def run(self, sql: str, on: str) -> list[tuple[Any, ...]]:
        """See `LanceTables.run`."""
        if on not in self.connections:
            connection = ld.connect(self.folder, read_only=on == "reader", confined=True)
            self.connections[on] = self.stack.enter_context(connection)
        return super().run(sql, on)


WITH_OTHER_FILES = ("COPY", "ATTACH", "SET threads", "SELECT count(*) FROM glob(")
"""First words of the statements in the files that need more than the folder."""
SAMPLE = (
    "alter",
    "delete",
    "merge",
    "on_conflict",
    "returning",
    "tables",
    "update",
    "at",
    "prepared",
    "upkeep",
    "indexes",
)


@pytest.mark.parametrize("file", [each for each in FILES if each.stem in SAMPLE], ids=lambda file: file.stem)
def test_statements_inside_give_the_same_rows_as_on_other_connections(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, cases in enumerate(islice(runs_of(file), 6)):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        tables = ConfinedTables(folder)
        with tables.stack:
            for case in (each for each in cases if runs_on(each, is_native=False)):
                filled = case.with_values({"folder": str(folder)})
                try:
                    filled.check(partial(tables.run, on=case.on), is_native=False)
                except ConfinedError:
                    assert filled.sql.startswith(WITH_OTHER_FILES), filled.sql
                    break


def test_statements_about_paths_inside_work(places: dict[str, Path], closed: ld.Connection) -> None:
    for sql in INSIDE:
        closed.execute(sql.format_map(places)).fetchall()
    relation = closed.sql(f"FROM '{places['in']}/t.lance' WHERE id = 3")
    closed.executemany("INSERT INTO t VALUES (?, ?, NULL)", [[7000, "a"], [7001, "b"]])
    closed.append("t", pa.table({"id": pa.array([7002], pa.int32()), "s": ["c"], "v": [None]}), by_name=True)
    assert len(relation.fetchall()) == 1
    with closed.cursor() as cursor:
        assert cursor.execute("SELECT s FROM t WHERE id >= 7000 ORDER BY id").fetchall() == [("a",), ("b",), ("c",)]
    closed.sql("FROM t LIMIT 2").create("made")
    assert closed.execute("SELECT count(*) FROM made").fetchall() == [(2,)]


def test_settings_of_the_package_and_the_search_path_can_be_changed(closed: ld.Connection) -> None:
    closed.execute(
        "SET lance_nprobes = 3; SET VARIABLE x = 4; USE memory; SET search_path = 'lance.main'; RESET lance_ef"
    )
    assert closed.execute("SELECT current_setting('lance_nprobes'), getvariable('x')").fetchall() == [(3, 4)]
    for sql in (
        "SET threads = 1",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "PRAGMA threads = 1",
    ):
        assert "locked" in refusal(closed, sql)


def test_a_file_log_cannot_be_opened(places: dict[str, Path], closed: ld.Connection) -> None:
    for sql in ("CALL enable_logging(storage = 'file', storage_path = '{out}/log')", "SET logging_storage = 'file'"):
        refusal(closed, sql.format_map(places))
    assert closed.execute("SELECT count(*) FROM t").fetchall() == [(50,)]


def test_a_program_can_register_more_tables(places: dict[str, Path], closed: ld.Connection) -> None:
    closed.register("more", ld.dataset(places["out"] / "t.lance"))
    closed.register("frame", pa.table({"id": [1, 2]}))
    assert closed.execute("SELECT count(*) FROM more JOIN frame USING (id)").fetchall() == [(2,)]
    refusal(closed, f"FROM '{places['out']}/canary.lance'")


def test_python_variables_are_not_tables(closed: ld.Connection) -> None:
    frame = pa.table({"id": [1]})
    for sql in ("FROM frame", "INSERT INTO t (id) FROM frame", "CREATE TABLE lance.x AS FROM frame"):
        with pytest.raises((duckdb.CatalogException, LanceDuckError), match="frame"):
            closed.execute(sql)
    del frame


def test_views_and_macros_of_the_folder_do_not_lead_outside(places: dict[str, Path]) -> None:
    with ld.connect(places["in"]) as usual:
        usual.execute(f"CREATE VIEW lance.far AS FROM '{places['out']}/t.lance'")
        usual.execute(f"CREATE MACRO lance.further() AS TABLE FROM '{places['out']}/t.lance'")
        usual.execute("CREATE VIEW lance.near AS SELECT id FROM t")
    with ld.connect(places["in"], confined=True) as closed:
        assert closed.execute("SELECT count(*) FROM near").fetchall() == [(50,)]
        refusal(closed, "FROM far")
        with pytest.raises((duckdb.CatalogException, ConfinedError)):
            closed.execute("FROM further()").fetchall()


def test_a_confined_folder_does_not_follow_the_working_directory(
    places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ld.connect("in", confined=True) as closed:
        monkeypatch.chdir(places["out"])
        assert closed.execute("SELECT count(*) FROM t").fetchall() == [(50,)]
        refusal(closed, f"FROM '{places['out']}/in/t.lance'")
        refusal(closed, "FROM 'in/t.lance'")


def test_links_in_the_folder_and_moved_links_are_not_followed(places: dict[str, Path], closed: ld.Connection) -> None:
    with pytest.raises(LanceDuckError):
        closed.execute("FROM evil").fetchall()
    os.rename(places["in"] / "u.lance", places["out"].parent / "u.lance")
    os.symlink(places["out"] / "canary.lance", places["in"] / "u.lance")
    with pytest.raises(LanceDuckError):
        closed.execute("FROM u").fetchall()


def test_a_large_sort_spills_to_the_temporary_directory(places: dict[str, Path]) -> None:
    settings = {"memory_limit": "60MB", "threads": "1"}
    with ld.connect(places["in"], config=settings, confined=True) as closed:
        sql = (
            "SELECT max(length(x)) FROM (SELECT repeat(md5(i::VARCHAR), 4) AS x FROM range(1_000_000) r(i) ORDER BY x)"
        )
        assert closed.execute(sql).fetchall() == [(128,)]


def test_one_statement_reads_many_tables(places: dict[str, Path], closed: ld.Connection) -> None:
    closed.execute("CREATE TABLE lance.empty (id INTEGER)")
    sql = """
        SELECT count(*) FROM t JOIN u USING (id) JOIN lance_scan('t') AS a USING (id)
        JOIN '{in}/u.lance' AS b USING (id)
        LEFT JOIN empty USING (id) JOIN lance_fts('t', 's', 'duck', k := 50) USING (id)"""
    for method in (closed.execute, closed.sql):
        assert method(sql.format_map(places)).fetchall() == [(50,)]


def test_relations_and_readers_of_files_are_refused(places: dict[str, Path], closed: ld.Connection) -> None:
    out = places["out"]
    before = contents(out)
    for sql in OUTSIDE:
        with pytest.raises(ConfinedError):
            closed.sql(sql.format_map(places)).fetchall()
    for act in (
        lambda: closed.read_csv(str(out / "canary.csv")),
        lambda: closed.read_parquet(str(out / "canary.parquet")),
        lambda: closed.sql("FROM t").write_csv(str(out / "x.csv")),
        lambda: closed.sql("FROM t").to_parquet(str(out / "x.parquet")),
        lambda: closed.sql("FROM t").create(f"'{out}/w.lance'"),
        lambda: closed.table(f"'{out}/canary.lance'").fetchall(),
    ):
        with pytest.raises((duckdb.Error, LanceDuckError)):
            act()
    assert contents(out) == before
