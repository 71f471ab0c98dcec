"""COPY of files into Lance tables, compared with native tables, and COPY of rows to Lance tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import (
    AlreadyExistsError,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    UnsupportedError,
    WrongTypeError,
)

Connect = Callable[..., ld.Connection]
COLUMNS = "x INTEGER, y VARCHAR, d DATE"
FILES = {
    "plain.csv": "x,y,d\n1,one,2024-01-31\n2,two,2024-02-29\n",
    "order.csv": "y,x,d\n3,4,2024-01-01\n",
    "odd.txt": "5;NULL;31.01.2024\n6;'q;r';01.02.2024\n",
    "bad.csv": "x,y,d\n7,seven,2024-01-01\nzz,eight,2024-01-01\n",
    "short.csv": "x,y\n9,nine\n",
    "rows.json": '[{"x": 10, "y": "ten"}, {"y": "eleven", "d": "2024-03-03"}]',
    "lines.json": '{"x": 12, "y": "twelve", "d": null}\n{"x": 13, "y": "x", "d": "2024-03-03"}\n',
}


@pytest.fixture
def con(tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> ld.Connection:
    """An empty Lance table `t` and a native table `own`, in a folder with files."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    con = connect(tmp_path)
    con.execute("COPY (SELECT 20 AS x, 'p' AS y, DATE '2020-02-02' AS d) TO 'rows.parquet'")
    con.execute("COPY (SELECT 'p' AS y, 20 AS x) TO 'other.parquet'")
    con.execute(f"CREATE TABLE memory.own ({COLUMNS})")
    con.execute(f"CREATE TABLE lance.t ({COLUMNS})")
    return con


def outcome(con: ld.Connection, sql: str, table: str) -> tuple[object, list[tuple[object, ...]]]:
    """The rows that a statement gives, or the beginning of its error; and the rows of the table after it."""
    found: object
    try:
        found = con.execute(sql.format(t=table)).fetchall()
    except duckdb.Error as error:
        found = type(error), str(error).partition("\n")[0].replace("own", "t")
    return found, con.execute(f"FROM {table} ORDER BY ALL").fetchall()


COPIES = [
    "COPY {t} FROM 'plain.csv'",
    "COPY {t} FROM 'plain.csv' (HEADER)",
    "COPY {t} (x, y, d) FROM 'plain.csv' WITH (FORMAT csv, HEADER true, DELIMITER ',')",
    "COPY {t} FROM 'plain.csv' (HEADER false)",
    "COPY {t} FROM 'order.csv'",
    "COPY {t}(Y, x, d) FROM 'order.csv'",
    "COPY {t}(x, y) FROM 'short.csv' CSV HEADER",
    "COPY {t} FROM 'short.csv'",
    "COPY {t} FROM 'odd.txt' (FORMAT csv, DELIM ';', NULL 'NULL', QUOTE '''', DATEFORMAT '%d.%m.%Y', HEADER false)",
    "COPY {t} FROM 'odd.txt' (DELIM ';')",
    "COPY {t} FROM 'bad.csv'",
    "COPY {t} FROM 'bad.csv' (IGNORE_ERRORS)",
    "COPY {t} FROM 'plain.csv' (SKIP 2, HEADER false)",
    "COPY {t} FROM 'plain.csv' (no_such_option 3)",
    "COPY {t} FROM 'plain.csv' (FORMAT no_such_format)",
    "COPY {t} FROM '[pq]lain.csv'",
    "COPY {t} FROM 'nope.csv'",
    "COPY {t} FROM 'rows.parquet'",
    "COPY {t} FROM 'rows.parquet' (FORMAT parquet)",
    "COPY {t}(y, x) FROM 'other.parquet'",
    "COPY {t} FROM 'other.parquet'",
    "COPY {t} FROM 'rows.json'",
    "COPY {t} FROM 'rows.json' (FORMAT json, ARRAY true)",
    "COPY {t} FROM 'lines.json' (ARRAY false)",
    "COPY {t} FROM ('plain' || '.csv')",
    "COPY {t}(nope) FROM 'plain.csv'",
]


