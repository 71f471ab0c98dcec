"""DEFAULT of columns: its storage, its checks, and random statements compared with native tables.

`statements/defaults.sql` has the statements that behave as on native tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import duckdb
import lance
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.duck.changes.rows.defaults import DEFAULT, is_default
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.statement.clauses import Clauses
from lance_duck.errors import InvalidInputError, LanceDuckError, UnsupportedError

REFUSED = (duckdb.Error, LanceDuckError)
Rows = list[tuple[Any, ...]]


@pytest.fixture
def con(tmp_path: Path) -> Iterator[ld.Connection]:
    with ld.connect(tmp_path) as connection:
        connection.execute("CREATE TABLE lance.t (id INTEGER, v INTEGER DEFAULT 7, w VARCHAR DEFAULT upper('w'))")
        connection.execute("INSERT INTO lance.t VALUES (1, 10, 'a')")
        yield connection


def rows(con: ld.Connection, sql: str) -> Rows:
    return [tuple(row) for row in con.execute(sql).fetchall()]


def table_of(tmp_path: Path, name: str = "t") -> ld.LanceDataset:
    return ld.dataset(tmp_path / f"{name}.lance")


def stored(tmp_path: Path, name: str = "t") -> dict[str, str]:
    schema = lance.dataset(str(tmp_path / f"{name}.lance")).schema
    return {field.name: (field.metadata or {})[DEFAULT.encode()].decode() for field in schema if _has(field)}


def _has(field: pa.Field) -> bool:
    return DEFAULT.encode() in (field.metadata or {})


# Storage.

EXPRESSIONS = (
    *("3", "-3", "1+2*3", "'it''s'", "true", "NULL", "now()", "upper('x')", "random()", "uuid()", "current_date"),
    *("user", "[1, 2]", "{'a': 1}", "MAP {'a': 1}", "(1 IN (1, 2))", "CASE WHEN true THEN 'x' ELSE 'y' END"),
    *("CAST('1' AS VARCHAR)", "'a' || 'b'", "interval 1 day", "e'a\\nb'", "getvariable('x')", "1e0", "'x'::VARCHAR"),
)


def test_the_text_is_what_duckdb_shows_for_a_native_table(con: ld.Connection, tmp_path: Path) -> None:
    columns = ", ".join(f"c{number} VARCHAR DEFAULT {text}" for number, text in enumerate(EXPRESSIONS))
    con.execute(f"CREATE TABLE lance.u ({columns})")
    con.execute(f"CREATE TABLE memory.native ({columns})")
    shown = rows(con, "SELECT column_name, column_default FROM duckdb_columns() WHERE table_name = 'native'")
    assert stored(tmp_path, "u") == dict(shown)
    assert rows(con, "DESCRIBE lance.u") == rows(con, "DESCRIBE native")
    assert rows(con, "SHOW lance.u") == rows(con, "DESCRIBE native")


def test_alter_table_stores_and_removes_the_text(con: ld.Connection, tmp_path: Path) -> None:
    assert stored(tmp_path) == {"v": "7", "w": "upper('w')"}
    for sql in (
        "ALTER TABLE lance.t ALTER id SET DEFAULT 1+1",
        "ALTER TABLE lance.t ALTER w DROP DEFAULT",
        "ALTER TABLE lance.t ADD COLUMN x DOUBLE DEFAULT random()",
        "ALTER TABLE lance.t ADD COLUMN y INTEGER",
        "ALTER TABLE lance.t ADD COLUMN s STRUCT(a INTEGER)",
        "ALTER TABLE lance.t ADD COLUMN s.b INTEGER DEFAULT 5",
    ):
        con.execute(sql)
    assert stored(tmp_path) == {"id": "(1 + 1)", "v": "7", "x": "random()"}


def test_add_column_is_one_version(con: ld.Connection, tmp_path: Path) -> None:
    before = table_of(tmp_path).version
    con.execute("ALTER TABLE lance.t ADD COLUMN x INTEGER DEFAULT 3")
    assert table_of(tmp_path).version == before + 1
    con.execute("ALTER TABLE lance.t ALTER x SET DEFAULT 3")  # changes nothing
    assert table_of(tmp_path).version == before + 1


def test_add_column_evaluates_default_on_the_connection(con: ld.Connection) -> None:
    con.execute("INSERT INTO lance.t SELECT range, 1, 'x' FROM range(5000)")
    con.execute("CREATE MACRO plus(a) AS a + 1")
    con.execute("SET VARIABLE size = 4")
    con.execute("SET TimeZone = 'Asia/Tokyo'")
    con.execute("ALTER TABLE lance.t ADD COLUMN a INTEGER DEFAULT plus(getvariable('size'))")
    con.execute("ALTER TABLE lance.t ADD COLUMN b TIMESTAMP DEFAULT now()")
    con.execute("ALTER TABLE lance.t ADD COLUMN c UUID DEFAULT uuid()")
    con.execute("ALTER TABLE lance.t ADD COLUMN d STRUCT(x INTEGER[]) DEFAULT {'x': [1, NULL]}")
    shown = "any_value(a), min(a), count(DISTINCT b), count(DISTINCT c), any_value(d), max(b) > '2020-01-01'"
    assert rows(con, f"SELECT {shown} FROM lance.t") == [(5, 5, 1, 5001, {"x": [1, None]}, True)]
    (hours,) = rows(con, "SELECT date_diff('hour', max(b), now()::TIMESTAMP) FROM lance.t")[0]
    assert hours == 0


def test_a_default_of_a_table_that_is_named_by_path(con: ld.Connection, tmp_path: Path) -> None:
    path = f"'{tmp_path / 'deep' / 'p.lance'}'"
    con.execute(f"CREATE TABLE {path} (a INTEGER DEFAULT 4, b INTEGER)")
    con.execute(f"INSERT INTO {path} (b) VALUES (1)")
    con.execute(f"ALTER TABLE {path} ADD COLUMN c VARCHAR DEFAULT 'x'")
    con.execute(f"INSERT INTO {path} (b) SELECT 2")
    assert rows(con, f"FROM {path} ORDER BY b") == [(4, 1, "x"), (4, 2, "x")]
    assert [row[4] for row in rows(con, f"DESCRIBE {path}")] == ["4", None, "'x'"]


def test_a_replaced_table_has_its_own_defaults(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("CREATE OR REPLACE TABLE lance.t (id INTEGER DEFAULT 2, v INTEGER)")
    assert stored(tmp_path) == {"id": "2"}
    con.execute("CREATE TABLE IF NOT EXISTS lance.t (id INTEGER DEFAULT 3, v INTEGER DEFAULT 3)")
    assert stored(tmp_path) == {"id": "2"}
    con.execute("CREATE OR REPLACE TABLE lance.t AS SELECT 1 AS id")
    assert stored(tmp_path) == {}


def test_sequences_are_refused(con: ld.Connection) -> None:
    con.execute("CREATE SEQUENCE memory.q")
    con.execute("CREATE TABLE memory.numbered (a BIGINT DEFAULT nextval('q'))")
    for sql in (
        "CREATE TABLE lance.u (a BIGINT DEFAULT nextval('q'))",
        "CREATE TABLE lance.u (a BIGINT DEFAULT 1 + currval('q'))",
        "ALTER TABLE lance.t ALTER v SET DEFAULT nextval('q')",
        "ALTER TABLE lance.t ADD COLUMN z INTEGER DEFAULT nextval('q')",
        "CREATE TABLE lance.u LIKE numbered",
    ):
        with pytest.raises(UnsupportedError, match="DEFAULT cannot call a sequence"):
            con.execute(sql)
    con.execute("CREATE TABLE lance.u (a VARCHAR DEFAULT 'nextval(q)')")


# Statements of the connection.


def test_append_by_name_sets_columns_that_a_frame_lacks(con: ld.Connection) -> None:
    con.append("lance.t", pa.table({"w": ["x", None], "id": [2, 3]}), by_name=True)
    con.append("lance.t", pa.table({"id": [4], "v": pa.nulls(1, pa.int32()), "w": ["y"]}))
    assert rows(con, "FROM lance.t ORDER BY id") == [(1, 10, "a"), (2, 7, "x"), (3, 7, None), (4, None, "y")]


def test_executemany_and_parameters(con: ld.Connection) -> None:
    con.executemany("INSERT INTO lance.t (id) VALUES (?)", [[2], [3]])
    con.executemany("INSERT INTO lance.t (id, v) VALUES ($id, DEFAULT)", [{"id": 4}, {"id": 5}])
    con.execute("INSERT INTO lance.t (id) SELECT ? + 1", [5])
    con.execute("UPDATE lance.t SET v = DEFAULT, w = ? WHERE id = 1", ["z"])
    con.execute(
        "MERGE INTO lance.t USING (SELECT ? AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT BY NAME", [7]
    )
    assert rows(con, "FROM lance.t ORDER BY id") == [(1, 7, "z"), *((number, 7, "W") for number in range(2, 8))]


def test_a_stream_of_many_rows_gets_a_random_value_for_each(con: ld.Connection) -> None:
    con.execute("ALTER TABLE lance.t ALTER w SET DEFAULT random()::VARCHAR")
    con.execute("INSERT INTO lance.t (id) SELECT range FROM range(300000)")
    assert rows(con, "SELECT count(*), count(DISTINCT w) > 290000, max(v) FROM lance.t") == [(300001, True, 10)]
    con.execute("UPDATE lance.t SET w = DEFAULT WHERE id < 1000 AND v = 7")
    con.execute(
        "MERGE INTO lance.t USING range(300000, 301000) AS s(id) ON t.id = s.id WHEN NOT MATCHED THEN INSERT BY NAME"
    )
    found = rows(con, "SELECT count(DISTINCT w) FROM lance.t WHERE id < 1000 OR id >= 300000")
    assert found[0][0] > 1990


def test_intervals_are_stored_as_durations(con: ld.Connection, tmp_path: Path) -> None:
    ld.write_dataset(pa.table({"id": [1], "d": pa.array([5], pa.duration("us"))}), tmp_path / "d.lance")
    con.execute("ALTER TABLE lance.d ALTER d SET DEFAULT INTERVAL 2 DAY")
    for sql in (
        "INSERT INTO lance.d (id) VALUES (2)",
        "INSERT INTO lance.d (id) SELECT 3",
        "INSERT INTO lance.d (id, d) VALUES (4, DEFAULT)",
        "INSERT INTO lance.d DEFAULT VALUES",
        "UPDATE lance.d SET d = DEFAULT WHERE id = 1",
        "MERGE INTO lance.d USING (SELECT 5 AS id) AS s ON d.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
        "INSERT INTO lance.d (id) VALUES (6) ON CONFLICT (id) DO NOTHING",
    ):
        con.execute(sql)
    assert rows(con, "SELECT count(*), count(DISTINCT d), max(d) = INTERVAL 2 DAY FROM lance.d") == [(7, 1, True)]


def test_tables_without_defaults_ask_duckdb_nothing_more(con: ld.Connection) -> None:
    con.execute("CREATE TABLE lance.plain (id INTEGER, v INTEGER)")
    con.execute("CREATE TABLE lance.filled (id INTEGER, v INTEGER DEFAULT 5)")
    con.execute("INSERT INTO lance.filled (id) VALUES (1)")
    calls: list[str] = []
    call = ChangeSession._call

    def counted(session: ChangeSession, method: Any, argument: str, sql: str, tables: Any) -> Any:
        calls.append(sql)
        return call(session, method, argument, sql, tables)

    with patch.object(ChangeSession, "_call", counted):
        con.execute("INSERT INTO lance.plain (id) VALUES (2)")
        con.execute("INSERT INTO lance.plain VALUES (2, DEFAULT)")
        con.execute("INSERT INTO lance.filled (id) VALUES (2)")  # constants, also of defaults, do not need DuckDB
        con.execute("INSERT INTO lance.filled VALUES (2, DEFAULT)")
        assert calls == []
        con.execute("UPDATE lance.plain SET v = DEFAULT")
    assert len(calls) == 1


# Texts of other writers.

HOSTILE = (
    *("1); DROP TABLE x; --", "1); DROP TABLE lance.x; SELECT (1", "1; DROP TABLE x", "1 FROM x", "(SELECT 1)"),
    *(
        "(FROM x)",
        "EXISTS (FROM x)",
        "ARRAY (SELECT 1)",
        "1 UNION SELECT 2",
        "id",
        "w",
        "c0",
        "$1",
        "?",
        "$id",
        "*",
        "#1",
    ),
    *(
        "sum(1)",
        "count(*)",
        "unnest([1, 2])",
        "row_number() OVER ()",
        "nosuch()",
        "upper(1, 2, 3)",
        "",
        " ",
        "--",
        "1 /*",
    ),
    *(
        "'x",
        "DEFAULT",
        "(DEFAULT)",
        "1 AS x",
        "x'",
        "1 LIMIT 0",
        "COLUMNS('x')",
        "{{",
        "excluded.id",
        "\x00",
        "1)",
        "(1",
    ),
)


def test_a_text_that_is_not_one_expression_is_never_run(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE memory.x AS SELECT 1 AS a")
    con.execute("CREATE TABLE lance.x AS SELECT 1 AS a")
    for text in HOSTILE:
        table_of(tmp_path).update_field_metadata({"v": {DEFAULT: text}})
        for sql in ("INSERT INTO lance.t (id) VALUES (2)", "INSERT INTO lance.t (id) SELECT 2"):
            with pytest.raises(InvalidInputError) as error:
                con.execute(sql)
            assert error.value.where == "table t, column v"
    assert rows(con, "FROM lance.x UNION ALL FROM memory.x") == [(1,), (1,)]
    assert rows(con, "FROM lance.t") == [(1, 10, "a")]


@pytest.mark.parametrize("text", ["1); DROP TABLE x; --", "1); DROP TABLE lance.x; SELECT (1", "(SELECT 1)", "$1"])
def test_each_statement_checks_the_text_that_it_uses(con: ld.Connection, tmp_path: Path, text: str) -> None:
    con.execute("CREATE TABLE memory.x AS SELECT 1 AS a")
    con.execute("CREATE TABLE lance.x AS SELECT 1 AS a")
    table_of(tmp_path).update_field_metadata({"v": {DEFAULT: text}})
    merge = "MERGE INTO lance.t USING (SELECT 2 AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES"
    for sql in (
        "INSERT INTO lance.t (id) VALUES (2)",
        "INSERT INTO lance.t (id, v) VALUES (2, DEFAULT)",
        "INSERT INTO lance.t (id) VALUES (1 + 1)",
        "INSERT INTO lance.t (id) SELECT 2",
        "INSERT INTO lance.t BY NAME SELECT 2 AS id",
        "INSERT INTO lance.t DEFAULT VALUES",
        "INSERT INTO lance.t (id) VALUES (2) ON CONFLICT (id) DO NOTHING",
        "INSERT INTO lance.t VALUES (1, 2, 'x') ON CONFLICT (id) DO UPDATE SET v = DEFAULT",
        "UPDATE lance.t SET v = DEFAULT",
        f"{merge} (s.id)",
        f"{merge} (s.id) RETURNING *",
        "EXPORT DATABASE lance TO 'export'",
    ):
        with pytest.raises(InvalidInputError) as error:
            con.execute(sql)
        assert error.value.where == "table t, column v"
        assert "SET DEFAULT" in str(error.value.remedy)
    con.execute("INSERT INTO lance.t VALUES (2, 3, 'b')")
    con.execute("UPDATE lance.t SET w = DEFAULT WHERE id = 2")
    con.execute(
        "MERGE INTO lance.t USING (SELECT 3 AS id) AS s USING (id) WHEN NOT MATCHED THEN INSERT VALUES (id, 1, 'c')"
    )
    assert rows(con, "FROM lance.t ORDER BY id") == [(1, 10, "a"), (2, 3, "W"), (3, 1, "c")]
    assert rows(con, "FROM lance.x UNION ALL FROM x") == [(1,), (1,)]
    con.execute("ALTER TABLE lance.t ALTER v SET DEFAULT 8")
    con.execute("INSERT INTO lance.t (id) VALUES (9)")
    assert rows(con, "SELECT v FROM lance.t WHERE id = 9") == [(8,)]


def test_a_default_that_lacks_its_macro_is_an_error_only_where_it_is_used(con: ld.Connection) -> None:
    con.execute("CREATE MACRO plus(a) AS a + 1")
    con.execute("ALTER TABLE lance.t ALTER v SET DEFAULT plus(4)")
    con.execute("INSERT INTO lance.t (id) VALUES (2)")
    con.execute("DROP MACRO plus")
    for sql in (
        "INSERT INTO lance.t (id) VALUES (3)",
        "INSERT INTO lance.t (id) SELECT 3",
        "UPDATE lance.t SET v = DEFAULT",
    ):
        with pytest.raises(InvalidInputError, match=r"column v: the DEFAULT plus\(4\).*SET DEFAULT"):
            con.execute(sql)
    con.execute("BEGIN")
    con.execute("INSERT INTO lance.t VALUES (3, 1, DEFAULT)")
    con.execute("INSERT INTO lance.t VALUES (1, 2, 'n') ON CONFLICT (id) DO UPDATE SET w = DEFAULT")
    con.execute("MERGE INTO lance.t USING (SELECT 1 AS id) AS s USING (id) WHEN MATCHED THEN UPDATE SET v = 11")
    con.execute("COMMIT")
    assert rows(con, "FROM lance.t ORDER BY id") == [(1, 11, "W"), (2, 5, "W"), (3, 1, "W")]
    con.execute("CREATE MACRO plus(a) AS a * 2")
    con.execute("INSERT INTO lance.t (id) VALUES (4)")
    assert rows(con, "SELECT v FROM lance.t WHERE id = 4") == [(8,)]


@pytest.mark.parametrize(("text", "expected"), [("DEFAULT", True), ("((default))", True), ("(DEFAULT", False)])
def test_a_value_may_be_the_word_default(text: str, expected: bool) -> None:
    assert is_default(Clauses.of(text)) is expected
    assert not is_default(Clauses.of(f"{text} + 1"))


# Other writers and copies.


def test_other_writers_keep_the_text_and_write_null(con: ld.Connection, tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"id": pa.array([2], pa.int32())}), path, mode="append")
    lance.dataset(path).merge_insert("id").when_not_matched_insert_all().execute(
        pa.table({"id": pa.array([3], pa.int32()), "v": pa.nulls(1, pa.int32()), "w": ["m"]})
    )
    ld.dataset(path).insert(pa.table({"id": pa.array([4], pa.int32())}))
    ld.write_dataset(pa.table({"id": pa.array([5], pa.int32())}), path, mode="append")
    lance.dataset(path).update({"w": "'u'"}, where="id = 1")
    lance.dataset(path).optimize.compact_files()
    lance.dataset(path).alter_columns({"path": "v", "name": "vv"})
    assert stored(tmp_path) == {"vv": "7", "w": "upper('w')"}
    con.execute("INSERT INTO lance.t (id) VALUES (6)")
    con.execute("OPTIMIZE lance.t")
    expected = [(1, 10, "u"), (2, None, None), (3, None, "m"), (4, None, None), (5, None, None), (6, 7, "W")]
    assert rows(con, "FROM lance.t ORDER BY id") == expected
    assert lance.dataset(path).to_table().sort_by("id").to_pydict()["vv"] == [10, None, None, None, None, 7]
    assert stored(tmp_path) == {"vv": "7", "w": "upper('w')"}


def test_copies_between_databases_keep_defaults(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("ATTACH ':memory:' AS a")
    con.execute("CREATE TABLE a.n (x INTEGER DEFAULT 1+2, y TIMESTAMP NOT NULL DEFAULT now(), z VARCHAR)")
    con.execute("INSERT INTO a.n (z) VALUES ('z')")
    con.execute("COPY FROM DATABASE a TO lance")
    assert stored(tmp_path, "n") == {"x": "(1 + 2)", "y": "now()"}
    con.execute("ATTACH ':memory:' AS b")
    con.execute("COPY FROM DATABASE lance TO b")
    assert [row[4] for row in rows(con, "DESCRIBE b.t")] == [None, "7", "upper('w')"]
    assert [row[4] for row in rows(con, "DESCRIBE b.n")] == ["(1 + 2)", "now()", None]
    con.execute(f"ATTACH '{tmp_path / 'other'}' AS other (TYPE lance)")
    for part in ("", " (SCHEMA)"):
        (tmp_path / "other").mkdir(exist_ok=True)
        con.execute(f"COPY FROM DATABASE lance TO other{part}")
        assert stored(tmp_path / "other", "n") == {"x": "(1 + 2)", "y": "now()"}
        con.execute("INSERT INTO other.t (id) VALUES (5)")
        assert rows(con, "FROM other.t WHERE id = 5") == [(5, 7, "W")]
        for name in ("t", "n"):
            con.execute(f"DROP TABLE other.{name}")


def test_an_export_has_the_defaults(con: ld.Connection, tmp_path: Path) -> None:
    con.execute(f"EXPORT DATABASE lance TO '{tmp_path / 'export'}'")
    with duckdb.connect() as other:
        other.execute(f"IMPORT DATABASE '{tmp_path / 'export'}'")
        other.execute("INSERT INTO t (id) VALUES (2)")
        assert other.execute("FROM t ORDER BY id").fetchall() == [(1, 10, "a"), (2, 7, "W")]


# Random statements.

COLUMNS = ("id", "a", "s", "d", "l")
DEFAULTS = {
    "id": ("100", "NULL", "1 + 1"),
    "a": ("7", "-1", "length('abc')", "NULL", "'5'"),
    "s": ("'x'", "lower('Y')", "5", "'a' || 'b'"),
    "d": ("1.5", "2", "pi()", "1e0"),
    "l": ("[1, 2]", "[]", "NULL"),
}
VALUES = {
    "id": ("1", "2", "3", "4 + 1", "NULL"),
    "a": ("1", "NULL", "2 + 2"),
    "s": ("'q'", "NULL", "upper('z')"),
    "d": ("0.5", "NULL", "sqrt(4)"),
    "l": ("[3]", "NULL"),
}
TYPES = {"id": "INTEGER", "a": "INTEGER", "s": "VARCHAR", "d": "DOUBLE", "l": "INTEGER[]"}


class Statements:
    """Random statements on the table `lance.t`, whose columns may have a DEFAULT."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = Random(seed)
        self.is_keyed = self.random.random() < 0.4
        self.folder = folder
        self.number = 0

    def create(self) -> str:
        columns = []
        for name in COLUMNS:
            default = f" DEFAULT {self.of(DEFAULTS[name])}" if self.random.random() < 0.6 else ""
            key = " PRIMARY KEY" if name == "id" and self.is_keyed else ""
            null = " NOT NULL" if name in "as" and self.random.random() < 0.15 else ""
            columns.append(f"{name} {TYPES[name]}{default}{null}{key}")
        return f"CREATE TABLE lance.t ({', '.join(columns)})"

    def of(self, items: Any) -> Any:
        return self.random.choice(items)

    def some(self, least: int = 1) -> list[str]:
        return self.random.sample(COLUMNS, self.random.randint(least, len(COLUMNS)))

    def item(self, name: str) -> str:
        if self.random.random() < 0.35:
            return self.of(("DEFAULT", "(DEFAULT)"))
        return str(self.of(VALUES[name]))

    def plain(self, name: str) -> str:
        return str(self.of(VALUES[name]))

    def values(self, names: list[str]) -> str:
        count = self.random.randint(1, 3)
        return ", ".join(f"({', '.join(map(self.item, names))})" for _ in range(count))

    def source(self, names: list[str], count: int = 2) -> str:
        kinds = [f"CAST({self.plain(name)} AS {TYPES[name]}) AS {name}" for name in names]
        return f"SELECT {', '.join(kinds)} FROM range({self.random.randint(0, count)})"

    def statement(self) -> str:
        forms = [self.insert, self.select, self.default_values, self.update, self.merge, self.alter, self.copy]
        forms += [self.upsert] * 4 if self.is_keyed else [self.insert]
        return str(self.of(forms)())

    def returning(self) -> str:
        return " RETURNING *" if self.random.random() < 0.2 else ""

    def insert(self) -> str:
        names = self.some() if self.random.random() < 0.7 else list(COLUMNS)
        return f"INSERT INTO lance.t ({', '.join(names)}) VALUES {self.values(names)}{self.returning()}"

    def select(self) -> str:
        names = self.some()
        way = "BY NAME" if self.random.random() < 0.5 else f"({', '.join(names)})"
        return f"INSERT INTO lance.t {way} {self.source(names)}{self.returning()}"

    def default_values(self) -> str:
        words = self.of(["", "OR IGNORE ", "OR REPLACE "]) if self.is_keyed else ""
        return f"INSERT {words}INTO lance.t DEFAULT VALUES"

    def upsert(self) -> str:
        names = [name for name in COLUMNS if name == "id" or self.random.random() < 0.5]
        if self.random.random() < 0.3:
            names.remove("id")
        names = names or ["a"]
        words, rest = "", ""
        if self.random.random() < 0.4:
            words = self.of(["OR REPLACE ", "OR IGNORE "])
        elif self.random.random() < 0.3:
            rest = " ON CONFLICT DO NOTHING"
        else:
            changed = [name for name in self.some() if name != "id"] or ["a"]
            items = [f"{name} = {self.of(['DEFAULT', f'excluded.{name}', self.plain(name)])}" for name in changed]
            rest = f" ON CONFLICT (id) DO UPDATE SET {', '.join(items)}{self.of(['', ' WHERE t.id < 3'])}"
        row = f"({', '.join(map(self.item, names))})"
        return f"INSERT {words}INTO lance.t ({', '.join(names)}) VALUES {row}{rest}{self.returning()}"

    def update(self) -> str:
        names = [name for name in self.some() if name != "id" or not self.is_keyed] or ["a"]
        items = ", ".join(f"{name} = {self.item(name)}" for name in names)
        if self.random.random() < 0.2:
            items = f"({', '.join(names)}) = ({', '.join(map(self.item, names))})"
        return (
            f"UPDATE lance.t SET {items} WHERE id {self.of(['< 3', '= 1', 'IS NULL', 'IS NOT NULL'])}{self.returning()}"
        )

    def merge(self) -> str:
        names = ["id", *(name for name in COLUMNS[1:] if self.random.random() < 0.5)]
        kinds = [f"CAST({'6' if name == 'id' else self.plain(name)} AS {TYPES[name]}) AS {name}" for name in names]
        inserted = self.some()
        items = ", ".join(self.of(["DEFAULT", f"s.{name}" if name in names else self.plain(name)]) for name in inserted)
        insert = self.of(
            [
                "INSERT BY NAME",
                f"INSERT ({', '.join(inserted)}) VALUES ({items})",
                f"INSERT VALUES ({', '.join(map(self.item, COLUMNS))})",
                "INSERT DEFAULT VALUES",
                "INSERT *",
            ]
        )
        changed = [name for name in self.some() if name != "id"] or ["a"]
        update = "UPDATE SET " + ", ".join(f"{name} = {self.item(name)}" for name in changed)
        matched = self.of(
            ["", f" WHEN MATCHED THEN {update}", f" WHEN NOT MATCHED BY SOURCE AND t.id = 2 THEN {update}"]
        )
        source = f"(SELECT {', '.join(kinds)} WHERE {self.of(['true', 'true', 'false'])})"
        on = self.of(["ON t.id = s.id", "ON t.id = s.id AND t.id < 9"])
        return f"MERGE INTO lance.t USING {source} AS s {on} WHEN NOT MATCHED THEN {insert}{matched}{self.returning()}"

    def copy(self) -> str:
        names = self.some()
        self.number += 1
        file = self.folder / f"{self.number}.{self.of(['parquet', 'csv'])}"
        duckdb.sql(f"COPY ({self.source(names)}) TO '{file}'")
        return f"COPY lance.t ({', '.join(names)}) FROM '{file}'"

    def alter(self) -> str:
        name = self.of(COLUMNS)
        action = self.of(
            [f"SET DEFAULT {self.of(DEFAULTS[name])}", "DROP DEFAULT", "SET DEFAULT (SELECT 1)", "SET DEFAULT id"]
        )
        return f"ALTER TABLE lance.t ALTER {name} {action}"


