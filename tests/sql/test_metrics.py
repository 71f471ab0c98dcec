"""Statements are counted, `lance_metrics()` lists the metrics, and slow statements are logged without values."""

from __future__ import annotations

import gc
import logging
import random
import threading
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.duck import slow_statements
from lance_duck.duck.running_statement import kind_of
from lance_duck.duck.statement.masked import masked


def counts(con: Any, name: str, *labels: str) -> dict[Any, float]:
    """Return the values of a metric by the values of its labels."""
    chosen = "".join(f", labels['{label}']" for label in labels)
    rows = con.cursor().execute(f"SELECT value{chosen} FROM lance_metrics() WHERE name = '{name}'").fetchall()
    return {tuple(row[1:]): row[0] for row in rows}


@pytest.fixture(autouse=True, scope="module")
def _young_heap() -> None:
    """End statements of other modules, and make collections fast: they skip the objects that exist now."""
    gc.collect()
    gc.freeze()


def statements() -> Counter[tuple[str, str]]:
    gc.collect()  # ends statements of other tests
    found = [each for each in ld.metrics() if each.name == "lance_duck_statements_total"]
    return Counter({(each.labels["kind"], each.labels["outcome"]): int(each.value) for each in found})


def value(name: str) -> float:
    return sum(each.value for each in ld.metrics() if each.name == name)


def committed_appends() -> float:
    labels = {"operation": "Append", "outcome": "committed"}
    return sum(each.value for each in ld.metrics() if "commits_total" in each.name and each.labels == labels)


@pytest.fixture
def con(tmp_path: Path) -> Iterator[Any]:
    ld.write_dataset({"id": [1, 2, 3], "name": ["ada", "bob", "cyd"]}, tmp_path / "t.lance")
    with ld.connect(tmp_path) as con:
        yield con


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELECT 1", "select"),
        ("FROM t", "select"),
        ("(SELECT 1)", "select"),
        ("WITH a AS (SELECT 1) SELECT * FROM a", "select"),
        ("WITH a AS (SELECT 1 AS id) INSERT INTO t SELECT * FROM a", "insert"),
        ("/* x */ explain select 1", "explain"),
        ("VALUES (1)", "select"),
        ("START TRANSACTION", "begin"),
        ("secret_word 1", "other"),
        ("", "other"),
        ("SELECT '" + "x" * 30_000 + "'", "select"),
    ],
)
def test_the_kind_of_a_statement_is_one_of_few_words(sql: str, kind: str) -> None:
    assert kind_of(sql) == kind


def test_statements_are_counted_once_by_kind_and_outcome(con: Any) -> None:
    before = statements()
    con.execute("SELECT 1").fetchall()
    con.sql("FROM t").fetchall()
    con.execute("INSERT INTO t VALUES (4, 'dan'); SELECT 1; UPDATE t SET name = 'x' WHERE id = 1")
    con.executemany("INSERT INTO t VALUES (?, ?)", [[5, "e"], [6, "f"]])
    con.executemany("SELECT * FROM t WHERE id = ?", [[5], [6]])
    with pytest.raises(duckdb.Error):
        con.execute("SELECT nope FROM t")
    with pytest.raises(duckdb.Error):
        con.execute("SELECT * FROM missing")
    with pytest.raises(ld.LanceDuckError):
        con.execute("SET lance_recall = 7")
    con.append("t", con.sql("SELECT 9 AS id, 'z' AS name").df())
    con.close()  # ends the last statement whose rows are not read
    assert statements() - before == {
        ("select", "ok"): 5,
        ("insert", "ok"): 3,
        ("update", "ok"): 1,
        ("select", "error"): 2,
        ("set", "error"): 1,
    }
    assert value("lance_duck_running_statements") == 0


def test_the_running_statement_is_a_gauge(con: Any) -> None:
    rows = con.execute("SELECT value FROM lance_metrics() WHERE name = 'lance_duck_running_statements'").fetchall()
    assert rows == [(1,)]
    assert value("lance_duck_running_statements") == 0


