"""Lance tables follow all DuckDB settings that affect the meaning of SQL.

Each combination of setting and route runs the statements that the setting affects, on tables of the same rows.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.duck import planner
from lance_duck.duck.run import semi_join_pushdown
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE

UTC = dt.UTC
NAN = float("nan")

UNUSUAL = [
    ("default_collation", "nocase"),
    ("default_collation", "noaccent"),
    ("default_collation", "nocase.noaccent"),
    ("default_collation", "de"),
    ("default_null_order", "nulls_first"),
    ("default_null_order", "sqlite"),
    ("default_order", "desc"),
    ("TimeZone", "Asia/Tokyo"),
    ("TimeZone", "America/New_York"),
    ("Calendar", "buddhist"),
    ("Calendar", "japanese"),
    ("disable_timestamptz_casts", "true"),
    ("integer_division", "true"),
    ("ieee_floating_point_ops", "false"),
    ("error_on_division_by_zero", "false"),
    ("old_implicit_casting", "true"),
    ("legacy_disable_null_type", "true"),
    ("regex_match_operator_semantics", "full"),
    ("scalar_subquery_error_on_multiple_rows", "false"),
    ("order_by_non_integer_literal", "true"),
    ("preserve_identifier_case", "lowercase" if SPEAKS_SOURCE else "false"),
    ("lambda_syntax", "ENABLE_SINGLE_ARROW"),
    ("preserve_insertion_order", "false"),
    ("python_scan_all_frames", "true"),
    ("enable_optimizer", "false"),
    ("disabled_optimizers", "filter_pushdown,statistics_propagation"),
    ("arrow_large_buffer_size", "true"),
    ("arrow_lossless_conversion", "true"),
    ("arrow_output_list_view", "true"),
    ("arrow_output_version", "1.4"),
]
KNOWN = {name for (name,) in duckdb.execute("SELECT name FROM duckdb_settings()").fetchall()}
HERE = [pair for pair in UNUSUAL if pair[0] in KNOWN]


def _table() -> pa.Table:
    texts = ["a", "A", "á", "b", "B", "ß", "SS", "10", "9", None]
    rows = 120
    moment = dt.datetime(2024, 3, 10, 0, 30)
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "s": pa.array([texts[i % 10] for i in range(rows)], pa.string()),
            "large": pa.array([texts[i % 10] for i in range(rows)], pa.large_string()),
            "few": pa.array([texts[i % 10] for i in range(rows)], pa.string()).dictionary_encode(),
            "i": pa.array([None if i % 11 == 0 else i % 7 for i in range(rows)], pa.int32()),
            "d": pa.array([[1e308, -1e308, 0.5, NAN, None][i % 5] for i in range(rows)], pa.float64()),
            "tz": pa.array(
                [(moment + dt.timedelta(hours=i)).replace(tzinfo=UTC) for i in range(rows)], pa.timestamp("us", "UTC")
            ),
            "ts": pa.array([moment + dt.timedelta(hours=i) for i in range(rows)], pa.timestamp("us")),
            "day": pa.array([(moment + dt.timedelta(hours=i)).date() for i in range(rows)], pa.date32()),
            "Mixed": pa.array([i % 3 for i in range(rows)], pa.int32()),
            "vec": pa.array([[float(i % 5), float(i % 3), 1.0] for i in range(rows)], pa.list_(pa.float32(), 3)),
        }
    )


SMALL = {"s": ["A", "SS", "á", "10"], "i": pa.array([1, 2, 3, None], pa.int32())}
KEYS = pa.table({"large": pa.array(["A", "b"], pa.large_string()), "s": ["A", "b"]})

WHERE: list[tuple[str, list[Any]]] = [
    ("s = 'a'", []),
    ("s = ?", ["A"]),
    ("s IN ('a', 'b')", []),
    ("s IN (?, ?)", ["á", "SS"]),
    ("s BETWEEN 'A' AND 'a'", []),
    ("s >= 'b' AND id < 90", []),
    ("s <> 'a' AND id < 40", []),
    ("s LIKE 'a%'", []),
    ("starts_with(s, 'A')", []),
    ("s COLLATE NOCASE = 'a'", []),
    ("s = 'a' COLLATE NOCASE", []),
    ("s COLLATE NOCASE IN ('A', 'b')", []),
    ("s COLLATE NOACCENT = 'a' AND id < 90", []),
    ("large = 'a'", []),
    ("few = 'a'", []),
    ("s = 10", []),
    ("id = '7'", []),
    ("i = '3' AND id < 50", []),
    ("id::VARCHAR = '10'", []),
    ("id IN (3, 4, 70) AND s = 'B'", []),
    ("lower(id) = '5'", []),
    ("i / 2 = 1 AND id < 50", []),
    ("d * 10 > 0 AND id < 50", []),
    ("d / 0 > 1 AND id < 50", []),
    ("s ~ 'S' AND id < 50", []),
    ("i // 0 IS NULL AND id < 50", []),
    ("tz = '2024-03-10 09:30:00'", []),
    ("tz > '2024-03-13 00:00:00'", []),
    ("tz >= TIMESTAMP '2024-03-13 00:00:00'", []),
    ("tz = ?", [dt.datetime(2024, 3, 11, 3, 30)]),
    ("tz IN (?, ?)", [dt.datetime(2024, 3, 11, 3, 30, tzinfo=UTC), dt.datetime(2024, 3, 11, 4, 30)]),
    ("tz BETWEEN '2024-03-12' AND '2024-03-13'", []),
    ("tz = DATE '2024-03-12' OR tz < DATE '2024-03-11'", []),
    ("tz::VARCHAR LIKE '2024-03-11%'", []),
    ("tz::DATE = DATE '2024-03-12'", []),
    ("ts = ?", [dt.datetime(2024, 3, 11, 3, 30, tzinfo=UTC)]),
    ("ts > TIMESTAMPTZ '2024-03-13 00:00:00+00'", []),
    ("day = ?", [dt.datetime(2024, 3, 12, 0, 0, tzinfo=UTC)]),
    ("day >= '2024-03-13' AND ts < '2024-03-14'", []),
    ('MIXED = 2 AND "mixed" + 1 = 3 AND id < 30', []),
    ("i = (SELECT i FROM u WHERE i > 1) AND id < 50", []),
]
SELECTED = ["id, s", "count(*), max(id)", "count(*)", 'max(s), min("Mixed")']
TEXTS = [
    "s ILIKE '%abc%' OR contains(s, 'straße')",
    "s LIKE '%abc%'",
    "s ~ '.*abc.*'",
    "regexp_matches(s, 'ABC', 'i')",
    "lower(s) = 'abc'",
    "ends_with(s, 'abc')",
    "NOT (i > 2) AND s GLOB '*abc*'",
]
OTHERS: list[tuple[str, list[Any]]] = [
    ("SELECT s, count(*) FROM {t} t GROUP BY s ORDER BY s", []),
    ("SELECT i, id FROM {t} t WHERE id < 30 ORDER BY i, id", []),
    ("SELECT id FROM {t} t WHERE id < 30 ORDER BY 'x', id", []),
    ("SELECT DISTINCT s FROM {t} t WHERE id IN (1, 2, 3, 4, 5)", []),
    ("SELECT MIXED, Id AS Same FROM {t} t WHERE ID = 5", []),
    ("SELECT i / 2 AS half, tz::VARCHAR FROM {t} t WHERE id = 5", []),
    ("SELECT list_transform([1, id], lambda x: x + 1) FROM {t} t WHERE id = 5", []),
    ("SELECT t.id, u.s FROM {t} t JOIN u ON t.s = u.s", []),
    ("SELECT t.id, k.large FROM {t} t JOIN keys k ON t.large = k.large", []),
    ("SELECT t.id FROM {t} t JOIN keys k ON t.large = k.s", []),
    ("SELECT t.id FROM {t} t JOIN u ON t.few = u.s", []),
    ("SELECT t.id FROM {t} t JOIN u ON t.s = u.s COLLATE NOCASE", []),
    ("SELECT t.id FROM {t} t JOIN u ON t.id = u.i", []),
    ("SELECT id FROM {t} t WHERE s IN (SELECT s FROM u)", []),
    ("SELECT id FROM {t} t WHERE EXISTS (FROM u WHERE u.s = t.s AND u.i > 1)", []),
    ("SELECT id FROM {t} t WHERE id = (SELECT i FROM u WHERE s = 'a')", []),
    ("SELECT t.id FROM {t} t JOIN (VALUES ('a'), ('B')) v(s) ON t.s = v.s WHERE t.i > 2", []),
    *((f"SELECT id FROM {{t}} t WHERE {condition}", []) for condition in TEXTS),
]
NEAREST = "SELECT id, s FROM {t} t WHERE %s ORDER BY array_distance(vec, [1, 2, 3]::FLOAT[3]), id LIMIT 3"
LATERAL = (
    "SELECT n, m.id FROM q, LATERAL (SELECT id FROM {t} t WHERE %s ORDER BY array_distance(t.vec, q.v), id LIMIT 2) m"
)


def _statements() -> Iterator[tuple[str, list[Any]]]:
    for i, (condition, values) in enumerate(WHERE):
        yield f"SELECT {SELECTED[i % 2]} FROM {{t}} t WHERE {condition}", values
        yield f"SELECT {SELECTED[2 + i % 2]} FROM {{t}} t WHERE {condition}", values
        yield NEAREST % condition, values
        if i % 2 == 0 and not values:
            yield LATERAL % condition, values
    yield NEAREST % "true", []
    yield "SELECT id FROM {t} t ORDER BY array_distance(vec, ?::FLOAT[3]), s, id LIMIT 9", [[1.0, 2.0, 3.0]]
    yield from OTHERS


STATEMENTS = list(_statements())
FULL = os.environ.get("LANCE_DUCK_PROFILE") == "full"
WITHOUT_EFFECT_HERE = {
    *("lambda_syntax", "legacy_disable_null_type", "preserve_insertion_order", "python_scan_all_frames"),
    *("enable_optimizer", "disabled_optimizers", "scalar_subquery_error_on_multiple_rows"),
    *(name for name in KNOWN if name.startswith("arrow_")),
}


CELLS = [
    pytest.param(*pair, id="=".join(pair), marks=[pytest.mark.slow] if pair[0] in WITHOUT_EFFECT_HERE else [])
    for pair in HERE
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("settings")
    dataset = ld.write_dataset(_table(), path / "t.lance", max_rows_per_file=50)
    for name in ("id", "s", "large", "i", "tz", "ts", "day", "Mixed"):
        dataset.create_scalar_index(name, "BITMAP" if name in ("i", "Mixed") else "BTREE")
    return path


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Enable every route for tables of any size, and count its uses."""
    taken: dict[str, int] = {}
    for name in ("LARGE", "PER_KEY", "SMALLER", "SELECTIVE"):
        monkeypatch.setattr(semi_join_pushdown, name, 0)
    monkeypatch.setattr(ld.LanceDataset, "index_estimate", lambda *_: 1)
    rules = tuple(replace(rule, run=_noting(rule.run, taken)) for rule in planner.RULES)
    monkeypatch.setattr(planner, "RULES", rules)
    return taken


