"""The page `docs/sql.md`: each row of its tables runs, with all that the row names; `page.sql` has the statements.

A line `--= …` there is the first cell of a row of the page.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from support.statements import StatementCase, read_cases

import lance_duck as ld
from lance_duck.errors import LanceDuckError, UnsupportedError

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "reference" / "sql" / "index.md"
# What rows name and statements need not: words of prose.
WORDS = {"BM25", "CSV", "JSON", "NULL", "REST", "SQL", "parameter"}
# Rows that are about Python: the tests below run them.
IN_PYTHON = {"`executemany` · `con.append(name, frame)`", "`ld.connect(…, read_only=True)`"}


def rows_of_the_page(*, types: bool = False) -> dict[str, str]:
    """Return the rows of the page's tables by their first cells: those of statements, or those of types."""
    statements, _, last = PAGE.read_text(encoding="utf-8").partition("\n## Types\n")
    lines = (last if types else statements).splitlines()
    rows = [line[2:] for line in lines if line.startswith("| ") and not line.startswith(("| |", "| DuckDB"))]
    return {re.split(r"(?<!\\)\|", row)[0].strip(): row for row in rows}


ROWS = rows_of_the_page()
CASES: dict[str, list[StatementCase]] = {}
for each in read_cases(HERE / "page.sql"):
    CASES.setdefault(each.about, []).append(each)


# Values of the types that the page names: in SQL, their type in the table, and the type in SQL again.
KEPT = {
    "`BOOLEAN`, integers up to 64 bits, `FLOAT`, `DOUBLE`, `DECIMAL`, `VARCHAR`, `BLOB`, `DATE`, "
    "`TIMESTAMP[_S, _MS, _NS]`, `TIMESTAMPTZ[_NS]`, `STRUCT`, `LIST`, `MAP`, arrays of numbers": [
        ("true", "bool", "BOOLEAN"),
        ("1::TINYINT", "int8", "TINYINT"),
        ("1::UBIGINT", "uint64", "UBIGINT"),
        ("1.5::FLOAT", "float", "FLOAT"),
        ("1.5::DOUBLE", "double", "DOUBLE"),
        ("1.25::DECIMAL(9, 2)", "decimal128(9, 2)", "DECIMAL(9,2)"),
        ("'a'", "string", "VARCHAR"),
        ("'a'::BLOB", "binary", "BLOB"),
        ("DATE '2024-01-02'", "date32[day]", "DATE"),
        ("TIMESTAMP '2024-01-02'", "timestamp[us]", "TIMESTAMP"),
        ("'2024-01-02'::TIMESTAMP_S", "timestamp[s]", "TIMESTAMP_S"),
        ("'2024-01-02'::TIMESTAMP_MS", "timestamp[ms]", "TIMESTAMP_MS"),
        ("'2024-01-02'::TIMESTAMP_NS", "timestamp[ns]", "TIMESTAMP_NS"),
        ("{'a': 1, 'b': 'x'}", "struct<a: int32, b: string>", "STRUCT(a INTEGER, b VARCHAR)"),
        ("[1, NULL]", "list<item: int32>", "INTEGER[]"),
        ("MAP {'a': 1}", "map<string, int32>", "MAP(VARCHAR, INTEGER)"),
        ("[1, 2]::FLOAT[2]", "fixed_size_list<item: float>[2]", "FLOAT[2]"),
    ],
    "`TIME`, `TIME_NS`": [("TIME '12:00:00'", "time64[us]", "TIME")],
    "`HUGEINT`, `UHUGEINT`": [
        ("1::HUGEINT", "decimal128(38, 0)", "DECIMAL(38,0)"),
        ("1::UHUGEINT", "decimal128(38, 0)", "DECIMAL(38,0)"),
    ],
    "`UUID`": [("'00000000-0000-0000-0000-000000000001'::UUID", "extension<arrow.uuid>", "UUID")],
    "`ENUM`": [("'a'::ENUM('a', 'b')", "dictionary<values=string, indices=uint8, ordered=0>", "VARCHAR")],
    "`GEOMETRY`": [("'POINT (1 2)'::GEOMETRY", "binary", "GEOMETRY")],
    "`JSON`": [("'[1]'::JSON", "string", "VARCHAR")],
    "`TUPLE` (2.0)": [],
}
REFUSED = {
    "INTERVAL": "INTERVAL 1 DAY",
    "TIMETZ": "'12:00:00+01'::TIMETZ",
    "BIT": "'101'::BIT",
    "BIGNUM": "1::BIGNUM",
    "UNION": "union_value(a := 1)",
    "VARIANT": "1::VARIANT",
    "arrays of texts": "['a']::VARCHAR[1]",
    "arrays of lists": "[[1]]::INTEGER[][1]",
}