def test_lance_metrics_lists_the_metrics_of_the_process(con: Any) -> None:
    con.execute("SELECT * FROM t").fetchall()
    rows = con.execute("DESCRIBE FROM lance_metrics()").fetchall()
    assert [row[:2] for row in rows] == [
        ("name", "VARCHAR"),
        ("kind", "VARCHAR"),
        ("labels", "MAP(VARCHAR, VARCHAR)"),
        ("value", "DOUBLE"),
    ]
    assert counts(con, "lance_duck_statements_total", "kind", "outcome")["select", "ok"] >= 1
    assert counts(con, "lance_duck_statement_seconds_bucket", "le").keys() >= {("0.1",), ("+Inf",)}
    assert counts(con, "lance_duck_statement_seconds_count")[()] >= 1
    (kinds,) = con.execute("SELECT list(DISTINCT kind ORDER BY kind) FROM lance_metrics()").fetchall()
    assert kinds == (["counter", "gauge", "histogram"],)


def test_lance_metrics_works_on_a_plain_connection() -> None:
    with duckdb.connect() as con:
        ld.register(con)
        assert con.execute("SELECT count(*) > 20 FROM lance_metrics()").fetchall() == [(True,)]


def random_work(con: Any, rng: random.Random, table: str, steps: int) -> Counter[str]:
    """Run random statements, and return what they must have counted."""
    done: Counter[str] = Counter()
    for _ in range(steps):
        step = rng.choice(("lookup", "native", "insert", "update", "error", "script", "streamed"))
        if step == "lookup":
            rows = con.execute(f"SELECT * FROM {table} WHERE id < ?", [rng.randrange(4)]).fetchall()
            done.update({"select ok": 1, "rows": len(rows)})
        elif step == "native":
            con.execute("SELECT 1, range FROM range(5)").fetchmany(3)
            done.update({"select ok": 1, "rows": 3})
        elif step == "insert":
            con.execute(f"INSERT INTO {table} VALUES ({rng.randrange(100)})")
            done.update({"insert ok": 1, "commits": 1})
        elif step == "update":
            con.execute(f"UPDATE {table} SET id = id + 1 WHERE id = 0")
            (rest,) = con.execute(f"SELECT count(*) FROM {table}").fetchone()
            assert rest
            done.update({"update ok": 1, "select ok": 1})
        elif step == "error":
            with pytest.raises(duckdb.Error):
                con.execute(f"SELECT nope FROM {table}")
            done["select error"] += 1
        elif step == "script":
            con.execute(f"INSERT INTO {table} VALUES (50); SELECT 1")
            done.update({"insert ok": 1, "select ok": 1, "commits": 1})
        else:
            con.execute(f"SELECT id FROM {table}").fetchone()
            done["select ok"] += 1
    return done


@pytest.mark.parametrize("seed", range(4))
def test_counts_equal_what_several_threads_did(tmp_path: Path, seed: int) -> None:
    with ld.connect(tmp_path) as con:
        for i in range(3):
            con.execute(f"CREATE TABLE t{i} AS SELECT range AS id FROM range(1, 9)")
        cursors = [con.cursor() for _ in range(3)]
        results: list[Counter[str]] = []
        before, rows = statements(), value("lance_duck_rows_returned_total")
        appends = committed_appends()

        def work(i: int) -> None:
            with cursors[i] as cursor:
                results.append(random_work(cursor, random.Random(seed * 3 + i), f"t{i}", 12))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(results) == 3
        done = sum(results, Counter[str]())
        expected = {tuple(key.split()): count for key, count in done.items() if " " in key}
        assert statements() - before == expected
        assert value("lance_duck_rows_returned_total") - rows == done["rows"]
        assert committed_appends() - appends == done["commits"]
        assert value("lance_duck_running_statements") == 0


# Statements whose rows are read later.

MANY = "SELECT range AS i, md5(range::VARCHAR) AS text FROM range(60000)"