def _noting(run: Callable[..., Any], taken: dict[str, int]) -> Callable[..., Any]:
    name = run.__module__.rpartition(".")[2]

    def noted(*arguments: Any) -> Any:
        rewriting = run(*arguments)
        taken[name] = taken.get(name, 0) + (rewriting is not None)
        return rewriting

    return noted


@pytest.fixture
def both(folder: Path) -> Iterator[tuple[ld.Connection, duckdb.DuckDBPyConnection]]:
    with ld.connect(folder) as ours, duckdb.connect() as theirs:
        _fill(ours, own=False)
        _fill(theirs)
        yield ours, theirs


def _fill(con: Any, *, own: bool = True) -> None:
    """Create the small tables, and t as well unless it is a Lance table."""
    rows, small, _keys = _table(), pa.table(SMALL), KEYS  # noqa: F841
    con.execute("SET TimeZone = 'UTC'")
    if own:
        con.execute("CREATE TABLE memory.t AS FROM rows")
    con.execute("CREATE TABLE memory.u AS FROM small")
    con.execute("CREATE TABLE memory.keys AS FROM _keys")
    con.execute("CREATE TABLE memory.q AS SELECT n, [n, 1, 2]::FLOAT[3] AS v FROM range(3) r(n)")


def answer(run: Callable[[], Any], sql: str) -> Any:
    """Return rows, ordered only if the statement has an order, or the class of an error."""
    try:
        rows = [repr(row) for row in run()]
    except duckdb.Error as error:
        return type(error).__name__
    return rows if "ORDER BY" in sql and "LATERAL" not in sql else sorted(rows)


