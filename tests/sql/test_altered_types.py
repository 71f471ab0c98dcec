"""ALTER COLUMN … TYPE: indexes, keys, metadata, versions and races; `statements/alter.sql` has the values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, ReferencedError, UnsupportedError

GRAMMAR = duckdb.__version__ >= "2"
"""Whether DuckDB's grammar has fields in ALTER COLUMN."""
ROWS = "SELECT i AS id, i::VARCHAR AS s, {'x': i, 'y': 'a'} AS st, [i, 1]::FLOAT[2] AS v FROM range(6) r(i)"


@pytest.fixture
def con(tmp_path: Path, connect: Callable[..., ld.Connection]) -> ld.Connection:
    connection = connect(tmp_path)
    connection.execute(f"CREATE TABLE lance.t AS {ROWS}")
    return connection


def table(tmp_path: Path) -> ld.LanceDataset:
    return ld.dataset(tmp_path / "t.lance")


@pytest.mark.parametrize(
    ("index", "action"),
    [
        ("i ON t (id)", "id TYPE INTEGER"),
        ("i ON t (id)", "id TYPE VARCHAR"),
        ("i ON t (id)", "id TYPE BIGINT USING id + 1"),
        ("i ON t (st.x)", "st TYPE STRUCT(x BIGINT)"),
        *([("i ON t (st.x)", "st.x TYPE VARCHAR")] if GRAMMAR else []),
        ("i ON t USING INVERTED (s)", "s TYPE INTEGER"),
        ("i ON t USING IVF_FLAT (v) WITH (num_partitions = 1)", "v TYPE DOUBLE[2]"),
        ("i ON t USING IVF_FLAT (v) WITH (num_partitions = 1)", "v TYPE VARCHAR"),
    ],
)
def test_an_indexed_column_keeps_its_type_until_its_index_is_dropped(
    con: ld.Connection, tmp_path: Path, index: str, action: str
) -> None:
    con.execute(f"CREATE INDEX {index}")
    version = table(tmp_path).version
    with pytest.raises(ReferencedError, match=r'table t: .*found i; DROP INDEX "i" ON "t"; .* CREATE INDEX again'):
        con.execute(f"ALTER TABLE t ALTER COLUMN {action}")
    assert table(tmp_path).version == version
    con.execute('DROP INDEX "i" ON "t"')
    con.execute(f"ALTER TABLE t ALTER COLUMN {action}")