def seconds() -> float:
    return value("lance_duck_statement_seconds_sum")


def running() -> float:
    return value("lance_duck_running_statements")


def ended(before: Counter[tuple[str, str]]) -> dict[str, int]:
    """Return how many SELECTs have ended since, by outcome."""
    return {outcome: count for (kind, outcome), count in (statements() - before).items() if kind == "select"}


READS: dict[str, Any] = {
    "fetchall": lambda rows: rows.fetchall(),
    "df": lambda rows: rows.df(),
    "fetchnumpy": lambda rows: rows.fetchnumpy(),
    "arrow": lambda rows: rows.to_arrow_table(),
    "reader": lambda rows: rows.to_arrow_reader(1000).read_all(),
    "filter": lambda rows: rows.filter("i > 3").fetchall(),
    "limit": lambda rows: rows.limit(50000).order("i").df(),
}


@pytest.mark.parametrize("name", READS)
def test_a_relation_is_counted_once_after_its_last_row(con: Any, name: str) -> None:
    before = statements()
    relation = con.sql(MANY)
    assert (ended(before), running()) == ({}, 0)
    planning = seconds()
    READS[name](relation)
    assert (ended(before), running()) == ({"ok": 1}, 0)
    assert seconds() > planning
    relation.fetchall()
    del relation
    assert (ended(before), running()) == ({"ok": 1}, 0)


def test_a_relation_that_is_never_read_is_counted_when_it_is_dropped(con: Any) -> None:
    before = statements()
    relation = con.sql("FROM t")
    assert ended(before) == {}
    del relation
    gc.collect()
    assert (ended(before), running()) == ({"ok": 1}, 0)


@pytest.mark.parametrize("is_relation", [True, False])
def test_a_statement_runs_until_its_arrow_reader_is_dropped(con: Any, is_relation: bool) -> None:
    before = statements()
    with warnings.catch_warnings(action="ignore"):  # DuckDB 2 prefers relations
        reader = con.sql(MANY).to_arrow_reader(1000) if is_relation else con.execute(MANY).fetch_record_batch(1000)
    assert reader.read_next_batch().num_rows
    assert (ended(before), running()) == ({}, 1)
    del reader
    assert (ended(before), running()) == ({"ok": 1}, 0)


def test_rows_that_are_fetched_in_parts_end_with_the_last_part(con: Any) -> None:
    before = statements()
    con.execute("SELECT * FROM t")
    assert len(con.fetchmany(2)) == 2
    assert (ended(before), running()) == ({}, 0)
    assert con.fetchone() is not None
    assert con.fetchone() is None
    assert (ended(before), running()) == ({"ok": 1}, 0)


def with_an_open_row(place: Path) -> Any:
    con = ld.connect(place)
    con.execute("SELECT * FROM t").fetchone()
    return con


@pytest.mark.parametrize(
    "end",
    [lambda con: con.execute("BEGIN"), lambda con: con.close(), lambda con: None],
    ids=["the next statement", "close", "drop"],
)
def test_rows_that_are_not_fetched_end_with(tmp_path: Path, end: Any) -> None:
    ld.write_dataset({"id": [1, 2, 3]}, tmp_path / "t.lance")
    before = statements()
    con = with_an_open_row(tmp_path)
    assert ended(before) == {}
    end(con)
    del con
    gc.collect()
    assert (ended(before), running()) == ({"ok": 1}, 0)


@pytest.mark.parametrize("name", ["fetchall", "df", "fetchnumpy"])
@pytest.mark.parametrize("is_relation", [True, False])
def test_an_error_between_rows_is_an_outcome(con: Any, name: str, is_relation: bool) -> None:
    sql = "SELECT CASE WHEN range < 2_999_999 THEN range ELSE error('late')::BIGINT END AS i FROM range(3_000_000)"
    before = statements()
    with pytest.raises(duckdb.Error, match="late"):
        READS[name](con.sql(sql) if is_relation else con.execute(sql))
    assert (ended(before), running()) == ({"error": 1}, 0)


