"""Tables whose columns or fields differ only by case: ambiguous changes are rejected, others are right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import lance
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import AlreadyExistsError, InvalidInputError

COLUMNS = pa.table({"id": [1, 2, 3], "ID": [10, 20, 30], "s": ["x", "y", "z"]})
TWO = pa.struct([("a", pa.int32()), ("A", pa.int32())])
FIELDS = pa.table({"k": [1, 2], "s": pa.array([{"a": 1, "A": 2}, None], TWO), "l": pa.array([[{"a": 1}], None])})


@pytest.fixture
def con(tmp_path: Path, connect: Callable[..., ld.Connection]) -> ld.Connection:
    lance.write_dataset(COLUMNS, tmp_path / "t.lance")
    lance.write_dataset(FIELDS, tmp_path / "n.lance")
    return connect(tmp_path)


def rows(tmp_path: Path, name: str = "t") -> list[tuple[object, ...]]:
    table = ld.dataset(tmp_path / f"{name}.lance").to_table()
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


@pytest.mark.parametrize(
    "statement",
    [
        'UPDATE t SET "ID" = 5',
        "UPDATE t SET (s, id) = ('q', 1)",
        "UPDATE t SET s = id::VARCHAR",
        "UPDATE t SET s = 'q' WHERE \"id\" = 1",
        "UPDATE t SET s = 'q' WHERE ID_1 = 20",
        "UPDATE t AS x SET s = 'q' WHERE x.Id = 20",
        "UPDATE t SET s = 'q' WHERE t.ID = 20",
        "UPDATE t SET s = 'q' RETURNING *",
        "UPDATE t SET s = 'q' RETURNING s, id",
        "UPDATE t SET s = 'q' RETURNING t",
        "UPDATE t SET s = 'q' FROM (SELECT 1 AS id) o WHERE t.id = o.id",
        "DELETE FROM t WHERE id = 1",
        "DELETE FROM t USING (SELECT 1 AS k) o WHERE o.k = ID_1",
        "DELETE FROM t WHERE s = 'x' RETURNING *",
        "INSERT INTO t (id) VALUES (1)",
        "INSERT INTO t (s, \"ID\") SELECT 'q', 1",
        "INSERT INTO t BY NAME SELECT 4 AS id, 'q' AS s",
        "INSERT INTO t VALUES (4, 40, 'q') RETURNING *",
        "INSERT INTO t (s) VALUES ('q') ON CONFLICT (id) DO NOTHING",
        "INSERT INTO t VALUES (4, 40, 'x') ON CONFLICT (s) DO NOTHING",
        "MERGE INTO t USING (SELECT 1 AS k) u ON t.id = u.k WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING (SELECT 1 AS id) u USING (id) WHEN MATCHED THEN UPDATE SET s = 'q'",
        "MERGE INTO t USING (SELECT 'x' AS k) u ON t.s = u.k WHEN MATCHED THEN UPDATE SET id = 1",
        "MERGE INTO t USING (SELECT 7 AS id, 8, 'q' AS k) u ON t.s = u.k WHEN NOT MATCHED THEN INSERT",
        'WITH c AS (SELECT s FROM t WHERE "ID" = 2) DELETE FROM t WHERE s IN (SELECT s FROM c)',
        'DELETE FROM t WHERE s IN (SELECT s FROM (FROM t) q WHERE q."ID" = 2)',
        "UPDATE t SET s = c.k FROM (SELECT s, ID AS k FROM lance.t) c WHERE c.s = t.s",
        'INSERT INTO t (s) SELECT "ID"::VARCHAR FROM t',
        'MERGE INTO t USING (SELECT s, "ID" AS k FROM t) c ON t.s = c.s WHEN MATCHED THEN UPDATE SET s = c.k::VARCHAR',
        'ALTER TABLE t ADD COLUMN k INTEGER DEFAULT "ID"',
        "COPY t FROM '{folder}/f.csv'",
        "COPY t (s, id) FROM '{folder}/f.csv'",
        'ALTER TABLE t DROP COLUMN "ID"',
        "ALTER TABLE t DROP COLUMN IF EXISTS id",
        "ALTER TABLE t RENAME COLUMN id TO other",
        "ALTER TABLE t ALTER COLUMN id TYPE INTEGER",
        "ALTER TABLE t ALTER COLUMN id SET NOT NULL",
        "COMMENT ON COLUMN t.\"ID\" IS 'x'",
        'CREATE INDEX ON t ("ID")',
        "CREATE INDEX ON t USING BTREE (id)",
    ],
)
def test_changes_of_one_of_two_case_variants_are_rejected_and_list_both(
    con: ld.Connection, tmp_path: Path, statement: str
) -> None:
    (tmp_path / "f.csv").write_text("1,2,q\n")
    with pytest.raises(InvalidInputError, match=r"'id', 'ID'.*alter_columns"):
        con.execute(statement.replace("{folder}", str(tmp_path)))
    assert rows(tmp_path) == [(1, 10, "x"), (2, 20, "y"), (3, 30, "z")]
    assert ld.dataset(tmp_path / "t.lance").version == 1
    assert con.execute("SELECT 1").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("statement", "result", "after"),
    [
        ("UPDATE t SET s = 'q' WHERE s = 'x'", [(1,)], [(1, 10, "q"), (2, 20, "y"), (3, 30, "z")]),
        (
            "UPDATE t SET s = 'q' WHERE s = 'x' RETURNING s, 2 * 3",
            [("q", 6)],
            [(1, 10, "q"), (2, 20, "y"), (3, 30, "z")],
        ),
        (
            "UPDATE t SET s = o.id FROM (SELECT 'x' AS k, 'q' AS id) o WHERE o.k = t.s",
            [(1,)],
            [(1, 10, "q"), (2, 20, "y"), (3, 30, "z")],
        ),
        (
            "UPDATE t SET s = upper(s) WHERE s IN (SELECT * FROM (VALUES ('y')))",
            [(1,)],
            [(1, 10, "x"), (2, 20, "Y"), (3, 30, "z")],
        ),
        ("DELETE FROM t WHERE s > 'x' RETURNING s", [("y",), ("z",)], [(1, 10, "x")]),
        (
            "INSERT INTO t VALUES (2 + 2, 40, 'w')",
            [(1,)],
            [(1, 10, "x"), (2, 20, "y"), (3, 30, "z"), (4, 40, "w")],
        ),
        (
            "INSERT INTO t SELECT 4, 40, 'w'",
            [(1,)],
            [(1, 10, "x"), (2, 20, "y"), (3, 30, "z"), (4, 40, "w")],
        ),
        (
            "INSERT INTO t (s) VALUES ('x'), ('w') ON CONFLICT (s) DO NOTHING",
            [(1,)],
            [(1, 10, "x"), (2, 20, "y"), (3, 30, "z"), (None, None, "w")],
        ),
        (
            "MERGE INTO t USING (SELECT 'x' AS k) u ON t.s = u.k WHEN MATCHED THEN UPDATE SET s = 'q'",
            [(1,)],
            [(1, 10, "q"), (2, 20, "y"), (3, 30, "z")],
        ),
        ("ALTER TABLE t DROP COLUMN s", [], [(1, 10), (2, 20), (3, 30)]),
    ],
)
def test_changes_of_other_columns_keep_both_case_variants(
    con: ld.Connection,
    tmp_path: Path,
    statement: str,
    result: list[tuple[object, ...]],
    after: list[tuple[object, ...]],
) -> None:
    assert sorted(con.execute(statement).fetchall()) == result
    assert rows(tmp_path) == after


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE n SET k = 5 WHERE s.a = 1",
        "UPDATE n SET k = 5 WHERE s['A'] = 2",
        "UPDATE n SET k = 5 WHERE struct_extract(s, 'a') = 1",
        "UPDATE n SET s = NULL",
        "UPDATE n SET k = 5 RETURNING *",
        "UPDATE n SET k = 5 RETURNING s",
        'DELETE FROM n WHERE n.s."A" = 2',
        "INSERT INTO n (s) VALUES ({'a': 1})",
        "MERGE INTO n USING (SELECT 1 AS k) u USING (k) WHEN MATCHED THEN UPDATE SET s = NULL",
        "ALTER TABLE n DROP COLUMN s.a",
        'ALTER TABLE n RENAME COLUMN s."A" TO b',
        *(["ALTER TABLE n ALTER COLUMN s.a TYPE BIGINT"] if duckdb.__version__ >= "2" else []),
        "COMMENT ON COLUMN n.s.a IS 'x'",
        "CREATE INDEX ON n (s.a)",
    ],
)
def test_changes_of_one_of_two_field_case_variants_are_rejected_and_list_both(
    con: ld.Connection, tmp_path: Path, statement: str
) -> None:
    with pytest.raises(InvalidInputError, match="'a', 'A'"):
        con.execute(statement)
    assert ld.dataset(tmp_path / "n.lance").to_table() == FIELDS


def test_changes_of_other_columns_keep_both_field_case_variants(con: ld.Connection, tmp_path: Path) -> None:
    assert con.execute("UPDATE n SET k = 5 WHERE s IS NULL RETURNING k").fetchall() == [(5,)]
    con.execute("DELETE FROM n WHERE k = 7")
    con.execute("INSERT INTO n (k) VALUES (7)")
    con.execute("ALTER TABLE n ADD COLUMN s.b INTEGER")
    two = [(1, {"a": 1, "A": 2, "b": None}, [{"a": 1}]), (5, None, None), (7, None, None)]
    assert rows(tmp_path, "n") == two


@pytest.mark.parametrize(
    "statement",
    [
        *('ADD COLUMN "S" INTEGER', 'ADD COLUMN "Id" INTEGER', 'RENAME s TO "iD"'),
        *("ADD COLUMN id_1 INTEGER", "RENAME s TO ID_1"),
    ],
)
def test_statements_cannot_create_names_that_differ_only_by_case(
    con: ld.Connection, tmp_path: Path, statement: str
) -> None:
    with pytest.raises(InvalidInputError, match="already exists"):
        con.execute(f"ALTER TABLE t {statement}")
    assert ld.dataset(tmp_path / "t.lance").schema.names == ["id", "ID", "s"]


@pytest.mark.parametrize("name", ['"T"', "T", '"t"'])
def test_a_table_cannot_be_renamed_to_a_case_variant_of_another_table(
    con: ld.Connection, tmp_path: Path, name: str
) -> None:
    with pytest.raises(AlreadyExistsError, match="another table"):
        con.execute(f"ALTER TABLE n RENAME TO {name}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["n.lance", "t.lance"]
    con.execute('ALTER TABLE n RENAME TO "N"')
    assert con.execute("SHOW TABLES").fetchall() == [("N",), ("t",)]


def test_a_column_can_be_renamed_to_another_case(con: ld.Connection, tmp_path: Path) -> None:
    con.execute('ALTER TABLE t RENAME COLUMN s TO "S"')
    assert ld.dataset(tmp_path / "t.lance").schema.names == ["id", "ID", "S"]


def test_renaming_one_of_the_columns_resolves_the_ambiguity(con: ld.Connection, tmp_path: Path) -> None:
    ld.dataset(tmp_path / "t.lance").alter_columns({"path": "ID", "name": "other"})
    con.execute("UPDATE t SET other = 5 WHERE id = 1")
    assert rows(tmp_path) == [(1, 5, "x"), (2, 20, "y"), (3, 30, "z")]


SIZE = 40
NUMBERS = range(SIZE)
VECTORS = pa.FixedSizeListArray.from_arrays(pa.array(range(2 * SIZE), pa.float32()), 2)
TURNED = pa.FixedSizeListArray.from_arrays(pa.array(reversed(range(2 * SIZE)), pa.float32()), 2)
VARIANTS = pa.table(
    {
        "id": NUMBERS,
        "ID": [7 * i % SIZE for i in NUMBERS],
        "s": ["duck" if i % 3 == 0 else "goose" for i in NUMBERS],
        "ID_1": [i + 100 for i in NUMBERS],
        "S": ["goose" if i % 3 == 0 else "lake" for i in NUMBERS],
        "vec": VECTORS,
        "w": VECTORS,
        "VEC": TURNED,
    }
)
"""DuckDB calls these columns id, ID_1, s, ID_1_1, S_1, vec, w and VEC_1."""

INDEXES = {
    "nothing": (),
    "first": (("id", "BTREE"), ("s", "BITMAP"), ("vec", "IVF_FLAT"), ("w", "IVF_FLAT")),
    "second": (("ID", "BTREE"), ("S", "BITMAP"), ("VEC", "IVF_FLAT"), ("ID_1", "BTREE")),
    "bitmaps": tuple((name, "BITMAP") for name in ("id", "ID", "ID_1", "s", "S")),
    "zones": (("id", "ZONEMAP"), ("ID", "ZONEMAP"), ("s", "NGRAM"), ("S", "NGRAM"), ("ID_1", "BLOOMFILTER")),
}
READS = [
    'SELECT * FROM {t} WHERE "ID" = 2',
    "SELECT * FROM {t} WHERE Id = 2",
    "SELECT * FROM {t} WHERE ID_1 = 2",
    "SELECT * FROM {t} WHERE id_1_1 = 102",
    "SELECT id FROM {t} WHERE id_1 = 102",
    'SELECT id, ID_1 FROM {t} WHERE "ID" IN (2, 3)',
    "SELECT id, ID_1 FROM {t} WHERE ID_1 IN (2, 3)",
    "SELECT id FROM {t} WHERE ID_1_1 IN (102, 103)",
    "SELECT id FROM {t} WHERE ID_1 BETWEEN 3 AND 5 AND id >= 0",
    "SELECT id FROM {t} WHERE id = ID_1",
    'SELECT id FROM {t} WHERE "ID" = ?',
    "SELECT id FROM {t} WHERE ID_1 = ?",
    'SELECT id FROM {t} WHERE "S" = \'goose\' AND "ID" < 10',
    "SELECT id FROM {t} WHERE S_1 = 'lake' AND ID_1 < 10",
    "SELECT id FROM {t} WHERE \"S\" LIKE '%uck%'",
    "SELECT id FROM {t} WHERE S_1 LIKE '%lak%'",
    'SELECT count(*), max("ID"), min(ID_1), max(ID_1_1), max("id_1") FROM {t}',
    "SELECT max(S), min(s), min(S_1), count(S_1), count(DISTINCT s_1) FROM {t}",
    'SELECT a.id, b.ID_1 FROM {t} a JOIN {t} b ON a."ID" = b.ID_1 WHERE a.id < 5',
    "SELECT x.id FROM {t} x JOIN (SELECT 3 AS k) o ON o.k = x.ID_1",
    'SELECT x.ID_1 FROM {t} x JOIN (SELECT 3 AS k) o ON o.k = x."ID"',
    "SELECT x.id FROM {t} x JOIN (SELECT 103 AS k) o ON o.k = x.ID_1_1",
    'SELECT ID_1 FROM {t} JOIN (SELECT 5 AS "ID") USING (id)',
    "SELECT id FROM {t} WHERE ID_1 = (SELECT max(id) FROM {t})",
    'SELECT * EXCLUDE (ID_1, vec, w, VEC_1) FROM {t} ORDER BY "ID" DESC LIMIT 2',
    "SELECT id FROM {t} ORDER BY ID_1 LIMIT 3",
    'SELECT "ID", sum(ID_1) FROM {t} GROUP BY "ID" ORDER BY ALL LIMIT 3',
    'SELECT id FROM {t} ORDER BY array_distance("VEC", [0, 0]::FLOAT[2]) LIMIT 3',
    "SELECT id FROM {t} ORDER BY array_distance(VEC_1, [0, 0]::FLOAT[2]) LIMIT 3",
    'SELECT id FROM {t} WHERE "ID" > 30 ORDER BY array_distance(w, [0, 0]::FLOAT[2]) LIMIT 3',
    "SELECT id FROM {t} WHERE ID_1 > 30 ORDER BY array_distance(w, [0, 0]::FLOAT[2]) LIMIT 3",
    "SELECT COLUMNS('^ID') FROM {t} WHERE id = 4",
]


@pytest.fixture(scope="module")
def variants(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("variants")
    for name, indexes in INDEXES.items():
        lance.write_dataset(VARIANTS, folder / f"{name}.lance", max_rows_per_file=25)
        dataset = ld.dataset(folder / f"{name}.lance")
        for column, kind in indexes:
            if kind == "IVF_FLAT":
                dataset.create_index(column, kind, num_partitions=2)
            else:
                dataset.create_scalar_index(column, kind)
    return folder


@pytest.mark.parametrize("statement", READS)
def test_reads_of_case_variants_equal_native_reads_with_and_without_indexes(
    variants: Path, connect: Callable[..., ld.Connection], statement: str
) -> None:
    parameters = [2] if "?" in statement else None
    con = connect(variants)
    with duckdb.connect() as native:
        native.register("given", VARIANTS)
        native.execute("CREATE TABLE u AS FROM given")
        wanted = native.execute(statement.replace("{t}", "u"), parameters).fetchall()
    for name in INDEXES:
        sql = statement.replace("{t}", name)
        found = con.execute(sql, parameters).fetchall(), con.sql(sql, params=parameters).fetchall()
        assert [sorted(map(str, rows)) for rows in found] == [sorted(map(str, wanted))] * 2, name


NESTED = pa.struct([("Xy", pa.float64())])
FIELD_TYPES = [("k", pa.int32()), ("Bb", pa.string()), ("N", NESTED), ("É", pa.int32())]
PLAIN_FIELDS = pa.struct(FIELD_TYPES)
"""The fields differ not only in case."""
TWIN_FIELDS = pa.struct([("A", pa.float64()), *FIELD_TYPES, ("a", pa.float64()), ("bB", pa.string())])
STRUCTS = [
    {"k": i, "Bb": f"q{i % 7}", "N": {"Xy": float("nan") if i % 5 == 0 else i % 3}, "É": i % 4}
    | {"A": float("nan") if i % 6 == 0 else i % 2, "a": i % 3, "bB": f"p{i % 7}"}
    if i % 9
    else None
    for i in NUMBERS
]
CONDITIONS = [
    "st.bb = 'q1'",
    "st.BB IN ('q1', 'q2', 'p3')",
    "ST.bB > 'q4' AND st.K < 20",
    "st.K BETWEEN 3 AND 20 AND st.k <> 5",
    "st.n.xY = 2",
    "st.n.XY <= 'nan'",
    "st.n.XY > 'nan'",
    "st.N.xy = 'nan'",
    "st.n IS NULL OR st.K = 4",
    "st.BB IS NOT NULL",
    "st.K IS NULL",
    'st."É" = 3',
    "st.bb = ?",
]
TWIN_CONDITIONS = [
    "st.a = 1",
    'st."A" = 1',
    "st.a <= 'nan'",
    "st.a > 'nan' OR st.K = 1",
    "st.A = 'nan' AND st.k > 1",
    "st.a >= 1 AND st.A < 2",
    "st.a IS NULL",
]


@pytest.fixture(scope="module")
def structs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("structs")
    for name, type_ in (("plain", PLAIN_FIELDS), ("twins", TWIN_FIELDS), ("indexed", PLAIN_FIELDS)):
        table = pa.table({"id": NUMBERS, "st": pa.array(STRUCTS, type_)})
        lance.write_dataset(table, folder / f"{name}.lance", max_rows_per_file=25)
    dataset = ld.dataset(folder / "indexed.lance")
    for column in ("st.Bb", "st.k", "st.N.Xy"):
        dataset.create_scalar_index(column, "BTREE")
    return folder


def rows_where(con: ld.Connection | duckdb.DuckDBPyConnection, table: str, condition: str) -> list[str]:
    parameters = ["q1"] if "?" in condition else None
    found = con.execute(f"SELECT id, st FROM {table} WHERE {condition}", parameters).fetchall()
    assert con.execute(f"SELECT count(*) FROM {table} WHERE {condition}", parameters).fetchall() == [(len(found),)]
    return sorted(map(str, found))


@pytest.mark.parametrize(
    ("table", "condition"),
    [(table, condition) for table in ("plain", "twins", "indexed") for condition in CONDITIONS]
    + [("twins", condition) for condition in TWIN_CONDITIONS],
)
def test_conditions_find_fields_in_any_case_as_native_tables_do(
    structs: Path, connect: Callable[..., ld.Connection], table: str, condition: str
) -> None:
    con = connect(structs)
    with duckdb.connect() as native:
        native.register("given", con.sql(f"FROM {table}").to_arrow_table())
        native.execute("CREATE TABLE u AS FROM given")
        wanted = rows_where(native, "u", condition)
    assert rows_where(con, table, condition) == wanted


@pytest.mark.parametrize("statement", ["DELETE FROM t", "UPDATE t SET id = -id"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_changes_find_fields_in_any_case_as_native_tables_do(
    tmp_path: Path, connect: Callable[..., ld.Connection], statement: str, condition: str
) -> None:
    parameters = ["q1"] if "?" in condition else None
    given = pa.table({"id": NUMBERS, "st": pa.array(STRUCTS, PLAIN_FIELDS)})
    lance.write_dataset(given, tmp_path / "t.lance")
    con = connect(tmp_path)
    con.execute(f"{statement} WHERE {condition}", parameters)
    with duckdb.connect() as native:
        native.execute("CREATE TABLE t AS FROM given")
        native.execute(f"{statement} WHERE {condition}", parameters)
        wanted = native.execute("SELECT id FROM t ORDER BY ALL").fetchall()
    assert con.execute("SELECT id FROM t ORDER BY ALL").fetchall() == wanted


@pytest.mark.parametrize(
    ("statement", "result"),
    [
        ("SELECT id FROM {t} WHERE match(\"S\", 'duck') AND id < 5", [(0,), (3,)]),
        ("SELECT id FROM {t} WHERE match(S_1, 'lake') AND id < 5", [(1,), (2,), (4,)]),
        ("SELECT id FROM {t} WHERE match(S_1, 'lake') AND ID_1 = 7 ORDER BY score({t}) DESC LIMIT 3", [(1,)]),
        ("SELECT id FROM (SELECT id, S_1 AS x FROM {t}) WHERE match(x, 'lake') AND id < 3", [(1,), (2,)]),
        ("SELECT highlight(S_1, 'lake') FROM {t} WHERE id = 1", [("<b>lake</b>",)]),
        ("SELECT id, ID_1 FROM lance_fts('{t}', 'S_1', 'lake', k := 1)", [(1, 7)]),
        ("SELECT id FROM lance_fts('{t}', 's', 'goose', prefilter := true, k := 1) WHERE ID_1 = 9", [(7,)]),
        ("SELECT id FROM lance_vector_search('{t}', 'vec', [0, 0], k := 1)", [(0,)]),
        ("SELECT id FROM lance_vector_search('{t}', 'VEC', [0, 0], k := 1)", [(39,)]),
        ("SELECT id FROM lance_vector_search('{t}', 'VEC_1', [0, 0], k := 1)", [(39,)]),
        (
            "SELECT id FROM lance_vector_search('{t}', 'vec', [0, 0], k := 1, prefilter := true) WHERE \"ID\" = 9",
            [(9,)],
        ),
        ("FROM lance_vector_search('{t}', 'vec', [0, 0], k := 1, prefilter := true) SELECT id WHERE ID_1 = 9", [(7,)]),
        ("SELECT id FROM lance_vector_search('{t}', 'vec', [0, 0], k := 1, filter := 'ID = 9')", [(7,)]),
        ("SELECT id FROM lance_hybrid_search('{t}', 'VEC_1', [0, 0], 'S_1', 'lake', k := 1)", [(39,)]),
    ],
)
def test_searches_of_case_variants_use_duckdbs_names(
    variants: Path, connect: Callable[..., ld.Connection], statement: str, result: list[tuple[object, ...]]
) -> None:
    con = connect(variants)
    for name in INDEXES:
        assert sorted(con.execute(statement.replace("{t}", name)).fetchall()) == result, name


@pytest.mark.parametrize(
    "statement", ["DESCRIBE {t}", "SHOW {t}", "DESCRIBE FROM {t}", "FROM pragma_table_info('{t}')"]
)
def test_all_lists_of_columns_have_duckdbs_names(
    variants: Path, connect: Callable[..., ld.Connection], statement: str
) -> None:
    rows = connect(variants).execute(statement.replace("{t}", "first")).fetchall()
    names = ["id", "ID_1", "s", "ID_1_1", "S_1", "vec", "w", "VEC_1"]
    assert [name for row in rows for name in row if name in names] == names


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET ID_1 = 5",
        "INSERT INTO t (ID_1) VALUES (5)",
        "ALTER TABLE t DROP COLUMN ID_1",
        "ALTER TABLE t RENAME ID_1 TO k",
        "COMMENT ON COLUMN t.ID_1 IS 'x'",
        "CREATE INDEX ON t (ID_1)",
    ],
)
def test_changes_by_duckdbs_name_of_a_case_variant_are_rejected_and_list_both(
    con: ld.Connection, statement: str
) -> None:
    with pytest.raises(InvalidInputError, match=r"'ID_1'.*'id', 'ID'.*alter_columns"):
        con.execute(statement)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ('SELECT 1 AS a, 2 AS "A"', ["a", "A_1"]),
        ('SELECT 1 AS "X", 2 AS x, 3 AS x_1', ["X", "x_1", "x_1_1"]),
        ('SELECT 1 AS a_1, 2 AS a, 3 AS "A"', ["a_1", "a", "A_2"]),
        ('SELECT 1 AS "é", 2 AS "É"', ["é", "É"]),
        ("FROM t", ["id", "ID_1", "s"]),
    ],
)
def test_new_tables_get_the_names_of_native_tables(
    con: ld.Connection, tmp_path: Path, query: str, names: list[str]
) -> None:
    con.execute(f"CREATE TABLE lance.x AS {query}; COPY ({query}) TO '{tmp_path}/y.lance' (FORMAT lance)")
    con.execute(f"CREATE TEMP TABLE native AS {query}")
    assert con.table("native").columns == names
    for name in ("x", "y"):
        assert ld.dataset(tmp_path / f"{name}.lance").schema.names == names


def test_a_table_like_one_with_case_variants_has_duckdbs_names(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE lance.x (LIKE t)")
    assert ld.dataset(tmp_path / "x.lance").schema.names == ["id", "ID_1", "s"]


def test_frames_are_appended_by_position_and_by_unambiguous_names(con: ld.Connection, tmp_path: Path) -> None:
    con.append("t", pa.table({"id": [4], "ID": [40], "s": ["w"]}).to_pandas())
    con.append("t", pa.table({"s": ["v"]}).to_pandas(), by_name=True)
    with pytest.raises(InvalidInputError, match="'id', 'ID'"):
        con.append("t", pa.table({"id": [5]}).to_pandas(), by_name=True)
    assert rows(tmp_path)[3:] == [(4, 40, "w"), (None, None, "v")]


def test_rows_of_case_variants_with_stable_row_ids_can_be_changed(
    tmp_path: Path, connect: Callable[..., ld.Connection]
) -> None:
    lance.write_dataset(COLUMNS, tmp_path / "r.lance", enable_stable_row_ids=True)
    con = connect(tmp_path)
    assert con.execute("UPDATE r SET s = 'q' WHERE s > 'x'").fetchall() == [(2,)]
    assert con.execute("DELETE FROM r WHERE s = 'x'").fetchall() == [(1,)]
    with pytest.raises(InvalidInputError, match="'id', 'ID'"):
        con.execute('UPDATE r SET s = NULL WHERE "ID" = 2')
    assert con.execute("SELECT rowid, id, ID_1, s FROM r ORDER BY ALL").fetchall() == [(1, 2, 20, "q"), (2, 3, 30, "q")]


def test_comments_of_case_variants_stay_apart(tmp_path: Path, connect: Callable[..., ld.Connection]) -> None:
    fields = [pa.field(name, pa.int64(), metadata={"comment": f"of {name}"}) for name in ("id", "ID")]
    ld.write_dataset(pa.table([[1], [2]], schema=pa.schema(fields)), tmp_path / "c.lance")
    sql = "SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'c'"
    assert connect(tmp_path).execute(sql).fetchall() == [("id", "of id"), ("ID_1", "of ID")]


SHIFTED = pa.table(
    {
        "id": range(4),
        "v": pa.FixedSizeListArray.from_arrays(pa.array(range(8), pa.float32()), 2),
        "K": [10] * 4,
        "k": [20] * 4,
        "k_1": [30] * 4,
        "s": ["x", "y", "z", "w"],
        "_DISTANCE": [40] * 4,
    }
)
"""DuckDB calls these columns id, v, K, k_1, k_1_1, s and _DISTANCE. A search adds _distance_1."""


@pytest.fixture
def shifted(tmp_path: Path, connect: Callable[..., ld.Connection]) -> ld.Connection:
    ld.write_dataset(SHIFTED, tmp_path / "e.lance")
    return connect(tmp_path)


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        ("K", (10,)),
        ("k_1", (20,)),
        ("k_1_1, k", (30, 10)),
        ("e.K_1_1 + e.k_1", (50,)),
        ("* EXCLUDE (v)", (0, 10, 20, 30, "x", 40, 1.0)),
        ("_distance_1, _distance", (1.0, 40)),
        ("count(*)", (1,)),
    ],
)
def test_search_results_have_duckdbs_names(shifted: ld.Connection, columns: str, row: tuple[object, ...]) -> None:
    sql = f"SELECT {columns} FROM lance_vector_search('e', 'v', [0, 0], k := 1) AS e"
    assert shifted.execute(sql).fetchall() == shifted.sql(sql).fetchall() == [row]


@pytest.mark.parametrize(
    "statement",
    [
        *("ALTER TABLE e DROP COLUMN k_1", "ALTER TABLE e RENAME k_1_1 TO z", "CREATE INDEX ON e (K_1)"),
        *("COMMENT ON COLUMN e.k_1 IS 'x'", "ALTER TABLE e ADD COLUMN z INTEGER DEFAULT k_1"),
        *("INSERT INTO e (id, k_1) VALUES (9, 1)", "INSERT INTO e BY NAME SELECT 9 AS id, 1 AS k_1"),
        *("UPDATE e SET k_1 = 5", "UPDATE e SET s = 'q' WHERE k_1_1 = 30", "UPDATE e SET s = 'q' RETURNING k_1"),
        *("DELETE FROM e WHERE e.k = 10", "DELETE FROM e WHERE s IN (SELECT s FROM e WHERE k_1 = 20)"),
        "MERGE INTO e USING (SELECT 30 AS k_1) u USING (k_1) WHEN MATCHED THEN DELETE",
        "MERGE INTO e USING (SELECT 1 AS i) u ON e.id = u.i WHEN MATCHED THEN UPDATE SET k_1_1 = 1",
    ],
)
def test_changes_of_columns_that_duckdb_renames_are_rejected_and_list_all(
    shifted: ld.Connection, tmp_path: Path, statement: str
) -> None:
    with pytest.raises(InvalidInputError, match=r"'K', 'k', 'k_1'.*alter_columns"):
        shifted.execute(statement)
    assert ld.dataset(tmp_path / "e.lance").to_table() == SHIFTED


def test_changes_of_other_columns_keep_the_columns_that_duckdb_renames(shifted: ld.Connection, tmp_path: Path) -> None:
    shifted.execute("DELETE FROM e WHERE id = 1")
    shifted.execute("UPDATE e SET s = 'q' WHERE id = 2")
    shifted.execute("MERGE INTO e USING (SELECT 3 AS i) u ON e.id = u.i WHEN MATCHED THEN UPDATE SET s = 'm'")
    shifted.execute("INSERT INTO e (id, s) VALUES (4, 'n')")
    shifted.execute("INSERT INTO e VALUES (5, [1, 1], 1, 2, 3, 'p', 4)")
    found = ld.dataset(tmp_path / "e.lance").to_table(columns=["id", "K", "k", "k_1", "s"]).to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [
        (0, 10, 20, 30, "x"),
        (2, 10, 20, 30, "q"),
        (3, 10, 20, 30, "m"),
        (4, None, None, None, "n"),
        (5, 1, 2, 3, "p"),
    ]
