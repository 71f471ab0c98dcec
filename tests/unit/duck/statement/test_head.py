"""Kinds of statements by their first words."""

from __future__ import annotations

import pytest

from lance_duck.duck.statement.head import FirstWords, StatementKind


@pytest.mark.parametrize(
    ("sql", "kind", "word"),
    [
        ("BEGIN", StatementKind.BEGIN, "begin"),
        (" ;\n-- one\n/* two * */ start TRANSACTION", StatementKind.BEGIN, "start"),
        ("-- one\rcommit;", StatementKind.COMMIT, "commit"),
        ("/* one /* two */ still one */ commit", StatementKind.COMMIT, "commit"),
        ("/* one /* two */ commit", StatementKind.OTHER, ""),
        ("END", StatementKind.COMMIT, "end"),
        ("ABORT", StatementKind.ROLLBACK, "abort"),
        ("BEGINNING", StatementKind.OTHER, "beginning"),
        ("PREPARE p AS SELECT 1", StatementKind.PREPARED, "prepare"),
        ("SET search_path = 'lance'", StatementKind.SETTING, "set"),
        ("PRAGMA threads = 1", StatementKind.SETTING, "pragma"),
        ("USE lance", StatementKind.NAMING, "use"),
        ("ALTER DATABASE a RENAME TO b", StatementKind.NAMING, "alter"),
        ("alter /* the */ database a SET ALIAS TO b", StatementKind.NAMING, "alter"),
        ("ALTER TABLE t ADD COLUMN x INT", StatementKind.OTHER, "alter"),
        ("FORCE INSTALL lance", StatementKind.EXTENSION, "force"),
        ("COPY t TO 'x.csv'", StatementKind.FILES, "copy"),
        ("SHOW INDEXES FROM t", StatementKind.UPKEEP, "show"),
        ("SHOW TABLES", StatementKind.OTHER, "show"),
        ("WITH a AS (SELECT 1) FROM a", StatementKind.OTHER, "with"),
        ("delete FROM t", StatementKind.ROWS, "delete"),
        ("", StatementKind.OTHER, ""),
        ("(SELECT 1)", StatementKind.OTHER, ""),
        ("'BEGIN'", StatementKind.OTHER, ""),
    ],
)
def test_the_first_words_determine_the_statement_kind(sql: str, kind: StatementKind, word: str) -> None:
    first = FirstWords.of(sql)
    assert (first.kind, first.word, first.explain) == (kind, word, "")


@pytest.mark.parametrize(
    ("sql", "explain", "rest"),
    [
        ("EXPLAIN SELECT 1", "EXPLAIN ", "SELECT 1"),
        ("/* why */ explain ANALYZE\nSELECT 1", "explain ANALYZE\n", "SELECT 1"),
        ("EXPLAIN (FORMAT json, ANALYZE) FROM t", "EXPLAIN (FORMAT json, ANALYZE) ", "FROM t"),
        ("EXPLAIN(ANALYZE)FROM t", "EXPLAIN(ANALYZE)", "FROM t"),
        ("EXPLAIN (SELECT 1)", "EXPLAIN ", "(SELECT 1)"),
        ("EXPLAIN (ANALYZE) (SELECT 1)", "EXPLAIN (ANALYZE) ", "(SELECT 1)"),
    ],
)
def test_explain_is_separated_from_its_statement(sql: str, explain: str, rest: str) -> None:
    first = FirstWords.of(sql)
    assert (first.explain, sql[first.start :]) == (explain, rest)


@pytest.mark.parametrize("sql", ["EXPLAIN", "EXPLAIN;", "EXPLAINED SELECT 1", "EXPLAIN 'x'"])
def test_explain_needs_a_statement(sql: str) -> None:
    assert FirstWords.of(sql).explain == ""