def differences(
    ours: Any, theirs: Any, statements: list[tuple[str, list[Any]]], way: Callable[[Any, str, list[Any]], Any]
) -> Iterator[tuple[str, list[Any], Any, Any]]:
    """Yield the statements whose results differ from those on native tables, with both results."""
    for template, values in statements:
        sql = template.format(t="t")
        found, expected = (answer(partial(way, each, sql, values), sql) for each in (ours, theirs))
        if found != expected:
            yield sql, values, found, expected


def _set(con: Any, name: str, value: str) -> None:
    con.execute(f"SET {name} = '{value}'")


def _by_execute(con: Any, sql: str, values: list[Any]) -> Any:
    """Return rows after their column names."""
    rows = con.execute(sql, values or None).fetchall()
    return [tuple(name for name, *_ in con.description), *rows]


def _by_relation(con: Any, sql: str, values: list[Any]) -> Any:
    return con.sql(sql, params=values or None).fetchall()


def _by_cursor(con: Any, sql: str, values: list[Any]) -> Any:
    with con.cursor() as cursor:
        return cursor.execute(sql, values or None).fetchall()


def _by_prepare(con: Any, sql: str, values: list[Any]) -> Any:
    con.execute(f"PREPARE p AS {sql}")
    try:
        listed = ", ".join(map(_literal, values))  # EXECUTE does not accept parameters
        return con.execute(f"EXECUTE p({listed})" if values else "EXECUTE p").fetchall()
    finally:
        con.execute("DEALLOCATE p")