def names(row: str) -> set[str]:
    """Return the keywords, functions and parameters that a row of the page names."""
    code = " ".join(re.findall(r"`[^`]+`", row))
    words = {*re.findall(r"\b[A-Z][A-Z_0-9]{2,}\b", row), *re.findall(r"\blance_\w+|\w+(?= (?::=|=>))", code)}
    return {word.lower() for word in words - WORDS}


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder `dir` with tables `t` (four versions, tag `v1`, branch `dev`), `q` and `x`."""
    place = tmp_path_factory.mktemp("page")
    vector = pa.list_(pa.float32(), 2)

    def rows(*ids: int) -> pa.Table:
        body = [["duck lake", "a goose on the lake", "duck", "rain"][number % 4] for number in ids]
        return pa.table(
            {
                "id": ids,
                "city": [["Rome", "Oslo", None][number % 3] for number in ids],
                "x": [number * 10 for number in ids],
                "body": body,
                "vec": pa.array([[number, 0] for number in ids], vector),
            }
        )

    t = ld.write_dataset(rows(0, 1, 2), place / "dir/t.lance", enable_stable_row_ids=True)
    t.tags.create("v1", 1)
    t.insert(rows(3, 4))
    t.update({"x": "x + 1"}, where="id = 1")
    t.delete("id = 4")
    t.create_branch("dev")
    ld.write_dataset(rows(0, 1, 2, 3), place / "dir/x.lance")
    ld.write_dataset(pa.table({"k": [3, 0], "vec": pa.array([[3, 0], [0, 0]], vector)}), place / "dir/q.lance")
    return place


@pytest.fixture
def folder(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(example, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def connect(folder: Path) -> Iterator[Callable[..., ld.Connection]]:
    opened: list[ld.Connection] = []

    def connect(**options: object) -> ld.Connection:
        opened.append(ld.connect("dir", **options))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


@pytest.mark.parametrize("row", CASES)
def test_a_row_of_the_page_runs(row: str, folder: Path, connect: Callable[..., ld.Connection]) -> None:
    con = connect()
    for case in CASES[row]:
        if "duckdb 2" in case.only and duckdb.__version__ < "2":
            continue
        try:
            case.check(lambda sql: con.execute(sql.replace("{folder}", str(folder))).fetchall(), is_native=False)
        except (Exception, pytest.fail.Exception) as error:
            raise AssertionError(f"page.sql:{case.line}: {case.sql}\n{error}") from error


def test_each_row_of_the_page_has_statements_with_all_that_it_names() -> None:
    assert set(ROWS) == {*CASES, *IN_PYTHON}
    missing = {}
    for key, cases in CASES.items():
        text = " ".join(f"{case.sql} {case.rows} {case.error}" for case in cases).lower()
        if lacking := {word for word in names(ROWS[key]) if word not in text}:
            missing[key] = lacking
    assert not missing


def test_rows_of_many_parameters_and_of_a_frame_are_one_version(connect: Callable[..., ld.Connection]) -> None:
    con = connect()
    con.executemany("INSERT INTO t (id) VALUES (?)", [[7], [8]])
    assert ld.dataset("dir/t.lance").version == 5
    con.append("t", con.execute("FROM t WHERE id > 6").df())
    assert (ld.dataset("dir/t.lance").version, ld.dataset("dir/t.lance").count_rows("id > 6")) == (6, 4)


@pytest.mark.parametrize("statement", ["DELETE FROM t", "OPTIMIZE t", "CREATE INDEX i ON t (id)", "DROP TABLE t"])
def test_a_connection_for_reading_refuses_changes(connect: Callable[..., ld.Connection], statement: str) -> None:
    con = connect(read_only=True)
    for each in (con, con.cursor()):
        with pytest.raises(LanceDuckError, match="read_only"):
            each.execute(statement)
    assert con.execute("SELECT count(*) FROM t").fetchall() == [(4,)]


@pytest.mark.parametrize("cell", KEPT)
def test_types_of_the_page_come_back_as_it_says(connect: Callable[..., ld.Connection], cell: str) -> None:
    con = connect()
    for value, stored, name in KEPT[cell]:
        ds = ld.write_dataset(con.sql(f"SELECT {value} AS c"), "dir/kept.lance", mode="overwrite")
        assert str(ds.schema.field("c").type).replace("<l: ", "<item: ") == stored
        assert con.execute("SELECT typeof(c), c = ? FROM kept".replace("?", value)).fetchall() == [(name, True)]


@pytest.mark.parametrize("value", REFUSED.values(), ids=REFUSED)
def test_types_that_the_page_says_are_refused_are(connect: Callable[..., ld.Connection], value: str) -> None:
    with pytest.raises(UnsupportedError, match="column 'c'"):
        ld.write_dataset(connect().sql(f"SELECT {value} AS c"), "dir/refused.lance")


def test_each_type_of_the_page_is_written_or_refused() -> None:
    *kept, refused = rows_of_the_page(types=True)
    assert list(KEPT) == kept
    assert set(re.findall(r"`([A-Z]+)`", refused)) <= set(REFUSED)
