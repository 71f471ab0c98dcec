"""Lists become vectors in SQL: ALTER COLUMN … TYPE FLOAT[n], and the option `vector_columns`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import DataMismatchError, InvalidInputError, LanceDuckError, UnknownColumnError, WrongTypeError

Connect = Callable[..., ld.Connection]
ROWS = "SELECT i AS id, [i, i + 1.5]::{type}[] AS v FROM range(4) t(i)"
VECTOR = pa.list_(pa.float32(), 2)


@pytest.fixture
def con(tmp_path: Path, connect: Connect) -> ld.Connection:
    return connect(tmp_path)


def type_of(folder: Path, column: str = "v", table: str = "t") -> pa.DataType:
    return ld.dataset(folder / f"{table}.lance").schema.field(column).type


@pytest.mark.parametrize("words", ["ALTER COLUMN v TYPE", "ALTER v SET DATA TYPE"])
@pytest.mark.parametrize("source", ["FLOAT", "DOUBLE", "DECIMAL(5, 1)"])
def test_lists_become_vectors_and_lists_again(source: str, words: str, con: ld.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE lance.t AS " + ROWS.format(type=source))
    con.execute("INSERT INTO lance.t VALUES (9, NULL)")
    con.execute(f"ALTER TABLE lance.t {words} FLOAT[2]")
    assert type_of(tmp_path) == VECTOR
    rows = [(0, (0.0, 1.5)), (1, (1.0, 2.5)), (2, (2.0, 3.5)), (3, (3.0, 4.5)), (9, None)]
    assert con.execute("FROM lance.t ORDER BY id").fetchall() == rows
    nearest = "SELECT id FROM lance.t ORDER BY array_distance(v, [3, 4]::FLOAT[2]) LIMIT 1"
    assert con.execute(nearest).fetchall() == [(3,)]
    con.execute(f"ALTER TABLE lance.t {words} FLOAT[]")
    assert pa.types.is_list(type_of(tmp_path))
    assert con.execute("SELECT v FROM lance.t WHERE id = 2").fetchall() == [([2.0, 3.5],)]


def test_a_list_with_a_different_length_is_reported_by_row(con: ld.Connection) -> None:
    con.execute("CREATE TABLE lance.t AS SELECT [1.0::FLOAT] v UNION ALL SELECT [1, 2]::FLOAT[]")
    with pytest.raises(DataMismatchError, match=r"column 'v', row 1: .*expected 1, found 2"):
        con.execute("ALTER TABLE lance.t ALTER COLUMN v TYPE FLOAT[1]")
    assert con.execute("SELECT len(v) FROM lance.t").fetchall() == [(1,), (2,)]


FORMS = ["'v'", "v", "V", "(v)", "['v']", "{'v': 2}", "'v:2'", "MAP {'v': 2}", "'V:float32[2]'"]


@pytest.mark.parametrize("form", FORMS)
def test_vector_columns_accepts_several_forms(form: str, con: ld.Connection, tmp_path: Path) -> None:
    con.execute(f"CREATE TABLE lance.t WITH (vector_columns = {form}) AS {ROWS.format(type='FLOAT')}")
    con.execute(f"COPY ({ROWS.format(type='FLOAT')}) TO '{tmp_path}/u.lance' (FORMAT lance, vector_columns {form})")
    assert type_of(tmp_path) == type_of(tmp_path, table="u") == VECTOR


def test_several_columns_and_other_number_types_become_vectors(con: ld.Connection, tmp_path: Path) -> None:
    rows = "SELECT [1.5, 2.5] a, [1, 2, 3] b, [0.5::DOUBLE] c"
    con.execute(f"CREATE TABLE lance.t WITH (vector_columns (a, b, c)) AS {rows}")
    kinds = [type_of(tmp_path, name) for name in "abc"]
    assert kinds == [VECTOR, pa.list_(pa.float32(), 3), pa.list_(pa.float64(), 1)]
    assert con.execute("FROM lance.t").fetchall() == [((1.5, 2.5), (1.0, 2.0, 3.0), (0.5,))]


def test_columns_of_an_empty_table_become_vectors(con: ld.Connection) -> None:
    con.execute("CREATE TABLE lance.t (id INTEGER, v FLOAT[]) WITH (vector_columns = {'v': 2})")
    con.execute("INSERT INTO lance.t VALUES (1, [1, 2])")
    assert con.execute("FROM lance.t").fetchall() == [(1, (1.0, 2.0))]


def test_rows_are_copied_to_a_table_with_vectors(con: ld.Connection, tmp_path: Path) -> None:
    con.execute(f"CREATE TABLE lance.t WITH (vector_columns = v) AS {ROWS.format(type='FLOAT')}")
    for options in ("MODE append", "MODE append, vector_columns v"):
        con.execute(f"COPY ({ROWS.format(type='DOUBLE')}) TO '{tmp_path}/t.lance' ({options})")
    assert con.execute("SELECT count(*), sum(v[1]) FROM lance.t").fetchall() == [(12, 18.0)]


@pytest.mark.parametrize(
    ("option", "error"),
    [
        ("vector_columns = w", UnknownColumnError),
        ("vector_columns = id", WrongTypeError),
        ("vector_columns = {'v': 3}", DataMismatchError),
        ("vector_columns = {'v': 'many'}", InvalidInputError),
        ("vector_columns", InvalidInputError),
        ("vector_columns = 3", InvalidInputError),
    ],
)
def test_invalid_vector_columns_options_leave_no_table(
    option: str, error: type[LanceDuckError], con: ld.Connection, tmp_path: Path
) -> None:
    with pytest.raises(error):
        con.execute(f"COPY ({ROWS.format(type='FLOAT')}) TO '{tmp_path}/t.lance' ({option})")
    assert not (tmp_path / "t.lance").exists()
    assert con.execute("SELECT 1").fetchall() == [(1,)]


def test_searches_and_indexes_of_lists_name_the_statement_that_casts(con: ld.Connection) -> None:
    con.execute("CREATE TABLE lance.t AS " + ROWS.format(type="FLOAT"))
    for statement in (
        "FROM lance_vector_search('t', 'v', [1, 2]::FLOAT[2], k := 1)",
        "CREATE INDEX i ON lance.t USING IVF_FLAT (v)",
    ):
        with pytest.raises(LanceDuckError, match=r"ALTER TABLE … ALTER COLUMN v TYPE FLOAT\[2\]"):
            con.execute(statement).fetchall()


@pytest.mark.parametrize(
    ("statement", "array"),
    [
        ("SELECT id FROM {t} ORDER BY array_distance(v, [1, 2]::FLOAT[2]) LIMIT 1", "FLOAT[2]"),
        ("SELECT array_cosine_distance([1, 2, 3]::FLOAT[3], v) FROM {t}", "FLOAT[3]"),
        ("SELECT array_inner_product(v, v) FROM {t}", "FLOAT[n]"),
        ("DELETE FROM {t} WHERE array_distance(v, [1, 2]::FLOAT[2]) < 1", "FLOAT[2]"),
    ],
)
@pytest.mark.parametrize("table", ["lance.t", "native"])
def test_distances_of_lists_name_the_cast(table: str, statement: str, array: str, con: ld.Connection) -> None:
    con.execute("CREATE TABLE lance.t AS " + ROWS.format(type="FLOAT"))
    con.execute("CREATE TABLE native AS FROM lance.t")
    for call in (con.execute, con.sql):
        with pytest.raises(duckdb.BinderException) as raised:
            call(statement.format(t=table))
        hint = (
            f"as in ?::{array}. A column of lists becomes one of vectors by ALTER TABLE … ALTER COLUMN … TYPE {array}"
        )
        assert str(raised.value).count("are lists. Cast a query to an array as long as the vectors, " + hint) == 1
    assert con.execute("SELECT 1").fetchall() == [(1,)]


def test_unrelated_array_function_errors_have_no_hint(con: ld.Connection) -> None:
    for call in (
        "array_distance([1]::FLOAT[1])",
        "array_value([1]::FLOAT[], 2, 3, nothing)",
        "list_distance('a', [1])",
    ):
        with pytest.raises(duckdb.Error) as raised:
            con.execute(f"SELECT {call}")
        assert "are lists." not in str(raised.value)