def outcome(con: Any, sql: str) -> Any:
    try:
        found = con.execute(sql).fetchall()
    except REFUSED as error:
        return error
    return sorted(map(repr, found))


@pytest.mark.parametrize("seed", range(8))
def test_random_statements_behave_as_on_native_tables(tmp_path: Path, seed: int) -> None:
    statements = Statements(seed, tmp_path)
    with ld.connect(tmp_path / "tables") as con, duckdb.connect() as native:
        native.execute("ATTACH ':memory:' AS lance")
        history = [statements.create()]
        for each in (con, native):
            each.execute(history[0])
        for _ in range(25):
            sql = statements.statement()
            in_block = not sql.startswith("ALTER") and statements.random.random() < 0.2
            history.append(sql)
            answers = []
            for each in (con, native):
                if in_block:
                    each.execute("BEGIN")
                answers.append(outcome(each, sql))
                if in_block:
                    is_refused = isinstance(answers[-1], Exception)
                    each.execute("ROLLBACK" if is_refused else "COMMIT")
            mine, theirs = answers
            told = "\n".join(history)
            assert isinstance(mine, Exception) == isinstance(theirs, Exception), f"{told}\n{mine}\n{theirs}"
            assert isinstance(mine, Exception) or mine == theirs, told
            assert outcome(con, "FROM lance.t") == outcome(native, "FROM lance.t"), told
            assert outcome(con, "DESCRIBE lance.t") == outcome(native, "DESCRIBE lance.t"), told