def test_the_time_between_two_reads_is_left_out(con: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(10, 10_000, 10))
    monkeypatch.setattr("lance_duck.duck.running_statement.perf_counter", lambda: float(next(now)))
    before = seconds()
    relation = con.sql("FROM t")
    assert next(now)
    relation.fetchall()
    assert seconds() - before == 20


def test_slow_relations_are_logged_once_with_their_plan(con: Any, log: pytest.LogCaptureFixture) -> None:
    con.execute("SET lance_slow_statement_ms = 0")
    relation = con.sql("FROM t WHERE id > 1")
    assert slow(log) == []
    assert len(relation.fetchall()) == 2
    relation.fetchall()
    dropped = con.sql("FROM t WHERE id > 2")
    del relation, dropped
    first, second = slow(log)
    assert "LanceScan: uri=" in first.plan
    assert (second.statement, second.plan) == ("FROM t WHERE id > ?", None)


# The log of slow statements.


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.DEBUG, "lance_duck"):
        yield caplog


def slow(log: pytest.LogCaptureFixture) -> list[Any]:
    return [record for record in log.records if record.name == "lance_duck.slow"]


def test_no_statement_is_logged_by_default(con: Any, log: pytest.LogCaptureFixture) -> None:
    assert con.execute("SELECT current_setting('lance_slow_statement_ms')").fetchall() == [(None,)]
    con.execute("SELECT * FROM t").fetchall()
    assert slow(log) == []


def test_slow_statements_are_logged_with_their_plan(con: Any, log: pytest.LogCaptureFixture) -> None:
    con.execute("INSERT INTO t SELECT range, 'x' FROM range(10, 3000)")
    con.execute("CREATE INDEX by_id ON t USING BTREE (id)")
    con.execute("SET lance_slow_statement_ms = 0")
    assert con.execute("SELECT * FROM t WHERE id = 2 AND name = 'bob'").fetchall() == [(2, "bob")]
    con.execute("RESET lance_slow_statement_ms")
    con.execute("SELECT * FROM t")
    first, _ = slow(log)
    assert first.levelno == logging.WARNING
    assert first.statement == "SELECT * FROM t WHERE id = ? AND name = ?"
    assert first.seconds >= 0
    assert "LanceScan: uri=" in first.plan
    assert ", by by_id (BTree, segments " in first.plan
    assert first.getMessage() == f"{first.seconds:.3f} s: {first.statement}\n{first.plan}"
    assert "bob" not in first.getMessage()


def test_statements_below_the_limit_are_not_logged(con: Any, log: pytest.LogCaptureFixture) -> None:
    con.execute("SET lance_slow_statement_ms = 1e9")
    con.execute("SELECT * FROM t").fetchall()
    assert slow(log) == []


def test_the_limit_comes_from_the_environment_the_configuration_or_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def limit(con: Any) -> object:
        return con.execute("SELECT current_setting('lance_slow_statement_ms')").fetchall()[0][0]

    monkeypatch.setenv("LANCE_DUCK_SLOW_STATEMENT_MS", "250")
    with ld.connect() as con:
        assert limit(con) == 250
        con.execute("SET lance_slow_statement_ms = off")
        assert limit(con) is None
        con.execute("RESET lance_slow_statement_ms")
        assert limit(con) == 250
    with ld.connect(config={"lance_slow_statement_ms": 7.5}) as con:
        assert limit(con) == 7.5
    monkeypatch.setenv("LANCE_DUCK_SLOW_STATEMENT_MS", "soon")
    with pytest.raises(ld.InvalidInputError, match="LANCE_DUCK_SLOW_STATEMENT_MS"):
        ld.connect()


@pytest.mark.parametrize("bad", ["-1", "'soon'", "'nan'", "'inf'"])
def test_bad_limits_are_rejected(con: Any, bad: str) -> None:
    with pytest.raises(ld.InvalidInputError, match="lance_slow_statement_ms"):
        con.execute(f"SET lance_slow_statement_ms = {bad}")


