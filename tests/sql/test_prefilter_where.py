"""WHERE next to `prefilter := true` chooses among all rows, whatever the condition contains."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from sql.random_conditions import Conditions

import lance_duck as ld
from lance_duck.errors import InvalidInputError, LanceDuckError

ROWS = 400
WORDS = ("lake", "duck", "goose", "pond")


def photos() -> pa.Table:
    numbers = np.arange(ROWS)
    vectors = np.column_stack([numbers, numbers % 7]).astype(np.float32)
    return pa.table(
        {
            "id": numbers,
            "label": pa.array([None if i % 11 == 10 else int(i % 9) for i in numbers]),
            "body": [f"{WORDS[i % 4]} number {i}" + " duck" * (i % 3) for i in numbers],
            "j": pa.array([f'{{"a": {i % 9}}}' for i in numbers], pa.json_()),
            "tags": [["rare", "b"] if i % 40 == 39 else ["a"] * (i % 3) for i in numbers],
            "s": [{"n": int(i % 50), "t": {"x": f"p{i % 60}"}} for i in numbers],
            "day": pa.array([18_262 + int(i) for i in numbers], pa.int32()).cast(pa.date32()),
            "moment": pa.array([1_577_836_800 + 3600 * int(i) for i in numbers], pa.int64()).cast(
                pa.timestamp("s", "UTC")
            ),
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 2),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    dataset = ld.write_dataset(photos(), folder / "t.lance", max_rows_per_file=150)
    dataset.create_index("vec", "IVF_FLAT", num_partitions=16)
    dataset.create_scalar_index("body", "INVERTED")
    dataset.create_scalar_index("label", "BTREE")
    ld.write_dataset(photos().slice(0, 30).select(["id", "label"]), folder / "u.lance")
    return folder


@pytest.fixture
def con(folder: Path, connect: Callable[..., ld.Connection]) -> ld.Connection:
    con = connect(folder)
    con.execute("SET TimeZone = 'UTC'")
    native = photos()
    con.native.register("rows_of_t", native)
    con.native.execute("CREATE TEMP TABLE reference AS FROM rows_of_t")
    con.native.unregister("rows_of_t")
    return con


CALLS = {
    "vector": "lance_vector_search('t', 'vec', [3.2, 1.1], k := 5, prefilter := true{})",
    "text": "lance_fts('t', 'body', 'duck goose', k := 5, prefilter := true{})",
    "hybrid": "lance_hybrid_search('t', 'vec', [3.2, 1.1], 'body', 'duck', k := 5, prefilter := true{})",
}

CONDITIONS = [
    "label = 1",
    "array_has(tags, 'rare')",
    "list_contains(tags, 'rare')",
    "array_has_any(tags, ['rare', 'none']) AND id > 50",
    "list_has_all(tags, ['a', 'a'])",
    "tags[1] = 'rare'",
    "tags && ['rare']",
    "len(tags) = 2",
    "tags = ['a', 'a']",
    "'rare' IN tags",
    "list_filter(tags, lambda x: x = 'rare') <> []",
    "[x FOR x IN tags IF x = 'rare'] <> []",
    "s.n >= 49",
    "s['n'] >= 49",
    "struct_extract(s, 'n') >= 49",
    "s.t.x = 'p59'",
    "s['t']['x'] = 'p59'",
    "length(body) > 23",
    "body LIKE '%99%'",
    "body NOT LIKE '%number _ %' AND body ILIKE 'GOOSE%'",
    "body ~ '.*39.*'",
    "regexp_matches(body, '[37]9')",
    "starts_with(body, 'goose') AND contains(body, '2')",
    "label BETWEEN 7 AND 8 AND s.n NOT BETWEEN 10 AND 40",
    "label IN (7, 8) AND NOT (label = 7)",
    "label IS NULL",
    "label IS DISTINCT FROM 3 AND label IS NOT NULL AND id % 13 = 5",
    "CASE WHEN label = 8 THEN s.n > 30 ELSE false END",
    "CASE label WHEN 8 THEN 'x' END = 'x' AND id > 100",
    "id::VARCHAR LIKE '%77%'",
    "TRY_CAST(right(body, 2) AS INTEGER) = 61",
    "CAST(label AS DOUBLE) / 2 = 3.5",
    "id // 100 = 3",
    "id & 63 = 63",
    "coalesce(label, 42) = 42",
    "greatest(label, 8) = 8 AND least(id, 300) = 300",
    "year(day) = 2021",
    "date_trunc('month', day) = DATE '2020-03-01'",
    "day BETWEEN '2020-05-01' AND DATE '2020-05-01' + INTERVAL 9 DAY",
    "date_part('dow', day) = 3 AND extract(month FROM day) = 6",
    "moment > TIMESTAMPTZ '2020-01-15 00:00:00+00'",
    "hour(moment) = 23",
    "label = 1 OR array_has(tags, 'rare')",
    "NOT (length(body) < 23 OR label < 5)",
    "(label = 1 AND (s.n = 10 OR s.n = 1)) OR tags[2] = 'b'",
    "(s.n, label) = (20, 2)",
    '"label" = 1 AND "tags"[1] = \'a\'',
    "LABEL = 1 AND Body LIKE '%1%'",
    "hash(id) % 2 = 0 AND md5(body) > '8'",
    "(j -> 'a')::INTEGER = 7",
    "j ->> '$.a' = '7'",
    "array_distance(vec, [60, 4]::FLOAT[2]) < 4",
    "vec[1] > 300",
    "id IN [50, 60, 70]",
    "label = 1 AND _rank > 0",
    "1 = 0",
    "2 > 1 AND label = 8",
]


def found(
    con: ld.Connection, call: str, condition: str, sql: str = "SELECT {rank}, id FROM {call} WHERE {where}"
) -> Any:
    rank = {"vector": "_distance", "text": "_score", "hybrid": "_hybrid_score"}[call]
    text = sql.format(rank=rank, call=CALLS[call].format(""), where=condition.replace("_rank", rank))
    return con.execute(text).fetchall()


def expected(con: ld.Connection, call: str, condition: str) -> Any:
    """The best of the rows that DuckDB finds in a native table."""
    where = condition.replace(" AND _rank > 0", "")
    ids = [row[0] for row in con.native.execute(f"SELECT id FROM reference WHERE {where}").fetchall()]
    rank = {"vector": "_distance", "text": "_score", "hybrid": "_hybrid_score"}[call]
    listed = f"id IN ({', '.join(map(str, ids))})" if ids else "false"
    return con.execute(f"SELECT {rank}, id FROM {CALLS[call].format(f', filter := $$ {listed} $$')}").fetchall()


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("call", CALLS)
def test_where_chooses_among_all_rows(con: ld.Connection, call: str, condition: str) -> None:
    rows = found(con, call, condition)
    assert rows == expected(con, call, condition)
    assert condition in ("1 = 0", "hash(id) % 2 = 0 AND md5(body) > '8'") or rows != []


@pytest.mark.parametrize(
    ("statement", "parameters"),
    [
        ("SELECT id FROM {call} WHERE array_has(tags, 'rare')", None),
        ("SELECT id FROM {call} WHERE array_has(tags, ?)", ["rare"]),
        ("SELECT id FROM {call} WHERE array_has(tags, ?) AND id < ?", ["rare", 10_000]),
        ("SELECT id FROM {call} WHERE tags && $words", {"words": ["rare"]}),
        ("SELECT ? IS NULL, id FROM {call} WHERE array_has(tags, ?) AND ? = 1", [None, "rare", 1]),
        ("SELECT x.id FROM {call} AS x WHERE array_has(x.tags, 'rare')", None),
        ('SELECT id FROM {call} "A b" WHERE array_has("A b".tags, \'rare\')', None),
        ("SELECT s.id FROM {call} s WHERE array_has(s.tags, 'rare') AND s.n >= 0", None),
        ("FROM {call} AS r(a, b, c, d, e) SELECT a WHERE array_has(e, 'rare')", None),
        ("SELECT id, tags[1] AS first FROM {call} WHERE first = 'rare'", None),
        ("SELECT id, _distance AS far, tags[1] AS first FROM {call} WHERE first = 'rare' AND far >= 0", None),
        ("FROM {call} SELECT id WHERE (((array_has(tags, 'rare')) AND (_distance >= 0)))", None),
        ("WITH best AS (SELECT id FROM {call} WHERE array_has(tags, 'rare')) FROM best", None),
        ("WITH best AS MATERIALIZED (FROM {call} WHERE array_has(tags, 'rare')) SELECT id FROM best WHERE true", None),
        ("SELECT * FROM (SELECT id FROM {call} WHERE array_has(tags, 'rare')) AS q", None),
        ("SELECT id FROM t WHERE id IN (SELECT id FROM {call} WHERE array_has(tags, 'rare'))", None),
        ("SELECT r.id FROM {call} AS r JOIN t ON t.id = r.id WHERE array_has(r.tags, 'rare') AND t.id >= 0", None),
        ("SELECT r.id FROM t JOIN {call} AS r USING (id) WHERE array_has(r.tags, 'rare')", None),
        ("SELECT r.id FROM {call} AS r LEFT JOIN u ON u.id = r.id WHERE array_has(tags, 'rare')", None),
        ("SELECT r.id FROM {call} AS r SEMI JOIN t ON t.id = r.id WHERE array_has(tags, 'rare')", None),
        ("SELECT id FROM {call} WHERE array_has(tags, 'rare') GROUP BY id HAVING count(*) > 0 ORDER BY id", None),
        ("SELECT id FROM {call} WHERE array_has(tags, 'rare') UNION ALL SELECT id FROM u WHERE id < 0", None),
        ("SELECT id FROM {call} WHERE array_has(tags, 'rare') /* AND */ -- AND id = 1", None),
        ("SELECT id FROM {call} WHERE array_has(tags, getvariable('word'))", None),
        ("SELECT id FROM {call} WHERE is_rare(tags)", None),
        ("SELECT id FROM {call} WHERE tags[1]::kind = 'rare'", None),
    ],
)
@pytest.mark.parametrize("method", ["execute", "sql"])
def test_every_form_of_a_query_chooses_among_all_rows(
    con: ld.Connection, method: str, statement: str, parameters: Any
) -> None:
    con.execute("SET VARIABLE word = 'rare'; CREATE TEMP MACRO is_rare(list) AS list_contains(list, 'rare')")
    con.execute("CREATE TYPE IF NOT EXISTS kind AS ENUM ('rare', 'a')")
    options = {} if parameters is None else {"parameters" if method == "execute" else "params": parameters}
    rows = getattr(con, method)(statement.format(call=CALLS["vector"].format("")), **options).fetchall()
    ids = {value for row in rows for value in row if isinstance(value, int) and not isinstance(value, bool)}
    assert ids == {39, 79, 119, 159, 199}


@pytest.mark.parametrize(
    "argument",
    [
        *("prefilter := true", "prefilter => 1", "prefilter := 'true'", "prefilter = TRUE", "PreFilter := 'T'"),
        *('"prefilter" := 1 = 1', "prefilter := NOT false", "prefilter := CAST('yes' AS BOOLEAN)"),
    ],
)
@pytest.mark.parametrize("call", CALLS)
def test_every_spelling_of_true_is_read(con: ld.Connection, call: str, argument: str) -> None:
    sql = f"SELECT id FROM {CALLS[call].format('')} WHERE tags[1] = 'rare'".replace("prefilter := true", argument)
    assert con.execute(sql).fetchall() == [(i,) for _, i in expected(con, call, "tags[1] = 'rare'")]


@pytest.mark.parametrize("value", [True, 1, "true"])
def test_prefilter_and_the_table_may_be_parameters(con: ld.Connection, value: object) -> None:
    sql = "SELECT id FROM lance_fts(?, 'body', ?, k := ?, prefilter := ?) WHERE tags[1] = ? AND id > 40"
    assert len(con.execute(sql, ["t", "goose duck", 4, value, "rare"]).fetchall()) == 4
    assert con.execute(sql, ["t", "goose duck", 4, False, "rare"]).fetchall() == []


@pytest.mark.parametrize("argument", ["", ", prefilter := false", ", prefilter := 0", ", prefilter := NULL"])
def test_without_prefilter_where_filters_the_rows_found(con: ld.Connection, argument: str) -> None:
    sql = f"SELECT id FROM lance_vector_search('t', 'vec', [3.2, 1.1], k := 5{argument}) WHERE tags[1] = 'rare'"
    assert con.execute(sql).fetchall() == []


@pytest.mark.parametrize("given", ["'id > 100'", "'id > 100 -- hundred'", "concat('id > ', 100)", "?", "NULL"])
@pytest.mark.parametrize("condition", ["tags[1] = 'rare'", "is_rare(tags)"])
def test_where_adds_to_the_filter(con: ld.Connection, given: str, condition: str) -> None:
    con.execute("CREATE TEMP MACRO is_rare(list) AS list_contains(list, 'rare')")
    call = CALLS["vector"].format(f", filter := {given}")
    rows = con.execute(f"SELECT id FROM {call} WHERE {condition}", ["id > 100"] if given == "?" else None).fetchall()
    first = 39 if given == "NULL" else 119
    assert rows == [(first + 40 * i,) for i in range(5)]


def test_changes_read_the_rows_that_where_chooses(con: ld.Connection, tmp_path: Path) -> None:
    search = f"(SELECT id FROM {CALLS['vector'].format('')} WHERE tags[1] = 'rare')"
    con.execute(f"ATTACH '{tmp_path}' AS w (TYPE LANCE)")
    con.execute(f"CREATE TABLE w.main.best AS {search}")
    assert con.execute("FROM w.main.best").fetchall() == [(39,), (79,), (119,), (159,), (199,)]
    assert con.execute(f"UPDATE w.main.best SET id = -id WHERE id IN {search} AND id > 100").fetchall() == [(3,)]
    assert con.execute(f"INSERT INTO w.main.best {search}").fetchall() == [(5,)]
    assert con.execute(f"DELETE FROM w.main.best WHERE id IN {search}").fetchall() == [(7,)]
    merge = f"MERGE INTO w.main.best b USING {search} s ON s.id = -b.id WHEN MATCHED THEN DELETE"
    assert con.execute(merge).fetchall() == [(3,)]
    insert = f"INSERT INTO w.main.best SELECT id FROM {CALLS['vector'].format('')} WHERE tags[1] = ? AND id > ?"
    con.executemany(insert, [["rare", 200], ["rare", 300]])
    assert sorted(con.execute("FROM w.main.best").fetchall()) == [
        (239,), (279,), (319,), (319,), (359,), (359,), (399,), (399,)
    ]  # fmt: skip
    con.execute(f"COPY {search} TO '{tmp_path}/best.csv'")
    assert (tmp_path / "best.csv").read_text().split() == ["id", "39", "79", "119", "159", "199"]


def test_update_and_delete_join_the_rows_that_where_chooses(con: ld.Connection, tmp_path: Path) -> None:
    con.execute(f"ATTACH '{tmp_path}' AS w (TYPE LANCE)")
    con.execute("CREATE TABLE w.main.best AS SELECT id, 0 AS hits FROM t")
    call = f"{CALLS['vector'].format('')} AS r WHERE r.tags[1] = 'rare' AND b.id = r.id"
    assert con.execute(f"UPDATE w.main.best AS b SET hits = 1 FROM {call}").fetchall() == [(5,)]
    assert con.execute(f"DELETE FROM w.main.best AS b USING {call}").fetchall() == [(5,)]


@pytest.mark.parametrize("value", ["'rare'", "upper('rare').lower()", "concat('ra', 're')"])
def test_prepared_statements_choose_among_all_rows(con: ld.Connection, value: str) -> None:
    if ".lower()" in value and duckdb.__version__ < "2":
        pytest.skip("DuckDB 1 does not parse the value")
    con.execute(f"PREPARE best AS SELECT id FROM {CALLS['vector'].format('')} WHERE tags[1] = $1")
    assert len(con.execute(f"EXECUTE best({value})").fetchall()) == 5


def test_views_and_relations_choose_among_all_rows_of_each_version(con: ld.Connection, tmp_path: Path) -> None:
    ld.write_dataset(photos(), tmp_path / "w.lance")
    con.execute(f"ATTACH '{tmp_path}' AS w (TYPE LANCE)")
    search = CALLS["vector"].format("").replace("'t'", "'w.main.w'")
    con.execute(f"CREATE TEMP VIEW best AS SELECT id FROM {search} WHERE array_has(tags, 'rare')")
    relation = con.sql(f"SELECT id FROM {search} WHERE array_has(tags, ?)", params=["rare"])
    for _ in range(2):
        assert con.execute("FROM best").fetchall() == [(39,), (79,), (119,), (159,), (199,)]
    assert relation.fetchall() == [(39,), (79,), (119,), (159,), (199,)]
    con.execute("DELETE FROM w.main.w WHERE id = 39")
    assert con.execute("FROM best").fetchall() == [(79,), (119,), (159,), (199,), (239,)]


def test_settings_keep_their_meaning(con: ld.Connection) -> None:
    call = CALLS["vector"].format("")
    con.execute("SET TimeZone = 'America/New_York'; SET default_collation = 'nocase'; SET integer_division = true")
    for condition in (
        "hour(moment) = 17",
        "moment < '2020-01-01 00:00:00'",
        "body = 'DUCK NUMBER 1 DUCK'",
        "id / 100 = 3",
    ):
        ids = con.native.execute(
            f"SELECT id FROM reference WHERE {condition} ORDER BY array_distance(vec, [3.2, 1.1]::FLOAT[2]) LIMIT 5"
        ).fetchall()
        assert len(ids) > 0
        assert con.execute(f"SELECT id FROM {call} WHERE {condition}").fetchall() == ids
    relation = con.sql(f"SELECT count(*) FROM {call} WHERE hour(moment) = 17")
    assert relation.fetchall() == [(5,)]


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("id IN (SELECT id FROM u)", "a subquery"),
        ("label = 1 AND EXISTS (FROM u WHERE u.id = r.id)", "a subquery"),
        ("id > (SELECT min(id) FROM u)", "a subquery"),
        ("random() < 2", "random()"),
        ("id < 1000 * random()", "random()"),
        ("uuid()::VARCHAR <> body", "uuid()"),
        ("label = 1 OR _distance < 3", "_distance"),
        ("COLUMNS('label') = 1", "*"),
        ("r IS NOT NULL", "the whole row"),
    ],
)
def test_other_conditions_are_errors_that_name_filter(con: ld.Connection, condition: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=r"WHERE cannot choose rows.*filter := '") as error:
        con.execute(f"SELECT id FROM {CALLS['vector'].format('')} AS r WHERE {condition}")
    assert words in str(error.value)
    assert con.execute("SELECT 1").fetchall() == [(1,)]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT r.id FROM {call} AS r, u WHERE r.label = u.label",
        "SELECT r.id FROM {call} AS r JOIN u ON true WHERE r.label + u.label = 3",
        "SELECT (SELECT count(*) FROM {call} AS r WHERE r.label = u.label) FROM u",
        "SELECT r.id FROM u LEFT JOIN {call} AS r ON r.id = u.id WHERE r.label IS NULL",
        "SELECT r.id FROM {call} AS r FULL JOIN u ON r.id = u.id WHERE r.label = 1",
        "CREATE MACRO best(x) AS TABLE SELECT id FROM {call} WHERE label = x",
        "CREATE VIEW best AS SELECT id FROM {call} WHERE is_rare(tags)",
    ],
)
def test_columns_of_other_tables_are_errors_that_name_filter(con: ld.Connection, statement: str) -> None:
    con.execute("CREATE TEMP MACRO is_rare(list) AS list_contains(list, 'rare')")
    with pytest.raises(InvalidInputError, match=r"WHERE cannot choose rows.*filter := '"):
        con.execute(statement.format(call=CALLS["vector"].format("")))


@pytest.mark.parametrize(
    ("condition", "error"),
    [("nothing = 1", duckdb.BinderException), ("nothing(label)", duckdb.CatalogException), ("label =", duckdb.Error)],
)
def test_wrong_conditions_have_duckdbs_errors(con: ld.Connection, condition: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        con.execute(f"SELECT id FROM {CALLS['text'].format('')} WHERE {condition}")


def test_conditions_on_result_columns_filter_the_rows_found(con: ld.Connection) -> None:
    sql = f"SELECT id FROM {CALLS['vector'].format('')} AS r WHERE r._distance < 10 AND 1 < 2 AND label > 2"
    assert con.execute(sql).fetchall() == [(3,), (4,)]


def rows_or_error(con: ld.Connection, sql: str) -> Any:
    try:
        return con.execute(sql).fetchall()
    except (duckdb.Error, LanceDuckError) as error:
        return str(error)


@pytest.mark.parametrize("seed", range(2))
def test_random_conditions_choose_among_all_rows(tmp_path: Path, seed: int) -> None:
    conditions = Conditions(tmp_path, Random(seed))
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(96, dtype=np.float32)), 2)
    rows = conditions.native.sql("FROM t ORDER BY k").to_arrow_table()
    texts = [f"duck {'lake ' * (i % 5)}" for i in range(48)]
    dataset = ld.write_dataset(rows.append_column("vec", vectors).append_column("body", [texts]), tmp_path / "x.lance")
    for column, kind in (("i", "BTREE"), ("s", "BITMAP"), ("k", "ZONEMAP"), ("l", "LABEL_LIST"), ("body", "INVERTED")):
        dataset.create_scalar_index(column, kind)
    con = conditions.lance
    chosen = 0
    for _ in range(25):
        condition = conditions.condition()
        call = conditions.random.choice(list(CALLS.values())).replace("'t'", "'x'")
        try:
            ids = [row[0] for row in conditions.native.execute(f"SELECT k FROM t AS z WHERE {condition}").fetchall()]
        except duckdb.Error:
            ids = None
        mine = rows_or_error(con, f"SELECT k FROM {call.format('')} AS z WHERE {condition}")
        if isinstance(mine, str):
            depends_on_order = "evaluation failed" in mine
            assert ids is None or depends_on_order or "FROM n" in condition, f"{condition}: {mine}"
        if isinstance(mine, str) or ids is None:
            continue  # DuckDB may evaluate other rows first
        listed = f"k IN ({', '.join(map(str, ids))})" if ids else "false"
        wanted = con.execute(f"SELECT k FROM {call.format(f', filter := $${listed}$$')}").fetchall()
        assert mine == wanted, condition
        chosen += len(mine) > 0
    assert chosen > 4
    conditions.close()


NAMES = (
    *("t", "T", '"t"', "main.t", '"main"."t"', "lance.t", 'LANCE."T"', "lance.main.t", "{folder}/t.lance"),
    *("a.b", '"a.b"', 'main."a.b"', 'lance."a.b"', "ab C", '"ab C"', 'we "i;r.d', '"we ""i;r.d"', 'main."we ""i;r.d"'),
)


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ld.Connection]:
    folder = tmp_path_factory.mktemp("named")
    con = ld.connect(folder)
    con.execute(f"ATTACH '{folder / 'other'}' AS other (TYPE lance)")
    names = ("lance.t", 'lance."a.b"', 'lance."ab C"', 'lance."we ""i;r.d"', "other.t", "other.u")
    for at, name in enumerate(names):
        ids = f"i + {1000 * (at > 3)} AS id"
        con.execute(
            f"CREATE TABLE {name} AS SELECT {ids}, [i, 0]::FLOAT[2] AS v, i % 10 AS k, 'x' AS s FROM range(90) r(i)"
        )
    return folder, con


def by_name(con: ld.Connection, name: str, call: str) -> list[tuple[object, ...]]:
    arguments = {
        "lance_vector_search": "'v', [0, 0]",
        "lance_fts": "'s', 'x'",
        "lance_hybrid_search": "'v', [0, 0], 's', 'x'",
    }[call]
    sql = f"SELECT id FROM {call}({{}}, {arguments}, k := 3, prefilter := true) WHERE k = 7 ORDER BY id"
    text = "'" + name.replace("'", "''") + "'"
    rows = con.execute(sql.format(text)).fetchall()
    assert con.sql(sql.format(text)).fetchall() == rows
    assert con.execute(sql.format("?"), [name]).fetchall() == rows
    assert con.execute(sql.format("$Name"), {"nAME": name}).fetchall() == rows
    return rows


@pytest.mark.parametrize("call", ["lance_vector_search", "lance_fts", "lance_hybrid_search"])
def test_the_condition_applies_whatever_the_spelling_of_the_table(named: tuple[Path, ld.Connection], call: str) -> None:
    folder, con = named
    for name in NAMES:
        assert by_name(con, name.replace("{folder}", str(folder)), call) == [(7,), (17,), (27,)], name
    for name in ("other.t", 'other."T"', "other.main.u"):
        assert by_name(con, name, call) == [(1007,), (1017,), (1027,)], name
    con.execute("USE other")
    try:
        for name in ("t", '"t"', "main.t", "u", 'main."u"', "other.u"):
            assert by_name(con, name, call) == [(1007,), (1017,), (1027,)], name
        assert by_name(con, "lance.t", call) == [(7,), (17,), (27,)]
    finally:
        con.execute("USE memory")


@pytest.mark.parametrize("name", ["none", "u", "main.u", "other.none"])
def test_an_unknown_table_is_an_error(named: tuple[Path, ld.Connection], name: str) -> None:
    with pytest.raises(LanceDuckError):
        by_name(named[1], name, "lance_vector_search")


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("given", ["''", "'  '", "chr(10)", "?"])
def test_a_filter_without_text_is_rejected_as_without_where(con: ld.Connection, call: str, given: str) -> None:
    errors = []
    for where in ("", " WHERE id > 3", " WHERE tags[1] = 'rare'", " WHERE label = 1 OR id = 3"):
        sql = f"SELECT id FROM {CALLS[call].format(f', filter := {given}')}{where}"
        with pytest.raises(InvalidInputError, match="found an empty string") as error:
            con.execute(sql, [" "] if given == "?" else None)
        errors.append(str(error.value))
    assert len(set(errors)) == 1
