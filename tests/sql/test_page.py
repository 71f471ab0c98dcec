"""The pages of `docs/reference/sql`: sections are complete, and the statements of `page.sql` run.

A line `--= TITLE` in `page.sql` begins a case of the section with that title. Words after ` · ` distinguish the cases
of one section. The examples of the pages run in `tests/documents`.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from support.pages import blocks, statements
from support.statements import StatementCase, read_cases

import lance_duck as ld
from lance_duck.duck import settings
from lance_duck.duck.changes import indexes
from lance_duck.duck.changes.databases import attach
from lance_duck.duck.changes.registry import READERS
from lance_duck.duck.changes.tables import copy_to
from lance_duck.duck.changes.tables.write_options import WRITE_OPTIONS
from lance_duck.duck.changes.upkeep import operations
from lance_duck.duck.databases import secrets
from lance_duck.duck.full_text.calls import FUNCTIONS
from lance_duck.duck.full_text.rewrite import _MARKS
from lance_duck.duck.macros import macro_text
from lance_duck.duck.run import search_settings
from lance_duck.duck.tables.text_request import _OPTIONS as MATCH_OPTIONS
from lance_duck.errors import LanceDuckError, UnsupportedError
from lance_duck.index.registry import scalar_kinds
from lance_duck.index.vector.layout import KINDS as VECTOR_KINDS

HERE = Path(__file__).parent
PAGES = HERE.parents[1] / "docs" / "reference" / "sql"
WITH_SECTIONS = ("select", "search", "changes", "tables", "schemas", "indexes", "history", "upkeep")
FEWEST = 3
# Names in the syntax that stand for a value: examples have the value.
PLACEHOLDERS = {
    *("alias", "author", "branch", "column", "condition", "database", "document", "expression", "field", "file"),
    *("first_version", "folder", "key", "kind", "k", "large", "last_version", "m", "message", "n", "name", "older"),
    *("option", "path", "post", "pre", "queries", "query", "small", "statement", "table", "tag", "text", "text_column"),
    *("value", "vector", "vector_column", "version", "words", "df", "parameters", "table_name", "older_than_seconds"),
    *("delete_unverified", "parameter", "schema"),
}


@dataclass(frozen=True)
class Section:
    """A section of a page.

    Attributes:
        page: The page.
        title: Its heading.
        text: Its text.
        code: The code of its examples.
        count: Number of statements in the examples.
    """

    page: str
    title: str
    text: str
    code: str
    count: int

    @property
    def parameters(self) -> set[str]:
        """Names in the first cells of its tables of parameters and settings."""
        tables = re.findall(r"^\| (?:Parameter|Setting) \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", self.text, re.MULTILINE)
        cells = [row.split(" | ")[0] for table in tables for row in table.splitlines()]
        return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}

    @property
    def anchor(self) -> str:
        """The section's link."""
        slug = re.sub(r"[^\w -]", "", self.title.lower()).replace(" ", "-")
        return f"{self.page}.md#{slug}"


def sections_of(page: str) -> Iterator[Section]:
    """Yield the sections of a page. The text above the first one has the title ""."""
    path = PAGES / f"{page}.md"
    text = path.read_text(encoding="utf-8")
    in_code = [range(*found.span()) for found in re.finditer(r"^```.*?^```$", text, re.DOTALL | re.MULTILINE)]
    heads = [
        h for h in re.finditer(r"^## (.+)\n", text, re.MULTILINE) if not any(h.start() in code for code in in_code)
    ]
    titles, starts = ["", *(head[1] for head in heads)], [0, *(head.start() for head in heads)]
    lines = [text.count("\n", 0, start) + 1 for start in starts]
    ends, lasts = [*starts[1:], len(text)], [*lines[1:], 1 << 30]
    for title, start, end, first, last in zip(titles, starts, ends, lines, lasts, strict=True):
        code = [block for block in blocks(path) if first <= block.line < last]
        counts = [len(statements(block.code)) if block.language == "sql" else _calls(block.code) for block in code]
        yield Section(page, title, text[start:end], "\n".join(block.code for block in code), sum(counts))


def _calls(code: str) -> int:
    """Return the number of lines of Python that run something."""
    return sum(not line.startswith((" ", "import ", "from ")) for line in code.splitlines() if line.strip())