def _literal(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP{'' if value.tzinfo is None else 'TZ'} '{value}'"
    return repr(value)


def _by_executemany(con: Any, sql: str, values: list[Any]) -> Any:
    return con.executemany(sql, [values, values]).fetchall() if values else con.execute(sql).fetchall()


def _by_table(con: Any, sql: str, values: list[Any]) -> Any:
    con.execute(f"CREATE OR REPLACE TEMP TABLE made AS {sql}", values or None)
    return con.execute("FROM made").fetchall()


def _by_view(con: Any, sql: str, values: list[Any]) -> Any:
    con.execute("CREATE OR REPLACE TEMP VIEW seen AS FROM t")
    return con.execute(sql.replace("FROM t t", "FROM seen t"), values or None).fetchall()


WAYS = {
    "relation": _by_relation,
    "cursor": _by_cursor,
    "prepare": _by_prepare,
    "executemany": _by_executemany,
    "create table": _by_table,
    "view": _by_view,
}


@pytest.fixture(scope="module")
def usual_answers() -> dict[str, Any]:
    """What DuckDB's own tables give under the usual settings, by the text of the statement."""
    with duckdb.connect() as theirs:
        _fill(theirs)
        return {sql: answer(partial(_by_execute, theirs, sql.format(t="t"), values), sql) for sql, values in STATEMENTS}


@pytest.mark.parametrize(("name", "value"), CELLS)
def test_statements_equal_those_of_duckdb_under_each_setting(
    both: tuple[Any, Any], eager: dict[str, int], usual_answers: dict[str, Any], name: str, value: str
) -> None:
    for each in both:
        _set(each, name, value)
    changed = [
        (sql, values)
        for sql, values in STATEMENTS
        if usual_answers[sql] != answer(partial(_by_execute, both[1], sql.format(t="t"), values), sql)
    ]
    assert changed or name in WITHOUT_EFFECT_HERE
    statements = STATEMENTS if FULL else [*changed, *STATEMENTS[::25]]
    assert list(differences(*both, statements, _by_execute)) == []
    for way in WAYS:
        few = changed if FULL else [*changed[:1], *changed[-1:]]
        statements = [(sql, values) for sql, values in few if way != "create table" or not values]
        assert list(differences(*both, statements, WAYS[way])) == [], way


def test_default_settings_take_every_execution_route(
    both: tuple[Any, Any], eager: dict[str, int], folder: Path
) -> None:
    assert list(differences(*both, STATEMENTS, _by_execute)) == []
    if not SPEAKS_SOURCE:  # DuckDB 1 only reads keys of the current database before a join
        with ld.connect({"t": folder / "t.lance"}) as ours:
            _fill(ours, own=False)
            assert list(differences(ours, both[1], STATEMENTS, _by_execute)) == []
    assert len(eager) == 5
    assert min(eager.values()) > 5


SETS = ["SET", "SET SESSION", "SET GLOBAL", "PRAGMA"]


@pytest.mark.parametrize("how", SETS)
def test_settings_apply_however_they_are_set(both: tuple[Any, Any], eager: dict[str, int], how: str) -> None:
    ours, _ = both
    sql = "SELECT count(*), max(id) FROM t WHERE s = 'a'"
    assert ours.execute(sql).fetchall() == [(12, 110)]
    ours.execute(f"{how} default_collation = 'nocase'")
    assert ours.execute(sql).fetchall() == [(24, 111)]
    ours.execute("RESET SESSION default_collation" if how == "SET SESSION" else "RESET default_collation")
    assert ours.execute(sql).fetchall() == [(12, 110)]
    ours.native.execute("SET default_collation = 'nocase'")
    assert ours.execute(sql).fetchall() == [(24, 111)]


def test_settings_of_another_cursor_apply_as_in_duckdb(both: tuple[Any, Any], eager: dict[str, int]) -> None:
    ours, _ = both
    sql = "SELECT count(*), max(id) FROM t WHERE s = 'a'"
    with ours.cursor() as other:
        other.execute(sql)
        ours.execute("SET SESSION default_collation = 'nocase'")
        assert (ours.execute(sql).fetchall(), other.execute(sql).fetchall()) == ([(24, 111)], [(12, 110)])
        ours.execute("SET GLOBAL default_collation = 'nocase'")
        assert other.execute(sql).fetchall() == [(24, 111)]


def test_a_relation_follows_later_settings(both: tuple[Any, Any], eager: dict[str, int]) -> None:
    statements = [
        (NEAREST % "s = 'a'").format(t="t"),
        (NEAREST % "tz > '2024-03-13'").format(t="t"),
        "SELECT t.id FROM t JOIN u ON t.s = u.s ORDER BY ALL",
    ]
    for setting in ("default_collation = 'nocase'", "TimeZone = 'Asia/Tokyo'", "default_order = 'desc'"):
        before = [[each.sql(sql) for sql in statements] for each in both]
        for each in both:
            each.execute(f"SET {setting}")
        found, expected = ([relation.fetchall() for relation in relations] for relations in before)
        assert found == expected, setting


def test_collations_of_columns_and_views_count(both: tuple[Any, Any], eager: dict[str, int]) -> None:
    for each in both:
        each.execute("CREATE TABLE memory.loose (s VARCHAR COLLATE NOCASE, v FLOAT[3])")
        each.execute("INSERT INTO loose VALUES ('A', [1, 1, 1]), ('ss', [0, 0, 0])")
        each.execute("CREATE VIEW memory.seen AS SELECT s COLLATE NOCASE AS s, v FROM loose")
    statements: list[tuple[str, list[Any]]] = [
        ("SELECT t.id FROM {t} t JOIN loose l ON t.s = l.s", []),
        ("SELECT t.id FROM {t} t JOIN seen l ON t.s = l.s", []),
        ("SELECT t.id FROM {t} t WHERE s IN (SELECT s FROM loose)", []),
        *(
            (
                f"SELECT l.s, m.id FROM {name} l, LATERAL (SELECT id FROM {{t}} t "
                "ORDER BY array_distance(t.vec, l.v), id LIMIT 2) m WHERE l.s = 'a'",
                [],
            )
            for name in ("loose", "seen")
        ),
    ]
    assert list(differences(*both, statements, _by_execute)) == []
    for each in both:
        each.execute("DROP TABLE loose")
    assert list(differences(*both, [("SELECT t.id FROM {t} t JOIN u ON t.s = u.s", [])], _by_execute)) == []


@pytest.mark.parametrize(("name", "value"), CELLS)
def test_tables_on_a_plain_connection_follow_its_settings(folder: Path, name: str, value: str) -> None:
    with duckdb.connect() as con:
        ld.register(con)
        con.register("dataset", ld.dataset(folder / "t.lance"))
        _fill(con)
        _set(con, name, value)
        for template, values in STATEMENTS[:: 1 if FULL else 20]:
            expected = answer(partial(_by_execute, con, template.format(t="t"), values), template)
            for source in ("dataset", f"lance_scan('{folder / 't.lance'}')"):
                sql = template.format(t=source)
                assert answer(partial(_by_execute, con, sql, values), template) == expected, (sql, values)


def test_the_filter_of_a_search_means_the_same_under_all_settings(both: tuple[Any, Any], folder: Path) -> None:
    ours, _ = both
    sql = "SELECT id FROM lance_vector_search('t', 'vec', [1, 2, 3]::FLOAT[], k := 200, filter := $f) ORDER BY id ASC"
    for condition in ("s = 'a'", "tz > '2024-03-13 00:00:00'", "i / 2 = 1.5", "lower(s) = 'a'"):
        expected = [(row,) for row in ld.dataset(folder / "t.lance").to_table(filter=condition)["id"].to_pylist()]
        for name, value in HERE:
            _set(ours, name, value)
            assert ours.execute(sql, {"f": condition}).fetchall() == expected, (name, value, condition)
            ours.execute(f"RESET {name}")


def test_at_timestamp_uses_the_time_zone_of_the_connection(
    tmp_path: Path, connect: Callable[..., ld.Connection]
) -> None:
    dataset = ld.write_dataset(pa.table({"id": [1, 2]}), tmp_path / "t.lance")
    dataset.insert(pa.table({"id": [3]}))
    first, second = (each["timestamp"].astimezone(UTC) for each in dataset.versions())
    between = first + (second - first) / 2
    con = connect(tmp_path)
    for zone in ("Asia/Tokyo", "America/New_York", "UTC"):
        con.execute(f"SET TimeZone = '{zone}'")
        local = between.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        assert con.execute(f"SELECT count(*) FROM t AT (TIMESTAMP => TIMESTAMP '{local}')").fetchall() == [(2,)]
        assert con.execute("SELECT count(*) FROM lance_scan('t', asof := ?)", [local]).fetchall() == [(2,)]
        con.execute("SET Calendar = 'buddhist'")
        assert con.execute("SELECT count(*) FROM lance_scan('t', asof := ?)", [between]).fetchall() == [(2,)]
        con.execute("RESET Calendar")
