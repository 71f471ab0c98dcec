"""Statements are classified by what they may change."""

from __future__ import annotations

import duckdb
import pytest

from lance_duck.duck.changes.effects import Effect, EffectKind, effects

READS = [
    *(
        "SELECT 1",
        "FROM t",
        "(SELECT 1)",
        "((FROM t))",
        "VALUES (1)",
        "TABLE t",
        "WITH x AS (SELECT 1) SELECT * FROM x",
    ),
    *("PIVOT t ON a USING count(*)", "FROM (PIVOT t ON a USING count(*))", "UNPIVOT t ON a INTO NAME b VALUE c"),
    *(
        "SHOW TABLES",
        "SHOW ALL TABLES",
        "SHOW INDEXES ON t",
        "SHOW t",
        "DESCRIBE t",
        "DESCRIBE SELECT 1",
        "SUMMARIZE t",
    ),
    *("EXPLAIN SELECT 1", "EXPLAIN ANALYZE SELECT 1", "EXPLAIN DELETE FROM t", "EXPLAIN OPTIMIZE t", "SELECT ?, 1"),
    *(
        "FROM t AT (VERSION => 3)",
        "CALL lance_validate('t')",
        "SELECT * FROM lance_validate('t')",
        "FROM lance_fts('t')",
    ),
    *("SELECT 'nothing (is deleted)'", "SELECT replace(a, 'b', 'c') FROM t", "FROM '/x.lance'", "/* x */ SELECT 1"),
]
CHANGES = [
    *("INSERT INTO t VALUES (1)", "UPDATE t SET a = 1", "DELETE FROM t", "TRUNCATE t", "UPDATE '/x.lance' SET a = 1"),
    *("MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE", "WITH a AS (SELECT 1) INSERT INTO t FROM a"),
    *("CREATE TABLE a (x INTEGER)", "CREATE TABLE p AS PIVOT t ON a USING count(*)", "CREATE VIEW a AS FROM t"),
    *(
        "CREATE MACRO m() AS 1",
        "CREATE TYPE x AS INTEGER",
        "CREATE SCHEMA s",
        "CREATE INDEX i ON t (a)",
        "DROP TABLE t",
    ),
    *("CREATE INDEX i ON t USING IVF_PQ (v)", "DROP VIEW v", "DROP SCHEMA s", "DROP INDEX i ON t", "DROP MACRO m"),
    *("ALTER TABLE t ADD COLUMN a INTEGER", "ALTER INDEX i ON t OPTIMIZE", "COMMENT ON TABLE t IS 'x'", "ANALYZE t"),
    *("COPY t TO 'x.lance'", "COPY t TO 'x' (FORMAT lance)", "COPY t FROM 'x.lance'", "OPTIMIZE t", "VACUUM t"),
    *(
        "REINDEX t",
        "CHECKPOINT t",
        "CALL lance_compact('t')",
        "FROM lance_compact('t')",
        "EXPLAIN ANALYZE DELETE FROM t",
    ),
    *("BEGIN", "START TRANSACTION", "COMMIT", "END", "ROLLBACK", "ABORT", "CALL lance_restore('t', 1)"),
]
OTHERS = [
    *("SET threads = 1", "SET lance_nprobes = 3", "SET VARIABLE x = 1", "RESET threads", "USE x", "PRAGMA version"),
    *("ATTACH 'x' AS y (TYPE lance)", "DETACH y", "LOAD x", "INSTALL x", "COPY t TO 'x.csv'", "COPY t FROM 'x.csv'"),
    *("COPY FROM DATABASE a TO b", "EXPORT DATABASE 'x'", "IMPORT DATABASE 'x'", "PREPARE p AS SELECT 1", "EXECUTE p"),
    *(
        "PREPARE p AS OPTIMIZE t",
        "DEALLOCATE p",
        "CREATE TEMP TABLE a (x INTEGER)",
        "CREATE OR REPLACE TEMP VIEW a AS FROM t",
    ),
    *("CREATE SECRET (TYPE lance)", "CREATE SECRET s (TYPE http)", "DROP SECRET s", "CREATE SEQUENCE s", "CHECKPOINT"),
    *("ALTER DATABASE a SET ALIAS TO b", "CALL f(1)", "CALL checkpoint()", "VACUUM", "SELECT nextval('s')", "ANALYZE"),
    *("FROM enable_logging()", "EXPLAIN COPY t TO 'x.csv'", "PRAGMA import_database('/x')", "FORCE CHECKPOINT"),
]


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        *((sql, EffectKind.READ) for sql in READS),
        *((sql, EffectKind.CHANGE) for sql in CHANGES),
        *((sql, EffectKind.OTHER) for sql in OTHERS),
    ],
)
def test_a_statement_has_the_kind_of_its_effect(sql: str, kind: EffectKind) -> None:
    assert [effect.kind for effect in effects(sql)] == [kind]
    assert [effect.kind for effect in effects(f"-- x\n{sql.lower()};\n;")] == [kind]