@cache
def sections() -> dict[str, Section]:
    """Return the sections of all pages by title."""
    pages = (*WITH_SECTIONS, "settings")
    return {section.title: section for page in pages for section in sections_of(page) if section.title}


CASES: dict[str, list[StatementCase]] = {}
for each in read_cases(HERE / "page.sql"):
    CASES.setdefault(each.about, []).append(each)


def title_of(case: str) -> str:
    return case.partition(" · ")[0]


# Values of the types that the page names: in SQL, their type in the table, and the type in SQL again.
KEPT = {
    "`BOOLEAN`": [("true", "bool", "BOOLEAN")],
    "`TINYINT`, `SMALLINT`, `INTEGER`, `BIGINT`": [
        ("1::TINYINT", "int8", "TINYINT"),
        ("1::SMALLINT", "int16", "SMALLINT"),
        ("1::INTEGER", "int32", "INTEGER"),
        ("1::BIGINT", "int64", "BIGINT"),
    ],
    "`UTINYINT`, `USMALLINT`, `UINTEGER`, `UBIGINT`": [
        ("1::UTINYINT", "uint8", "UTINYINT"),
        ("1::USMALLINT", "uint16", "USMALLINT"),
        ("1::UINTEGER", "uint32", "UINTEGER"),
        ("1::UBIGINT", "uint64", "UBIGINT"),
    ],
    "`FLOAT`, `DOUBLE`": [("1.5::FLOAT", "float", "FLOAT"), ("1.5::DOUBLE", "double", "DOUBLE")],
    "`DECIMAL(p, s)`": [("1.25::DECIMAL(9, 2)", "decimal128(9, 2)", "DECIMAL(9,2)")],
    "`HUGEINT`, `UHUGEINT`": [
        ("1::HUGEINT", "decimal128(38, 0)", "DECIMAL(38,0)"),
        ("1::UHUGEINT", "decimal128(38, 0)", "DECIMAL(38,0)"),
    ],
    "`VARCHAR`": [("'a'", "string", "VARCHAR")],
    "`BLOB`": [("'a'::BLOB", "binary", "BLOB")],
    "`DATE`": [("DATE '2024-01-02'", "date32[day]", "DATE")],
    "`TIME`, `TIME_NS`": [("TIME '12:00:00'", "time64[us]", "TIME")],
    "`TIMESTAMP`, `TIMESTAMP_S`, `TIMESTAMP_MS`, `TIMESTAMP_NS`": [
        ("TIMESTAMP '2024-01-02'", "timestamp[us]", "TIMESTAMP"),
        ("'2024-01-02'::TIMESTAMP_S", "timestamp[s]", "TIMESTAMP_S"),
        ("'2024-01-02'::TIMESTAMP_MS", "timestamp[ms]", "TIMESTAMP_MS"),
        ("'2024-01-02'::TIMESTAMP_NS", "timestamp[ns]", "TIMESTAMP_NS"),
    ],
    "`TIMESTAMPTZ`, `TIMESTAMPTZ_NS`": [
        ("'2024-01-02 12:00:00+00'::TIMESTAMPTZ", "timestamp[us, tz=UTC]", "TIMESTAMP WITH TIME ZONE")
    ],
    "`UUID`": [("'00000000-0000-0000-0000-000000000001'::UUID", "extension<arrow.uuid>", "UUID")],
    "`JSON`": [("'[1]'::JSON", "string", "VARCHAR")],
    "`GEOMETRY`": [("'POINT (1 2)'::GEOMETRY", "binary", "GEOMETRY")],
    "`STRUCT`, `MAP`": [
        ("{'a': 1, 'b': 'x'}", "struct<a: int32, b: string>", "STRUCT(a INTEGER, b VARCHAR)"),
        ("MAP {'a': 1}", "map<string, int32>", "MAP(VARCHAR, INTEGER)"),
    ],
    "`T[]`": [("[1, NULL]", "list<item: int32>", "INTEGER[]")],
    "`T[n]`, an array of numbers": [("[1, 2]::FLOAT[2]", "fixed_size_list<item: float>[2]", "FLOAT[2]")],
    "`TUPLE`": [],
}
REFUSED = {
    "`ENUM`": "'a'::ENUM('a', 'b')",
    "`INTERVAL`": "INTERVAL 1 DAY",
    "`TIMETZ`": "'12:00:00+01'::TIMETZ",
    "`BIT`": "'101'::BIT",
    "`BIGNUM`": "1::BIGNUM",
    "`UNION`": "union_value(a := 1)",
    "`VARIANT`": "1::VARIANT",
    "`VARCHAR[n]`, an array of strings": "['a']::VARCHAR[1]",
    "`INTEGER[][n]`, an array of lists": "[[1]]::INTEGER[][1]",
}


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


