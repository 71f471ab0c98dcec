"""Statements about a table that does not exist: the error names it, and suggests the nearest table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import lance_duck as ld
from lance_duck.errors import NotFoundError, UnsupportedError

NAMES = ["tripz", "lance.tripz", "lance.main.tripz"]
READS = [
    "FROM {t}",
    "SELECT * FROM trips JOIN {t} USING (id)",
    "WITH x AS (FROM {t}) FROM x",
    "FROM (FROM {t})",
    "SELECT id IN (SELECT id FROM {t}) FROM trips",
    "EXPLAIN FROM {t}",
    "INSERT INTO trips FROM {t}",
    "DELETE FROM trips WHERE id IN (FROM {t})",
    "UPDATE trips SET id = (SELECT max(id) FROM {t})",
    "MERGE INTO trips USING (FROM {t}) s ON trips.id = s.id WHEN MATCHED THEN DELETE",
    "CREATE TABLE lance.v AS FROM {t}",
    "CREATE VIEW v AS FROM {t}",
    "PREPARE p AS FROM {t}",
    "COPY (FROM {t}) TO 'x.lance'",
]
TIMES = ["", " AT (VERSION => 1)", " AT (TIMESTAMP => now())", " AT (VERSION => (SELECT 1))"]
OF_DUCKDB = [
    "VACUUM {t}",
    "VACUUM ANALYZE {t}",
    "ANALYZE {t}",
    "CREATE INDEX i ON {t} (id)",
    "CREATE INDEX i ON {t} USING BTREE (id)",
    "DROP TABLE {t}",
    "COMMENT ON TABLE {t} IS 'x'",
    "COMMENT ON COLUMN {t}.id IS 'x'",
    "ALTER TABLE {t} ADD COLUMN x INT",
    "TRUNCATE {t}",
    "COPY {t} TO 'x.csv'",
    "COPY {t} TO 'x.lance'",
    "COPY {t} FROM 'trips.lance'",
    "DESCRIBE {t}",
    "SUMMARIZE {t}",
]
OF_LANCE = [
    "OPTIMIZE {t}",
    "OPTIMIZE {t} WITH (max_rows_per_file = 5)",
    "VACUUM {t} WITH (older_than = '1 day')",
    "VACUUM LANCE {t}",
    "CHECKPOINT {t} WITH (x = 1)",
    "REINDEX {t}",
    "REINDEX i ON {t}",
    "ALTER INDEX i ON {t} OPTIMIZE",
    "ALTER INDEX IF EXISTS i ON {t} OPTIMIZE",
    "DROP INDEX i ON {t}",
    "DROP INDEX IF EXISTS i ON {t}",
    "CREATE INDEX ON {t} (id)",
    "CREATE INDEX i ON {t} (id) USING BTREE",
    "SHOW INDEXES ON {t}",
    "SHOW MAINTENANCE ON {t}",
    "ALTER TABLE {t} SET AUTO_CLEANUP (interval = 2)",
    "DROP TABLE {t}, trips",
    "DROP TABLE trips, {t}",
]
FUNCTIONS = [
    "FROM lance_scan('{t}')",
    "FROM lance_versions('{t}')",
    "FROM lance_fts('{t}', 's', 'a')",
    "FROM lance_vector_search('{t}', 'v', [1.0])",
    "CALL lance_compact('{t}')",
    "CALL lance_compact_log('{t}')",
]


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ld.Connection]:
    folder: Path = tmp_path_factory.mktemp("tables")
    ld.write_dataset({"id": [1, 2]}, folder / "trips.lance")
    with ld.connect(folder) as con:
        yield con


@pytest.mark.parametrize("sql", [*READS, *OF_DUCKDB])
def test_duckdb_statements_raise_duckdb_error(con: ld.Connection, sql: str) -> None:
    for name in NAMES[:2]:
        for time in TIMES if sql in READS else TIMES[:1]:
            with pytest.raises(duckdb.CatalogException, match=r'Table with name tripz .*\nDid you mean "trips"'):
                con.execute(sql.format(t=name + time))
    assert con.execute("FROM trips").fetchall() == [(1,), (2,)]


@pytest.mark.parametrize("name", NAMES)
def test_the_line_of_a_missing_table_with_at_is_shown(con: ld.Connection, name: str) -> None:
    with pytest.raises(duckdb.CatalogException) as missing:
        con.sql(f"SELECT 1\nFROM trips, {name} AS a AT (VERSION => 1)")
    assert str(missing.value).endswith(
        f"LINE 2: FROM trips, {name} AS a AT (VERSION => 1)\n                    {'^' * len(name)}"
    )


@pytest.mark.parametrize("sql", [*OF_LANCE, *FUNCTIONS])
def test_lance_statements_raise_not_found_errors(con: ld.Connection, sql: str) -> None:
    for name in NAMES[: 2 if sql in FUNCTIONS else 3]:
        with pytest.raises(NotFoundError, match=r"tripz: no such table; did you mean '(lance\.)?trips'\?"):
            con.execute(sql.format(t=name))
    assert con.execute("FROM trips").fetchall() == [(1,), (2,)]


def test_a_missing_table_with_at_is_named_in_a_transaction(con: ld.Connection) -> None:
    for sql in (READS[0], READS[6]):
        con.execute("BEGIN")
        with pytest.raises(duckdb.CatalogException, match='Did you mean "trips"'):
            con.execute(sql.format(t="tripz AT (VERSION => 1)"))
        con.execute("ROLLBACK")


@pytest.mark.parametrize("sql", ["OPTIMIZE {}", "SHOW INDEXES ON {}", "CREATE INDEX ON {} (id)", "REINDEX {}"])
def test_the_suggestion_names_the_database_if_it_is_needed(con: ld.Connection, sql: str) -> None:
    con.execute("USE memory")
    for name in ("trips", "memory.trips", "tripz"):
        with pytest.raises(NotFoundError, match=rf"{name}: no such table; did you mean 'lance\.trips'\?"):
            con.execute(sql.format(name))
    con.execute("SET search_path = 'memory,lance'")
    with pytest.raises(NotFoundError, match=r"memory\.trips: no such table; did you mean 'trips'\?"):
        con.execute(sql.format("memory.trips"))
    assert con.execute("FROM trips").fetchall() == [(1,), (2,)]


def test_native_tables_are_not_taken_for_missing_ones(con: ld.Connection) -> None:
    con.execute("CREATE OR REPLACE TABLE memory.main.native (id INT)")
    with pytest.raises(duckdb.BinderException, match="time travel"):
        con.execute("FROM native AT (VERSION => 1)")
    for sql in ("VACUUM native WITH (older_than = '1 day')", "DROP INDEX i ON native", "CREATE INDEX ON native (id)"):
        with pytest.raises(UnsupportedError, match="native: not a Lance table"):
            con.execute(sql)
    con.execute("VACUUM native")
    con.execute("CHECKPOINT memory")


def test_a_missing_table_of_checkpoint_is_neither_a_table_nor_a_database(con: ld.Connection) -> None:
    with pytest.raises(NotFoundError, match=r"tripz: no such table; did you mean 'trips'\?"):
        con.execute("CHECKPOINT tripz")