@pytest.mark.parametrize("sql", COPIES)
def test_copy_from_behaves_like_for_native_tables(con: ld.Connection, tmp_path: Path, sql: str) -> None:
    expected = outcome(con, sql, "own")
    assert outcome(con, sql, "t") == expected
    changed = expected[1] != []
    assert ld.dataset(tmp_path / "t.lance").version == 1 + changed
    assert con.execute("SELECT count(*) FROM duckdb_tables() WHERE database_name <> 'lance'").fetchall() == [(1,)]


def test_files_are_copied_to_a_path_through_relations_and_parameters(con: ld.Connection) -> None:
    assert con.execute("COPY 't.lance' FROM $file (HEADER)", {"file": "plain.csv"}).fetchall() == [(2,)]
    assert con.rowcount == 2
    assert con.sql("COPY lance.main.t FROM 'plain.csv'").fetchall() == [(2,)]
    assert con.execute("SELECT sum(x) FROM t").fetchall() == [(6,)]


def test_copied_vectors_and_not_null_columns_follow_the_table_schema(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE lance.v (id BIGINT NOT NULL, vec FLOAT[2])")
    (tmp_path / "v.csv").write_text('id,vec\n1,"[1.5, 2]"\n', encoding="utf-8")
    (tmp_path / "only.csv").write_text('vec\n"[1.5, 2]"\n', encoding="utf-8")
    con.execute("COPY v FROM 'v.csv'")
    assert con.execute("FROM v").fetchall() == [(1, (1.5, 2.0))]
    assert ld.dataset(tmp_path / "v.lance").schema.field("vec").type == pa.list_(pa.float32(), 2)
    with pytest.raises(duckdb.ConstraintException, match=r"v\.id"):
        con.execute("COPY v(vec) FROM 'only.csv' (HEADER)")


def test_copies_belong_to_the_transaction(con: ld.Connection) -> None:
    con.execute("BEGIN")
    con.execute("COPY t FROM 'plain.csv'")
    con.execute("DELETE FROM t WHERE x = 1")
    assert con.execute("SELECT x FROM t").fetchall() == [(2,)]
    con.execute("ROLLBACK")
    assert con.execute("FROM t").fetchall() == []


def test_rows_of_lance_tables_are_copied(con: ld.Connection) -> None:
    con.execute("COPY t FROM 'plain.csv'")
    con.execute("COPY t TO 'more.lance'")
    assert con.execute("COPY t FROM 'more.lance' (FORMAT lance)").fetchall() == [(2,)]
    assert con.execute("SELECT count(*), count(DISTINCT x) FROM t").fetchall() == [(4, 2)]
    with pytest.raises(UnsupportedError, match="FORMAT csv"):
        con.execute("COPY t FROM 'more.lance' (FORMAT csv)")
    with pytest.raises(InvalidInputError, match="expected 1 values"):
        con.execute("COPY t(x) FROM 'more.lance'")


def test_an_explained_copy_writes_nothing(con: ld.Connection) -> None:
    assert con.execute("EXPLAIN COPY t FROM 'plain.csv'").fetchall()[-1][0] == "lance_change"
    assert con.execute("FROM t").fetchall() == []


def test_copy_options_equal_those_of_write_dataset(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("COPY t FROM 'plain.csv'")
    options = "FORMAT LANCE, MODE Create, MAX_ROWS_PER_FILE 1, DATA_STORAGE_VERSION 2.1, ENABLE_STABLE_ROW_IDS"
    assert con.execute(f"COPY t TO 'new.lance' ({options})").fetchall() == [(2,)]
    table = ld.dataset(tmp_path / "new.lance")
    assert (len(table.get_fragments()), table.data_storage_version, table.has_stable_row_ids) == (2, "2.1", True)
    for mode in ("create", "error_if_exists", "'ERROR_IF_EXISTS'"):
        with pytest.raises(AlreadyExistsError):
            con.execute(f"COPY t TO 'new.lance' (MODE {mode})")
    assert con.execute("COPY t(x, y, d) TO 'new.lance' WITH (FORMAT 'lance', MODE append)").fetchall() == [(2,)]
    assert con.execute("COPY (SELECT 1 AS a) TO 'new.lance' (mode = 'overwrite')").fetchall() == [(1,)]
    assert con.execute("FROM 'new.lance'").fetchall() == [(1,)]


def test_an_empty_result_creates_an_empty_table_by_default(con: ld.Connection, tmp_path: Path) -> None:
    assert con.execute("COPY t TO 'none.lance' (WRITE_EMPTY_FILE false)").fetchall() == [(0,)]
    assert not (tmp_path / "none.lance").exists()
    assert con.execute("COPY t TO 'none.lance' (FORMAT lance, WRITE_EMPTY_FILE true)").fetchall() == [(0,)]
    assert con.execute("FROM 'none.lance'").fetchall() == []


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("PARTITION_BY x", WrongTypeError),
        ("MODE nope", InvalidInputError),
        ("MODE append, MODE create", InvalidInputError),
        ("MAX_ROWS_PER_FILE 'many'", LanceDuckError),
        ("DATA_STORAGE_VERSION '9'", LanceDuckError),
        ("FORMAT parquet", InvalidInputError),
    ],
)
def test_invalid_options_are_rejected(con: ld.Connection, tmp_path: Path, options: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        con.execute(f"COPY t TO 'none.lance' ({options})")
    assert not (tmp_path / "none.lance").exists()


def test_copy_does_not_overwrite_other_files_and_folders(con: ld.Connection, tmp_path: Path) -> None:
    (tmp_path / "file.lance").write_text("mine", encoding="utf-8")
    for sql in (
        "COPY t TO 'file.lance'",
        "CREATE OR REPLACE TABLE 'file.lance' AS FROM t",
        "CREATE TABLE lance.file AS FROM t",
    ):
        with pytest.raises(AlreadyExistsError, match="a file already has this path"):
            con.execute(sql)
    for sql in ("FROM file", "FROM 'file.lance'", "COPY 'file.lance' FROM 'plain.csv'"):
        with pytest.raises(LanceDuckError, match=r"file\.lance: .* expected a directory"):
            con.execute(sql)
    assert (tmp_path / "file.lance").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE '{path}' AS SELECT 1 AS a",
        "CREATE OR REPLACE TABLE lance.other AS SELECT 1 AS a",
        "COPY (SELECT 1 AS a) TO '{path}'",
    ],
)
def test_copy_does_not_turn_a_table_of_another_format_into_a_lance_table(tmp_path: Path, sql: str) -> None:
    path = tmp_path / "other.lance"
    (path / "_delta_log").mkdir(parents=True)
    (path / "part-0.parquet").write_bytes(b"PAR1")
    with ld.connect(tmp_path) as con:
        with pytest.raises(AlreadyExistsError, match=r"contains other files.*_delta_log, part-0\.parquet"):
            con.execute(sql.format(path=path))
        with pytest.raises(NotFoundError):
            con.execute(f"DROP TABLE '{path}'")
    assert sorted(entry.name for entry in path.iterdir()) == ["_delta_log", "part-0.parquet"]


def test_files_of_a_killed_writer_do_not_block_create_table(tmp_path: Path) -> None:
    (tmp_path / "t.lance" / "data").mkdir(parents=True)
    (tmp_path / "t.lance" / "data" / "left.lance").write_bytes(b"half")
    with ld.connect(tmp_path) as con:
        con.execute("CREATE TABLE lance.t AS SELECT 1 AS a")
        assert con.execute("FROM t").fetchall() == [(1,)]