def test_rows_that_are_not_fetched_yet_survive_the_log(con: Any) -> None:
    con.execute("SET lance_slow_statement_ms = 0")
    con.execute("SELECT id FROM t ORDER BY id")
    assert con.fetchone() == (1,)
    assert con.fetchall() == [(2,), (3,)]
    relation = con.sql("SELECT id FROM t WHERE id > 1 ORDER BY id")
    assert relation.fetchall() == [(2,), (3,)]


def test_every_kind_of_statement_gives_the_same_result_with_the_log(tmp_path: Path, log: Any) -> None:
    script = [
        ("CREATE TABLE a (id INTEGER, name VARCHAR)", None),
        ("INSERT INTO a VALUES (1, 'ada'), (2, 'bob')", None),
        ("BEGIN", None),
        ("UPDATE a SET name = 'eve' WHERE id = ?", [2]),
        ("SELECT * FROM a ORDER BY id", None),
        ("COMMIT", None),
        ("PREPARE p AS SELECT name FROM a WHERE id = $1", None),
        ("EXECUTE p(2)", None),
        ("CREATE TEMP TABLE n AS SELECT 7 AS seven", None),
        ("SELECT * FROM n, a WHERE a.id = $id", {"id": 1}),
        ("WITH w AS (SELECT 3 AS id, 'w' AS name) INSERT INTO a SELECT * FROM w RETURNING id", None),
        ("DELETE FROM a WHERE name = 'w'", None),
        ("EXPLAIN SELECT 1", None),
        ("SELECT nextval('q')", None),
        ("SELECT count(*) FROM lance_versions('a')", None),
    ]
    answers = []
    for limit in ("off", "0"):
        with ld.connect(tmp_path / limit, config={"lance_slow_statement_ms": limit}) as con:
            con.execute("CREATE TEMP SEQUENCE q")
            answers.append([con.execute(sql, values).fetchall() for sql, values in script])
    assert answers[0] == answers[1]
    assert len(slow(log)) == len(script) + 1


def test_failed_statements_are_logged_without_a_plan(con: Any, log: pytest.LogCaptureFixture) -> None:
    con.execute("SET lance_slow_statement_ms = 0")
    with pytest.raises(duckdb.Error):
        con.execute("SELECT error('boom') FROM t").fetchall()
    (record,) = slow(log)
    assert (record.statement, record.plan) == ("SELECT error(?) FROM t", None)


class FailingHandler(logging.Handler):
    """A handler that raises an error for each record."""

    def emit(self, record: logging.LogRecord) -> None:
        raise OSError("the disk is full")