@pytest.mark.parametrize("case", CASES)
def test_a_case_of_a_section_runs(case: str, folder: Path, connect: Callable[..., ld.Connection]) -> None:
    con = connect()
    for statement in CASES[case]:
        if "duckdb 2" in statement.only and duckdb.__version__ < "2":
            continue
        try:
            statement.check(lambda sql: con.execute(sql.replace("{folder}", str(folder))).fetchall(), is_native=False)
        except (Exception, pytest.fail.Exception) as error:
            raise AssertionError(f"page.sql:{statement.line}: {statement.sql}\n{error}") from error


def test_each_case_belongs_to_a_section() -> None:
    assert {title_of(case) for case in CASES} <= sections().keys()


def code_of(section: Section) -> str:
    """Return the examples of a section and its cases, in lower case."""
    cases = chain.from_iterable(each for title, each in CASES.items() if title_of(title) == section.title)
    return "\n".join([section.code, *(case.sql for case in cases)]).lower()


@pytest.mark.parametrize("title", [title for title, each in sections().items() if each.page in WITH_SECTIONS])
def test_a_section_has_examples_with_each_of_its_parameters(title: str) -> None:
    section = sections()[title]
    assert section.count >= FEWEST
    code = code_of(section)
    assert not {name for name in section.parameters - PLACEHOLDERS if name.lower() not in code}


def parameters_of(*titles: str) -> set[str]:
    """Return the parameters of sections, in lower case; "" is the text above the sections of the page on history."""
    found = [sections()[title].parameters for title in titles if title]
    if "" in titles:
        found.append(next(sections_of("history")).parameters)
    return {name.lower() for name in set().union(*found)}


def test_each_function_and_procedure_has_a_section_or_a_name_in_one() -> None:
    text = macro_text("macros") + macro_text("history")
    macros = set(re.findall(r"MACRO (lance_\w+)\(", text))
    code = " ".join(re.findall(r"`[^`]+`|^## .+$", "".join(s.text for s in sections().values()), re.MULTILINE))
    syntax = " ".join(re.findall(r"^```\{code-block\} text\n(.*?)^```", _all_text(), re.DOTALL | re.MULTILINE))
    for name in {*macros, *operations.PROCEDURES, *FUNCTIONS}:
        assert re.search(rf"\b{name}\b", code + syntax), name
    assert {name for name in macros if not name.endswith("indices")} <= sections().keys()
    assert set(FUNCTIONS) <= sections().keys()


def _all_text() -> str:
    return "\n".join(section.text for section in sections().values())


def test_each_parameter_of_a_table_function_is_in_its_section() -> None:
    missing = {}
    for name, arguments in re.findall(
        r"MACRO (lance_\w+)\((.*?)\) AS TABLE", macro_text("macros") + macro_text("history"), re.DOTALL
    ):
        title = name.replace("indices", "indexes")
        named = set(re.findall(r"(\w+)\"? :=", arguments))
        lead = ("",) if sections()[title].page == "history" else ()
        if lacking := named - parameters_of(title, *lead):
            missing[name] = lacking
    assert not missing


def test_each_verb_of_a_statement_is_in_a_title_or_its_syntax() -> None:
    syntax = " ".join(re.findall(r"^```\{code-block\} text\n(.*?)^```", _all_text(), re.DOTALL | re.MULTILINE)).lower()
    known = syntax + _all_text().lower()
    assert not {verb for verb in READERS if not re.search(rf"\b{verb}\b", known)}


