"""Confined connections reach only their tables, and everything inside works as on other connections."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sql.paths_support import INSIDE, OUTSIDE, contents, written_places
from sql.test_statement_files import FILES, HERE, LanceTables, runs_on
from support.statements import runs_of

import lance_duck as ld
from lance_duck.errors import ConfinedError, LanceDuckError
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE

POSITIONS = [
    *("FROM '{path}'", "FROM \"{path}\"", "SELECT id FROM '{path}' WHERE id = 3", "FROM '{path}' AT (VERSION => 1)"),
    *("SELECT 1 FROM t JOIN '{path}' AS o USING (id)", "SELECT (SELECT max(id) FROM '{path}')", "EXPLAIN FROM '{path}'"),
    *("EXPLAIN ANALYZE FROM '{path}'", "WITH x AS (FROM '{path}') FROM x", "FROM t WHERE id IN (SELECT id FROM '{path}')"),
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
    *("CREATE TABLE lance.c (LIKE '{path}')", "CREATE TABLE '{path}' AS SELECT 1 AS x", "CREATE TABLE '{path}' (x INTEGER)"),
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
    *("{out}/{name}.csv", "{in}/../out/{name}.csv", "{in}/link/{name}.csv", "out/{name}.csv", "file://{out}/{name}.csv"),
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