def test_other_indexes_stay_usable(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("CREATE INDEX i ON t (st.x)")
    con.execute("ALTER TABLE t ALTER id TYPE VARCHAR")
    assert con.execute("SELECT id FROM t WHERE st.x = 3").fetchall() == [("3",)]
    assert [index.name for index in table(tmp_path).describe_indices()] == ["i"]


def test_columns_keep_their_position_and_metadata(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("COMMENT ON COLUMN t.id IS 'the id'")
    con.execute("COMMENT ON COLUMN t.st.y IS 'a letter'")
    table(tmp_path).update_field_metadata({"id": {"lance-duck:default": "4"}})
    con.execute("ALTER TABLE t ALTER id TYPE VARCHAR")
    con.execute("ALTER TABLE t ALTER st TYPE STRUCT(z DATE, y BLOB)")
    con.execute("ALTER TABLE t ALTER v TYPE FLOAT[]")
    schema = table(tmp_path).handle.snapshot.schema
    assert schema.names == ["id", "s", "st", "v"]
    assert schema.by_path("id").metadata == {"comment": "the id", "lance-duck:default": "4"}
    assert schema.by_path("st.y").metadata == {"comment": "a letter"}


@pytest.mark.parametrize("action", ["id TYPE INTEGER", "id TYPE VARCHAR", "id TYPE BIGINT USING -id"])
def test_keys_only_get_types_in_which_they_stay_different(
    tmp_path: Path, connect: Callable[..., ld.Connection], action: str
) -> None:
    con = connect(tmp_path)
    con.execute("CREATE TABLE lance.t (id DOUBLE PRIMARY KEY)")
    con.execute("INSERT INTO t VALUES (1.2), (1.4)")
    with pytest.raises(UnsupportedError, match="different primary keys could become equal"):
        con.execute(f"ALTER TABLE t ALTER {action}")
    con.execute("SET lance_check_primary_key = false")
    con.execute(f"ALTER TABLE t ALTER {action}")
    with pytest.raises(InvalidInputError, match="a primary key column cannot get a nested type"):
        con.execute("ALTER TABLE t ALTER id TYPE INTEGER[] USING [1]")


def test_earlier_versions_and_row_ids_stay(tmp_path: Path, connect: Callable[..., ld.Connection]) -> None:
    con = connect(tmp_path)
    con.execute(f"CREATE TABLE lance.t WITH (enable_stable_row_ids = true) AS {ROWS}")
    con.execute("DELETE FROM t WHERE id < 2")
    con.execute("ALTER TABLE t ALTER id TYPE VARCHAR USING 'n' || id")
    assert con.execute("SELECT rowid, id FROM t WHERE rowid < 4 ORDER BY 1").fetchall() == [(2, "n2"), (3, "n3")]
    assert con.execute("SELECT sum(id) FROM t AT (VERSION => 1)").fetchall() == [(15,)]
    assert type(table(tmp_path).read_transaction(3).operation).__name__ == "Merge"


def test_a_branch_changes_alone(tmp_path: Path, connect: Callable[..., ld.Connection]) -> None:
    main = ld.write_dataset(pa.table({"a": [1, 2]}), tmp_path / "t.lance")
    con = connect({"b": main.create_branch("side")})
    con.execute("ALTER TABLE b ALTER a TYPE VARCHAR")
    assert con.execute("FROM b").fetchall() == [("1",), ("2",)]
    assert table(tmp_path).to_table().to_pydict() == {"a": [1, 2]}


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_blobs_become_strings_or_stay_blobs(
    tmp_path: Path, connect: Callable[..., ld.Connection], version: str
) -> None:
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    rows = pa.table([pa.array([b"aa", None, b""], blob.type)], schema=pa.schema([blob]))
    ld.write_dataset(rows, tmp_path / "t.lance", data_storage_version=version)
    con = connect(tmp_path)
    con.execute("ALTER TABLE t ALTER b TYPE BLOB")
    assert table(tmp_path).version == 1
    con.execute("ALTER TABLE t ALTER b TYPE BLOB USING b || '!'::BLOB")
    assert table(tmp_path).handle.snapshot.schema.fields[0].blob_version == (2 if version == "2.2" else 1)
    con.execute("ALTER TABLE t ALTER b TYPE VARCHAR")
    assert table(tmp_path).to_table().column("b").to_pylist() == ["aa!", None, "!"]


def test_types_depend_on_the_settings_of_the_connection(con: ld.Connection) -> None:
    con.execute("CREATE TABLE lance.times AS SELECT TIMESTAMP '2020-02-03 04:05:06' AS ts")
    con.execute("SET TimeZone = 'America/New_York'")
    con.execute("ALTER TABLE times ALTER ts TYPE TIMESTAMPTZ")
    con.execute("SET TimeZone = 'UTC'")
    assert con.execute("SELECT ts::VARCHAR FROM times").fetchall() == [("2020-02-03 09:05:06+00",)]
    con.execute("SET preserve_insertion_order = false")
    con.execute("ALTER TABLE t ALTER id TYPE VARCHAR")
    assert con.execute("SELECT count(*) FROM t WHERE id = s AND st.x::VARCHAR = s").fetchall() == [(6,)]


def test_null_vectors_lists_and_structs_stay_null(con: ld.Connection, tmp_path: Path) -> None:
    con.execute(
        "CREATE OR REPLACE TABLE lance.t AS"
        " SELECT NULL::FLOAT[3] v, NULL::DOUBLE[] l, NULL::STRUCT(x INTEGER) s FROM range(2)"
    )
    for action in ("v TYPE DOUBLE[3]", "v TYPE DOUBLE[]", "l TYPE FLOAT[2]", "s TYPE STRUCT(x VARCHAR, y INTEGER)"):
        con.execute(f"ALTER TABLE t ALTER {action}")
    assert table(tmp_path).to_table().to_pylist() == [{"v": None, "l": None, "s": None}] * 2


@pytest.mark.parametrize("around", ["{}", "{}[]", "STRUCT(m {})", "MAP(INTEGER, {})"])
def test_a_map_whose_keys_become_equal_is_rejected(
    tmp_path: Path, connect: Callable[..., ld.Connection], around: str
) -> None:
    con = connect(tmp_path)
    before, equal, after = (around.format(f"MAP({key}, VARCHAR)") for key in ("INTEGER", "BOOLEAN", "VARCHAR"))
    con.execute(f"CREATE TABLE lance.t (m {before}) WITH (data_storage_version = '2.2')")
    value = {"{}": "{}", "{}[]": "[{}]", "STRUCT(m {})": "{{'m': {}}}", "MAP(INTEGER, {})": "MAP {{1: {}}}"}[around]
    entries = "MAP {1: 'a', 2: 'b'}"
    con.execute(f"INSERT INTO t SELECT {value.format(entries)}")
    for using in ("", f" USING m::{equal}"):
        with pytest.raises((InvalidInputError, duckdb.Error), match="Map keys must be unique"):
            con.execute(f"ALTER TABLE t ALTER m TYPE {equal}{using}")
    con.execute(f"ALTER TABLE t ALTER m TYPE {after}")
    assert con.execute("SELECT DISTINCT m::VARCHAR LIKE '%1=a, 2=b%' FROM t").fetchall() == [(True,)]


def test_values_are_computed_again_after_a_lost_race(con: ld.Connection, tmp_path: Path) -> None:
    raced: list[bool] = []

    def race(value: int) -> int:
        if not raced:
            raced.append(True)
            table(tmp_path).insert(table(tmp_path).to_table().slice(0, 1))
        return value + 1

    con.create_function("raced", race, ["BIGINT"], "BIGINT")
    con.execute("ALTER TABLE t ALTER id TYPE BIGINT USING raced(id)")
    assert con.execute("SELECT id FROM t ORDER BY id").fetchall() == [(1,), (1,), (2,), (3,), (4,), (5,), (6,)]


def test_failed_changes_leave_no_files(con: ld.Connection, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*.*"))
    for action in ("s TYPE DATE", "s TYPE DATE USING s", "id TYPE TINYINT USING id * 100"):
        with pytest.raises(duckdb.Error):
            con.execute(f"ALTER TABLE t ALTER {action}")
    assert sorted(tmp_path.rglob("*.*")) == before
