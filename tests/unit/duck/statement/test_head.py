"""Kinds of statements by their first words."""

from __future__ import annotations

import pytest

from lance_duck.duck.statement.head import FirstWords, Kind


@pytest.mark.parametrize(
    ("sql", "kind", "word"),
    [
        ("BEGIN", Kind.BEGIN, "begin"),
        (" ;\n-- one\n/* two * */ start TRANSACTION", Kind.BEGIN, "start"),
        ("commit;", Kind.COMMIT, "commit"),
        ("END", Kind.COMMIT, "end"),
        ("ABORT", Kind.ROLLBACK, "abort"),
        ("BEGINNING", Kind.OTHER, "beginning"),
        ("PREPARE p AS SELECT 1", Kind.PREPARED, "prepare"),
        ("SET search_path = 'lance'", Kind.SETTING, "set"),
        ("PRAGMA threads = 1", Kind.SETTING, "pragma"),
        ("USE lance", Kind.NAMING, "use"),
        ("ALTER DATABASE a RENAME TO b", Kind.NAMING, "alter"),
        ("alter /* the */ database a SET ALIAS TO b", Kind.NAMING, "alter"),
        ("ALTER TABLE t ADD COLUMN x INT", Kind.OTHER, "alter"),
        ("FORCE INSTALL lance", Kind.EXTENSION, "force"),
        ("COPY t TO 'x.csv'", Kind.FILES, "copy"),
        ("SHOW INDEXES FROM t", Kind.UPKEEP, "show"),
        ("SHOW TABLES", Kind.OTHER, "show"),
        ("WITH a AS (SELECT 1) FROM a", Kind.OTHER, "with"),
        ("delete FROM t", Kind.ROWS, "delete"),
        ("", Kind.OTHER, ""),
        ("(SELECT 1)", Kind.OTHER, ""),
        ("'BEGIN'", Kind.OTHER, ""),
    ],
)
def test_the_first_words_tell_the_kind(sql: str, kind: Kind, word: str) -> None:
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
def test_explain_is_told_apart_from_what_it_explains(sql: str, explain: str, rest: str) -> None:
    first = FirstWords.of(sql)
    assert (first.explain, sql[first.start :]) == (explain, rest)


@pytest.mark.parametrize("sql", ["EXPLAIN", "EXPLAIN;", "EXPLAINED SELECT 1", "EXPLAIN 'x'"])
def test_explain_needs_a_statement(sql: str) -> None:
    assert FirstWords.of(sql).explain == ""