@pytest.mark.parametrize(
    ("titles", "options"),
    [
        (("CREATE TABLE",), WRITE_OPTIONS),
        (("COPY TO", "CREATE TABLE"), copy_to._OPTIONS),
        (("ATTACH",), attach._OPTIONS),
        (("CREATE SECRET",), secrets._OPTIONS),
        (("OPTIMIZE",), operations._COMPACTION),
        (("VACUUM",), operations._CLEANUP),
        (("AUTO_CLEANUP",), operations.SET_AUTO_CLEANUP.parameters.keys() - operations.ALIASES.keys()),
        (("ALTER INDEX OPTIMIZE",), operations._INDEXES.keys() - {"index"}),
        (("lance_optimize_indexes",), operations._INDEXES),
        (("CREATE INDEX",), set(indexes._COMMON)),
        (("Vector indexes",), indexes._VECTOR),
        (
            ("BTREE", "ZONEMAP", "BLOOMFILTER", "JSON", "RTREE", "INVERTED"),
            set(indexes._SCALAR) - {"split_identifiers", "split_on_numerics", "preserve_original", "index_operators"},
        ),
        (("match",), MATCH_OPTIONS["match"]),
        (("match_phrase",), MATCH_OPTIONS["match_phrase"]),
        (("highlight",), _MARKS["highlight"][1]),
        (("snippet",), _MARKS["snippet"][1]),
        (
            ("SET",),
            [f"lance_{name}" for name in search_settings.SearchSettings.__dataclass_fields__],
        ),
        (
            ("Settings of the lance extension",),
            [f"lance_{name}" for name in {**search_settings._ALIASES, **search_settings._WITHOUT_MEANING}],
        ),
        (("Settings of DuckDB",), settings.SETTINGS),
    ],
)
def test_each_option_of_the_code_is_in_a_table(titles: tuple[str, ...], options: Mapping[str, object]) -> None:
    assert not set(map(str.lower, options)) - parameters_of(*titles)


def test_each_alias_of_an_option_is_in_its_section() -> None:
    vectors, cleanup = sections()["Vector indexes"].text, sections()["VACUUM"].text
    assert not {name for name in indexes._ALIASES if f"`{name}`" not in vectors}
    assert not {name for name in operations.ALIASES if f"`{name}`" not in cleanup}


def test_each_kind_of_index_has_a_section() -> None:
    kinds = {entry.sql_name for entry in scalar_kinds()}
    assert kinds <= sections().keys()
    assert not {kind for kind in VECTOR_KINDS if f"`{kind}`" not in sections()["Vector indexes"].text}
    assert not {kind for kind in ("FTS", *kinds) if f"using {kind.lower()}" not in code_of_page("indexes")}


def code_of_page(page: str) -> str:
    return "\n".join(code_of(section) for section in sections().values() if section.page == page)


def test_the_first_page_links_to_each_section() -> None:
    text = (PAGES / "index.md").read_text(encoding="utf-8")
    links = set(re.findall(r"\((\w+\.md#[\w-]+)\)", text))
    anchors = {section.anchor for section in sections().values()}
    assert links <= anchors
    unlinked = {"Settings of DuckDB"}
    assert {section.title for section in sections().values() if section.anchor not in links} <= unlinked


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


def rows_of_types(title: str) -> list[str]:
    """Return the first cells of the first table below a heading of the page on types."""
    text = (PAGES / "types.md").read_text(encoding="utf-8").partition(title)[2]
    table = re.search(r"^\| DuckDB \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert table is not None
    return [row.strip("| ").split(" | ")[0] for row in table[1].splitlines()]


@pytest.mark.parametrize("cell", KEPT)
def test_types_of_the_page_are_stored_and_read_back(connect: Callable[..., ld.Connection], cell: str) -> None:
    con = connect()
    con.execute("SET TimeZone = 'UTC'")
    for value, stored, name in KEPT[cell]:
        ds = ld.write_dataset(con.sql(f"SELECT {value} AS c"), "dir/kept.lance", mode="overwrite")
        assert str(ds.schema.field("c").type).replace("<l: ", "<item: ") == stored
        assert con.execute("SELECT typeof(c), c = ? FROM kept".replace("?", value)).fetchall() == [(name, True)]


@pytest.mark.parametrize("value", REFUSED.values(), ids=REFUSED)
def test_types_that_cannot_be_stored_are_rejected(connect: Callable[..., ld.Connection], value: str) -> None:
    with pytest.raises(UnsupportedError, match="column 'c'"):
        ld.write_dataset(connect().sql(f"SELECT {value} AS c"), "dir/refused.lance")


def test_each_type_of_the_page_is_stored_or_rejected() -> None:
    assert rows_of_types("# Types\n") == list(KEPT)
    assert rows_of_types("## Types that cannot be stored\n") == list(REFUSED)