def test_a_failing_log_never_fails_a_statement(con: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    con.execute("SET lance_slow_statement_ms = 0")
    handler = FailingHandler()
    logging.getLogger("lance_duck").addHandler(handler)
    try:
        assert con.execute("SELECT count(*) FROM t").fetchall() == [(3,)]
    finally:
        logging.getLogger("lance_duck").removeHandler(handler)
    monkeypatch.setattr(slow_statements, "masked", lambda _: 1 / 0)
    assert con.execute("SELECT count(*) FROM t").fetchall() == [(3,)]


# What records never contain.

PLANTED = (
    "planted_value",
    "314159265",
    "planted_parameter",
    "271828182",
    "planted_comment",
    "planted_password",
)


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("SELECT * FROM t WHERE name = 'planted_value' AND id < 314159265 -- planted_comment", None),
        ("SELECT * FROM t WHERE name IN ('planted_value', 'x') OR id = 314159265", None),
        ("SELECT * FROM t WHERE name LIKE '%planted_value%' /* planted_comment */ LIMIT 314159265", None),
        ("SELECT * FROM t WHERE name = ? AND id <> ?", ["planted_parameter", 271828182]),
        ("SELECT * FROM t WHERE name = $n", {"n": "planted_parameter"}),
        ("SELECT name || $$planted_value$$ AS x FROM t WHERE id = 314159265 GROUP BY ALL", None),
        ("INSERT INTO t VALUES (314159265, 'planted_value')", None),
        ("INSERT INTO t VALUES ($1, $2)", [271828182, "planted_parameter"]),
        ("UPDATE t SET name = 'planted_value' WHERE id = 314159265", None),
        ("DELETE FROM t WHERE name = 'line\nfragments: 1 of 1 planted_value'", None),
        ("SELECT * FROM t WHERE name = 'a\n  fragments: 314159265 of 3'", None),
        ("CREATE TABLE d AS SELECT 'planted_value' AS v", None),
        ("SELECT * FROM t WHERE match('planted_value')", None),
        ("FROM 's3://ana:planted_password@bucket/t.lance'", None),
        ('FROM "s3://ana:planted_password@bucket/t.lance"', None),
        ("CREATE SECRET (TYPE s3, KEY_ID 'ana', SECRET 'planted_password')", None),
        ("SELECT 'planted_value", None),
        ("SELECT nope, 'planted_value' FROM t", None),
    ],
)
def test_records_contain_neither_values_nor_secrets(
    con: Any, log: pytest.LogCaptureFixture, sql: str, values: Any
) -> None:
    con.execute("CREATE INDEX by_id ON t USING BTREE (id)")
    con.execute("SET lance_slow_statement_ms = 0")
    with suppress(duckdb.Error, ld.LanceDuckError):
        con.execute(sql, values).fetchall()
    records = [str({**vars(record), "args": record.args}) + record.getMessage() for record in log.records]
    assert slow(log)
    assert not [text for text in records for word in PLANTED if word in text]


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT 'it''s', 1.5e3, TRUE, 0x1F", "SELECT ?, ?, TRUE, ?"),
        ("SELECT 5 --7\n+6 /*8*/ + -9", "SELECT ? +? + -?"),
        ('SELECT "a b""c".d::INT, é', 'SELECT "a b""c".d::INT, é'),
        ("SELECT $name, ?", "SELECT $name, ?"),
        ("-- 5", "(a statement that DuckDB cannot read)"),
        ("SELECT a\n  -- 5\n FROM t", "SELECT a FROM t"),
        ("INSERT INTO t VALUES (1, 2, 3, 4, 5)", "INSERT INTO t VALUES (?, …)"),
        ("SELECT $tag$ x $tag$, date '2020-01-01'", "SELECT ?, date ?"),
        ("SELECT \ud800", "(a statement that DuckDB cannot read)"),
    ],
)
def test_masked_texts(sql: str, text: str) -> None:
    assert masked(sql) == text


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
LITERALS = st.one_of(
    TEXTS.map(lambda text: "'" + text.replace("'", "''") + "'"),
    TEXTS.filter(lambda text: "$" not in text).map(lambda text: f"$${text}$$"),
    st.integers(0, 10**30).map(str),
    st.floats(0, 1e300).map(repr),
)
COMMENTS = TEXTS.map(lambda text: "-- " + " ".join(text.splitlines()).replace("\r", "") + "\n") | TEXTS.filter(
    lambda text: "*" not in text and "/" not in text
).map(lambda text: f"/*{text}*/")


@given(LITERALS, LITERALS, COMMENTS)
def test_the_masked_text_depends_neither_on_values_nor_on_comments(one: str, other: str, comment: str) -> None:
    def sql(value: str, comment: str) -> str:
        return f'SELECT "a" + {value} AS b {comment} FROM t WHERE c = {value} {comment}'

    assert masked(sql(one, comment)) == masked(sql(other, "")) == 'SELECT "a" + ? AS b FROM t WHERE c = ?'


def test_long_statements_are_cut() -> None:
    assert len(masked("SELECT " + ", ".join(f"column{i}" for i in range(2_000)))) < 2_100
    many = "INSERT INTO t VALUES " + ", ".join(f"({i}, 'planted_value')" for i in range(100_000))
    assert "planted" not in masked(many)
