"""The primary key of a Lance table refuses the rows that the key of a native table refuses."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, Final

import duckdb
import lance
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.cli import change
from lance_duck.duck.changes import session
from lance_duck.errors import CorruptError, DuplicateKeyError, LanceDuckError, RetryableError
from lance_duck.verbs.merge import known_keys

REFUSED: Final = (duckdb.Error, LanceDuckError)
KEY: Final = {"lance-schema:unenforced-primary-key": "true"}
VALUES = {
    "INTEGER": ["0", "1", "2", "3", "-1", "100"],
    "UBIGINT": ["0", "1", "2", "18446744073709551615", "9223372036854775808", "7"],
    "VARCHAR": ["''", "'a'", "'A'", "'ä'", "'b '", "'b'"],
    "BLOB": [r"'\x00'::BLOB", r"''::BLOB", r"'\xFF'::BLOB", r"'a'::BLOB", r"'\x00\x00'::BLOB", r"'b'::BLOB"],
    "DATE": ["DATE '2030-01-31'", "DATE '1969-12-31'", "DATE '2030-02-01'", "DATE '0001-01-01'"],
    "TIMESTAMP": ["TIMESTAMP '2030-01-31 00:00:00.000001'", "TIMESTAMP '2030-01-31'", "TIMESTAMP '1960-01-01'"],
    "TIMESTAMPTZ": ["TIMESTAMPTZ '2030-01-31 00:00:00+00'", "TIMESTAMPTZ '2030-01-31 01:00:00+01'"],
    "TIME": ["TIME '00:00:00'", "TIME '23:59:59.999999'", "TIME '12:00:00'"],
    "DECIMAL(10, 2)": ["0", "1.50", "1.5", "-1.5", "99.99", "1.51"],
    "DECIMAL(30, 2)": ["0", "1.50", "1.5", "-1.5", "99999999999999999999.99", "1.51"],
    "DOUBLE": ["0.0", "'-0.0'", "'nan'", "'-nan'", "'inf'", "0.1"],
    "FLOAT": ["0.0", "'-0.0'", "'nan'", "'inf'", "0.1", "0.10000001"],
    "BOOLEAN": ["true", "false"],
}
if duckdb.__version__ < "2":  # DuckDB 1.5 cannot join an Arrow source by numbers above int64, or by a single UUID
    VALUES["UBIGINT"] = VALUES["UBIGINT"][:3]
else:
    VALUES["UUID"] = [f"'{i:08d}-0000-0000-0000-000000000000'" for i in range(5)]


def keyed(folder: Path, *fields: pa.Field) -> str:
    """Write an empty table with pylance, whose first column is the primary key."""
    schema = pa.schema([*fields, pa.field("n", pa.int32())])
    lance.write_dataset(schema.empty_table(), str(folder / "t.lance"))
    return str(folder / "t.lance")


def key(name: str, type_: pa.DataType, **metadata: str) -> pa.Field:
    return pa.field(name, type_, False, {**KEY, **metadata})


class Twins:
    """The same table with a primary key in Lance and in DuckDB.

    A native table may refuse changes inside a transaction although no key is repeated. The Lance table is then right,
    and the native table gets its rows.
    """

    def __init__(self, folder: Path, columns: str, names: str) -> None:
        self.names = names
        self.lance, self.native = ld.connect(folder), duckdb.connect()
        self.lance.execute("USE lance")
        self.columns = f"{columns}, n INTEGER, PRIMARY KEY ({names})"
        for con in (self.lance, self.native):
            con.execute(f"CREATE TABLE t ({self.columns})")
        self.is_open = False
        self.refused = 0

    def run(self, sql: str) -> None:
        """Run a statement on both tables, and compare the outcome."""
        errors = []
        for con in (self.lance, self.native):
            try:
                con.execute(sql).fetchall()
                errors.append(None)
            except REFUSED as error:
                errors.append(error)
        ours, theirs = errors
        if ours is None and theirs is not None:
            assert "onstraint" in str(theirs), f"{sql}: {theirs}"
            self.check_keys(sql)
            self.end("COMMIT")
            return
        assert (ours is None) == (theirs is None), f"{sql}: {ours} | {theirs}"
        self.refused += ours is not None
        if ours is not None and self.is_open:
            self.end("ROLLBACK")
        assert self.rows(self.lance) == self.rows(self.native), sql

    def end(self, word: str) -> None:
        """End the transaction of both sides, and copy the rows of the Lance table."""
        if self.is_open:
            self.lance.execute(word)
            with suppress(duckdb.Error):
                self.native.execute("ROLLBACK")
        self.is_open = False
        rows = self.lance.sql("FROM t").to_arrow_table()
        self.native.execute(f"CREATE OR REPLACE TABLE t ({self.columns}); INSERT INTO t FROM rows")
        assert rows.num_rows == self.native.execute("SELECT count(*) FROM t").fetchall()[0][0]

    def check_keys(self, sql: str) -> None:
        repeated = self.lance.execute(f"SELECT {self.names} FROM t GROUP BY ALL HAVING count(*) > 1").fetchall()
        assert repeated == [], sql

    def rows(self, con: Any) -> list[str]:
        rows = con.execute("SELECT COLUMNS(*)::VARCHAR FROM t").fetchall()
        return sorted(repr(row).replace("'-nan'", "'nan'").replace("'-0.0'", "'0.0'") for row in rows)


def statement(random: Random, twins: Twins, values: list[list[str]]) -> str:
    """Return a random statement that changes rows, or begins or ends a transaction."""

    def row() -> str:
        return ", ".join([*map(random.choice, values), str(random.randrange(4))])

    names = twins.names.split(", ")
    name, ours = random.choice(list(zip(names, values, strict=True)))
    source = f"(VALUES {', '.join(f'({row()})' for _ in range(random.randrange(1, 3)))}) AS s({twins.names}, n)"
    same = " AND ".join(f"t.{each} = s.{each}" for each in names)
    casts = ", ".join(f"s.{each}" for each in names)
    rows = ", ".join(f"({row()})" for _ in range(random.randrange(1, 4)))
    where = random.choice(["", f" WHERE n = {random.randrange(4)}", f" WHERE {name} = {random.choice(ours)}"])
    where = where if random.random() < 0.9 else f" WHERE {name} > {random.choice(ours)}"
    return random.choice(
        [
            f"INSERT INTO t VALUES {rows}",
            f"INSERT INTO t VALUES ({row()})",
            f"INSERT INTO t SELECT * FROM (VALUES {rows})",
            f"INSERT OR IGNORE INTO t VALUES {rows}",
            f"INSERT OR REPLACE INTO t VALUES ({row()})",
            f"INSERT INTO t VALUES ({row()}) ON CONFLICT ({twins.names}) DO UPDATE SET n = excluded.n",
            f"UPDATE t SET {name} = {random.choice(ours)}{where}",
            f"UPDATE t SET {name} = {random.choice(ours)}, n = n + 1 WHERE n = {random.randrange(4)}",
            f"UPDATE t SET n = n + 1{where}",
            f"UPDATE t SET {name} = {name}{where}",
            f"DELETE FROM t{where}",
            f"MERGE INTO t USING {source} ON {same} WHEN NOT MATCHED THEN INSERT VALUES ({casts}, s.n)",
            f"MERGE INTO t USING {source} ON t.n = s.n WHEN NOT MATCHED THEN INSERT VALUES ({casts}, s.n)",
            f"MERGE INTO t USING (SELECT {row()}) AS s({twins.names}, n) ON t.n = s.n "
            f"WHEN MATCHED THEN UPDATE SET {name} = s.{name}",
            *(["COMMIT", "ROLLBACK"] if twins.is_open else ["BEGIN", "BEGIN"]),
        ]
    )


def live(twins: Twins, types: list[str], random: Random, steps: int, index_at: int = -1) -> None:
    """Run random statements on both tables."""
    values = [[f"CAST({value} AS {type_})" for value in VALUES[type_]] for type_ in types]
    for number in range(steps):
        sql = statement(random, twins, values)
        twins.run(sql)
        twins.is_open = (twins.is_open or sql == "BEGIN") and sql not in ("COMMIT", "ROLLBACK")
        if number >= index_at >= 0 and not twins.is_open:
            twins.lance.execute("CREATE INDEX by_key ON t (k)")
            index_at = -1
    twins.end("COMMIT")
    twins.check_keys("the whole life")


@pytest.mark.parametrize("types", [*([type_] for type_ in VALUES), ["INTEGER", "VARCHAR"], ["DATE", "DOUBLE"]], ids=str)
def test_a_life_of_changes_refuses_what_a_native_key_refuses(types: list[str], tmp_path: Path) -> None:
    columns = ", ".join(f"{name} {type_}" for name, type_ in zip("kj", types, strict=False))
    twins = Twins(tmp_path, columns, ", ".join("kj"[: len(types)]))
    live(twins, types, Random(str(types)), 30, -1 if types[0] in ("BOOLEAN", "UUID") else 8)
    assert twins.refused
    lance.dataset(str(tmp_path / "t.lance")).validate()
    assert ld.dataset(tmp_path / "t.lance").find_problems() == []


def test_a_key_that_pylance_declares_is_checked(tmp_path: Path) -> None:
    uri = keyed(tmp_path, key("b", pa.string()), key("a", pa.int64()))
    with ld.connect(tmp_path) as con:
        con.execute("USE lance; INSERT INTO t VALUES ('x', 1, 1), ('x', 2, 2)")
        with pytest.raises(
            DuplicateKeyError, match='table t: Duplicate key "b: x, a: 2" violates primary key constraint'
        ):
            con.execute("INSERT INTO t VALUES ('y', 1, 1), ('x', 2, 0)")
        with pytest.raises(DuplicateKeyError, match="b: x, a: 1"):
            con.execute("UPDATE t SET a = 1")
        lance.write_dataset(pa.table({"b": ["x"], "a": [2], "n": pa.array([9], pa.int32())}), uri, mode="append")
        with pytest.raises(DuplicateKeyError, match="b: x, a: 2"):
            con.execute("INSERT INTO t VALUES ('x', 2, 5)")
        assert con.execute("UPDATE t SET a = 2 WHERE n = 9").fetchall() == [(1,)]  # keeps its key
        assert con.execute("UPDATE t SET a = 3 WHERE n = 9").fetchall() == [(1,)]


def test_a_key_that_python_declares_later_is_checked(tmp_path: Path) -> None:
    ds = ld.write_dataset(pa.table([[1, 1]], pa.schema([pa.field("id", pa.int64(), False)])), tmp_path / "t.lance")
    ds.update_field_metadata({"id": KEY})
    assert [str(problem) for problem in ds.find_problems()] == [
        'primary key: 1 key occurs in several rows (2 rows), such as "id: 1" in 2 rows'
    ]
    with ld.connect(tmp_path) as con:
        for sql, count in (("INSERT INTO t VALUES (1)", 2), ("INSERT INTO t VALUES (2), (2)", 2)):
            with pytest.raises(DuplicateKeyError):
                con.execute(f"USE lance; {sql}")
            ds.checkout_latest()
            assert ds.count_rows() == count
        con.execute("INSERT INTO t VALUES (2)")


ARRAYS: Final = {
    "UUID": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16), bytes(16), b"0" * 16], pa.binary(16))),
    "half": pa.array([1, 1, float("nan")], pa.float16()),
    "zeros": pa.array([0.0, -0.0, float("nan")]),
    "dictionary": pa.array(["a", "a", "b"]).dictionary_encode(),
    "decimal": pa.array([Decimal("1.50"), Decimal("1.50"), Decimal(2)], pa.decimal128(20, 2)),
    "timestamp": pa.array([0, 0, 1], pa.timestamp("ns")),
    "bytes": pa.array([b"\x00a", b"\x00a", b""], pa.large_binary()),
    "duration": pa.array([1, 1, 2], pa.duration("us")),
}
TEXTS: Final = {
    "UUID": "00000000-0000-0000-0000-000000000000",
    "half": "1.0",
    "zeros": "0.0",
    "dictionary": "a",
    "decimal": "1.50",
    "timestamp": "1970-01-01 00:00:00",
    "bytes": r"\x00a",
    "duration": "0:00:00.000001",
}


@pytest.mark.parametrize("name", ARRAYS)
def test_validation_finds_the_repeated_keys_that_sql_refuses(name: str, tmp_path: Path) -> None:
    table = pa.table([ARRAYS[name]], pa.schema([key("k", ARRAYS[name].type)]))
    ds = ld.write_dataset(table, tmp_path / "t.lance")
    assert [str(problem) for problem in ds.find_problems()] == [
        f'primary key: 1 key occurs in several rows (2 rows), such as "k: {TEXTS[name]}" in 2 rows'
    ]
    with ld.connect(tmp_path) as con, pytest.raises(DuplicateKeyError, match=re.escape(f'key "k: {TEXTS[name]}"')):
        con.execute("INSERT INTO lance.t FROM lance.t LIMIT 1")


@pytest.mark.parametrize(
    "field",
    [
        key("k", pa.list_(pa.float32(), 2)),
        pa.field("k", pa.struct([key("x", pa.int64())]), False),
    ],
    ids=["vector", "struct field"],
)
def test_keys_without_a_native_counterpart_are_not_checked(field: pa.Field, tmp_path: Path) -> None:
    keyed(tmp_path, field)
    value = "[1, 2]" if pa.types.is_fixed_size_list(field.type) else "{'x': 1}"
    with ld.connect(tmp_path) as con:
        con.execute(f"USE lance; INSERT INTO t VALUES ({value}, 1); INSERT INTO t VALUES ({value}, 1)")
        assert con.execute("SELECT count(*) FROM t").fetchall() == [(2,)]


@pytest.fixture
def con(tmp_path: Path) -> Any:
    with ld.connect(tmp_path) as con:
        con.execute(
            "USE lance; CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO t VALUES (1, 10), (2, 20)"
        )
        yield con


def test_append_and_executemany_are_checked(con: ld.Connection) -> None:
    def append(ids: list[int]) -> None:
        con.append("t", pa.table({"id": ids, "n": ids}).to_pandas())

    for ids in ([3, 2], [3, 3]):
        with pytest.raises(DuplicateKeyError):
            append(ids)
        with pytest.raises(DuplicateKeyError):
            con.executemany("INSERT INTO t VALUES (?, 0)", [[each] for each in ids])
        with pytest.raises(DuplicateKeyError):
            con.executemany("INSERT INTO t SELECT ?, 0", [[each] for each in ids])
    with pytest.raises(DuplicateKeyError):
        con.executemany("UPDATE t SET id = ? WHERE id = ?", [(3, 1), (3, 2)])
    con.execute("PREPARE more AS INSERT INTO t VALUES ($1, 0)")
    with pytest.raises(DuplicateKeyError):
        con.execute("EXECUTE more(2)")
    append([3])
    con.executemany("UPDATE t SET id = ? WHERE id = ?", [(4, 1), (1, 2)])
    assert con.execute("FROM t ORDER BY id").fetchall() == [(1, 20), (3, 3), (4, 10)]


def test_a_refused_statement_leaves_no_files(con: ld.Connection, tmp_path: Path) -> None:
    files = {path: names for path, _, names in os.walk(tmp_path)}
    for sql in ("INSERT INTO t VALUES (3, 0), (1, 0)", "INSERT INTO t VALUES (3, 0), (3, 0)", "UPDATE t SET id = 1"):
        with pytest.raises(DuplicateKeyError):
            con.execute(sql)
        with pytest.raises(DuplicateKeyError):
            con.execute(f"BEGIN; {sql}")
        con.execute("ROLLBACK")
    assert {path: names for path, _, names in os.walk(tmp_path)} == files


OTHERS: Final[dict[str, Callable[[ld.LanceDataset], Any]]] = {
    "update": lambda ds: ds.update({"id": "id + 10"}),
    "overlay": lambda ds: ds.update({"id": "id + 10"}, update_mode="data_overlay"),
    "merge": lambda ds: (
        ds.merge_insert("n").when_matched_update_all().execute(pa.table({"id": [11, 12], "n": [10, 20]}))
    ),
    "delete and append": lambda ds: (ds.delete("true"), ds.insert(pa.table({"id": [11, 12], "n": [10, 20]}))),
    "cast": lambda ds: (ds.update({"id": "id + 10"}), ds.alter_columns({"path": "id", "data_type": pa.int64()})),
    "compaction": lambda ds: (ds.update({"id": "id + 10"}), ds.optimize.compact_files()),
}


@pytest.mark.parametrize("name", OTHERS)
def test_keys_that_other_programs_change_are_read_again(name: str, con: ld.Connection, tmp_path: Path) -> None:
    for number in (1, 2):
        with pytest.raises(DuplicateKeyError):
            con.execute("INSERT INTO t VALUES (?, 0)", [number])
    OTHERS[name](ld.dataset(tmp_path / "t.lance"))
    for number in (11, 12):
        with pytest.raises(DuplicateKeyError):
            con.execute("INSERT INTO t VALUES (?, 0)", [number])
    con.execute("INSERT INTO t VALUES (1, 0)")
    assert con.execute("SELECT id FROM t ORDER BY id").fetchall() == [(1,), (11,), (12,)]


def test_remembered_keys_have_a_limit(con: ld.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_keys, "KNOWN_KEYS", 5)
    for number in range(3, 12):
        con.execute("INSERT INTO t VALUES (?, 0)", [number])
        with pytest.raises(DuplicateKeyError):
            con.execute("INSERT INTO t VALUES (?, 0)", [number])
    con.execute("INSERT INTO t SELECT range, 0 FROM range(100, 3000)")
    for number in (1, 5, 11, 100, 2999):
        with pytest.raises(DuplicateKeyError):
            con.execute("INSERT INTO t VALUES (?, 0)", [number])


@pytest.mark.parametrize("sql", ["INSERT INTO t VALUES (3, 0)", "UPDATE t SET id = 3 WHERE id = 1"])
def test_a_statement_that_loses_a_race_finds_the_key_of_the_winner(
    sql: str, con: ld.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def after_winner(commit: Any) -> Any:
        def later(*args: Any, **kwargs: Any) -> Any:
            monkeypatch.undo()
            with ld.connect(tmp_path) as other:
                other.execute("INSERT INTO lance.t VALUES (3, 30)")
            return commit(*args, **kwargs)

        return later

    for name in ("commit_added", "edit_rows"):
        monkeypatch.setattr(session, name, after_winner(getattr(session, name)))
    with pytest.raises(DuplicateKeyError, match='table t: Duplicate key "id: 3"'):
        con.execute(sql)
    assert con.execute("FROM t ORDER BY id").fetchall() == [(1, 10), (2, 20), (3, 30)]


@pytest.mark.parametrize("first", ["INSERT INTO t VALUES (3, 0)", "UPDATE t SET id = 3 WHERE id = 1"])
def test_a_transaction_that_loses_a_race_is_rolled_back(first: str, con: ld.Connection, tmp_path: Path) -> None:
    con.execute(f"BEGIN; {first}")
    with ld.connect(tmp_path) as other:
        other.execute("INSERT INTO lance.t VALUES (3, 30)")
    with pytest.raises(RetryableError, match="a concurrent commit inserted a row with the same key"):
        con.execute("COMMIT")
    assert con.execute("FROM t ORDER BY id").fetchall() == [(1, 10), (2, 20), (3, 30)]


def test_a_compaction_is_not_mistaken_for_new_keys(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("INSERT INTO t VALUES (3, 30); BEGIN; INSERT INTO t VALUES (4, 40)")
    with ld.connect(tmp_path) as other:
        other.execute("OPTIMIZE lance.t")
    con.execute("COMMIT")
    assert con.execute("SELECT id FROM t ORDER BY id").fetchall() == [(1,), (2,), (3,), (4,)]


def test_threads_that_insert_the_same_keys_store_each_key_once(con: ld.Connection, tmp_path: Path) -> None:
    begin = threading.Barrier(4)

    def insert(_: int) -> int:
        added = 0
        with ld.connect(tmp_path) as own:
            begin.wait()
            for number in range(3, 9):
                with suppress(DuplicateKeyError):
                    own.execute(f"INSERT INTO lance.t VALUES ({number}, 0)")
                    added += 1
        return added

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(insert, range(4))) == 6
    assert con.execute("SELECT id FROM t ORDER BY id").fetchall() == [(number,) for number in range(1, 9)]


def test_the_check_is_a_setting_of_the_connection(tmp_path: Path) -> None:
    with ld.connect(tmp_path, config={"lance_check_primary_key": False}) as con:
        con.execute("USE lance; CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1), (1)")
        con.cursor().execute("INSERT INTO lance.t VALUES (1)")
        con.execute("SET lance_check_primary_key = true")
        with pytest.raises(DuplicateKeyError):
            con.execute("INSERT INTO t VALUES (1)")
        assert con.execute("SELECT count(*) FROM t").fetchall() == [(3,)]


REMEDIES: Final = {
    "INSERT INTO t VALUES (2, 0)": "or use INSERT OR REPLACE, OR IGNORE or ON CONFLICT",
    "INSERT INTO t VALUES (2, 0) ON CONFLICT (n) DO NOTHING": "or name the primary key in ON CONFLICT",
    "UPDATE t SET id = 2 WHERE id = 1": "give each row another key, or DELETE the rows that have the keys first",
    "MERGE INTO t USING (SELECT 2 AS id) AS s ON false WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)": (
        "remove the duplicates from the source, or match rows by the primary key in ON"
    ),
    "COPY t FROM '{0}/r.csv'": "or load the file with INSERT OR IGNORE INTO … FROM 'file'",
    "COPY t FROM '{0}/r/r.lance'": "or load the table with INSERT OR IGNORE INTO … FROM 'x.lance'",
    "COPY (SELECT 2 AS id, 0 AS n) TO '{0}/t.lance' (MODE 'append')": "or add the rows with INSERT OR IGNORE INTO …",
    "COPY FROM DATABASE source TO lance (DATA)": "DELETE the rows with these keys from one of the tables first",
}


@pytest.mark.parametrize("sql", REMEDIES)
def test_the_error_for_a_repeated_key_has_a_remedy_for_its_statement(
    sql: str, con: ld.Connection, tmp_path: Path
) -> None:
    for path in ("r.csv", "r/r.lance"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        con.execute(f"COPY (SELECT 2 AS id, 0 AS n) TO '{tmp_path / path}'")
    con.execute("ATTACH ':memory:' AS source; CREATE TABLE source.t AS SELECT 2::INTEGER AS id, 0::INTEGER AS n")
    with pytest.raises(DuplicateKeyError) as error:
        con.execute(sql.format(tmp_path))
    assert str(error.value).endswith(REMEDIES[sql])
    assert str(error.value).startswith('table t: Duplicate key "id: 2" violates primary key constraint; ')


def test_append_and_executemany_have_a_remedy_for_repeated_keys(con: ld.Connection) -> None:
    with pytest.raises(
        DuplicateKeyError, match="remove the duplicates, or add the rows with INSERT OR IGNORE INTO … F"
    ):
        con.append("t", pa.table({"id": [2], "n": [0]}).to_pandas())
    with pytest.raises(DuplicateKeyError, match="give each row another key"):
        con.executemany("UPDATE t SET id = ? WHERE id = ?", [(2, 1)])


def test_validation_and_repair_name_the_remedy_for_repeated_keys(
    con: ld.Connection, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    con.execute("SET lance_check_primary_key = false; INSERT INTO t VALUES (1, 0)")
    uri = str(tmp_path / "t.lance")
    remedy = 'delete the extra rows, which a repair keeps: find them with GROUP BY "id" HAVING count(*) > 1'
    with pytest.raises(CorruptError, match=re.escape(f'"id: 1" in 2 rows; {remedy}')):
        ld.dataset(uri).validate()
    with pytest.raises(SystemExit):
        change.validate(uri)
    assert f"primary key: {remedy}" in capsys.readouterr().err
    change.repair(uri)
    told = capsys.readouterr().err
    assert "not repaired: primary key: 1 key occurs in several rows (2 rows)" in told
    assert remedy in told
    assert "nothing was repaired" in told
    assert "nothing is lost" not in told