def test_each_statement_of_a_script_has_an_effect_with_its_first_words() -> None:
    assert effects("SELECT 1; ;INSERT INTO t VALUES (';'); CALL lance_compact('t')") == [
        Effect(EffectKind.READ, "SELECT 1"),
        Effect(EffectKind.CHANGE, "INSERT INTO t"),
        Effect(EffectKind.CHANGE, "CALL lance_compact"),
    ]
    assert effects("") == effects("-- nothing\n;") == []


def test_a_change_in_a_common_table_expression_is_a_change() -> None:
    sql = "WITH x AS (DELETE FROM t RETURNING 1) FROM x"
    try:
        kinds = [effect.kind for effect in effects(sql)]
    except duckdb.ParserException:
        return  # DuckDB 1 does not have such expressions
    assert kinds == [EffectKind.CHANGE]


@pytest.mark.parametrize("sql", ["SELEC 1", "INSERT INTO", "SELECT 'a", "OPTIMIZE", "SELECT 1; FROM FROM", "KILL 3"])
def test_a_text_that_is_not_sql_raises_the_error_of_the_parser(sql: str) -> None:
    with pytest.raises(duckdb.ParserException):
        effects(sql)


@pytest.mark.parametrize(
    "name", ["memory.main.x", "memory.x", '"memory".x', 'MEMORY."main".x', "temp.x", "system.main.x"]
)
@pytest.mark.parametrize(
    "statement",
    [
        *("CREATE TABLE {} AS SELECT 1 AS a", "CREATE OR REPLACE TABLE {} (a INT)", "CREATE VIEW {} AS SELECT 1"),
        *("CREATE TABLE IF NOT EXISTS {} (a INT)", "CREATE MACRO {}(a) AS a", "CREATE OR REPLACE FUNCTION {}(a) AS a"),
        *(
            "CREATE TYPE {} AS INT",
            "CREATE SEQUENCE {}",
            "INSERT INTO {} VALUES (1)",
            "INSERT OR REPLACE INTO {} FROM t",
        ),
        *("UPDATE {} SET a = 1", "DELETE FROM {}", "TRUNCATE {}", "DROP TABLE {}", "DROP VIEW IF EXISTS {}"),
        *(
            "DROP MACRO {}",
            "ALTER TABLE {} ADD COLUMN b INT",
            "ALTER VIEW {} RENAME TO y",
            "COMMENT ON TABLE {} IS 'c'",
        ),
        *("COMMENT ON COLUMN {}.a IS 'c'", "COPY {} FROM 'x.csv'", "WITH c AS (SELECT 1) INSERT INTO {} FROM c"),
        "MERGE INTO {} USING t ON true WHEN MATCHED THEN DELETE",
    ],
)
def test_changes_of_native_databases_are_other(statement: str, name: str) -> None:
    assert [each.kind for each in effects(statement.format(name))] == [EffectKind.OTHER]


@pytest.mark.parametrize("statement", ["CREATE SCHEMA memory.s", "COPY FROM DATABASE lance TO memory"])
def test_changes_of_schemas_of_native_databases_are_other(statement: str) -> None:
    assert [each.kind for each in effects(statement)] == [EffectKind.OTHER]


def test_a_column_may_be_qualified_with_a_name_of_a_native_database() -> None:
    statement = "UPDATE t SET a = temp.a FROM u AS temp WHERE temp.b = t.b"
    assert [each.kind for each in effects(statement)] == [EffectKind.CHANGE]
