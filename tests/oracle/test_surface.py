"""The parameters of the read API compared with pylance: columns, rows and error classes."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds
import pytest
from lance.dataset import serialize_row_addrs
from oracle.cases import Cases
from oracle.compare import assert_tables_same

import lance_duck as ld
from lance_duck.errors import LanceDuckError

CASE_KIND = "surface"
Handle = Any  # a dataset of either library
Both = tuple[Handle, Handle]


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    rng = np.random.default_rng(5)
    n = 600
    numbers = rng.integers(-20, 20, n)
    day = datetime.date(2020, 1, 1)
    table = pa.table(
        {
            "a": pa.array(numbers, mask=rng.random(n) < 0.1),
            "b": pa.array(rng.random(n).round(3), mask=rng.random(n) < 0.1),
            "small": pa.array(rng.integers(0, 100, n).astype("uint8")),
            "s": pa.array(rng.choice(np.array(["apple", "Banana", "", "cherry", "it's", "ünï", "a%b"], object), n)),
            "flag": pa.array(rng.random(n) < 0.4, mask=rng.random(n) < 0.1),
            "d": pa.array([day + datetime.timedelta(int(i)) for i in rng.integers(0, 50, n)]),
            "ts": pa.array(rng.integers(1_577_836_800, 1_580_000_000, n) * 1_000_000).view(pa.timestamp("us")),
            "dec": pa.array([decimal.Decimal(int(i)) / 4 for i in numbers], pa.decimal128(10, 2)),
            "st": pa.StructArray.from_arrays([pa.array(numbers), pa.array([str(i) for i in numbers])], ["x", "y"]),
            "tags": pa.array([["red", "blue", "green"][: i % 4] for i in range(n)], pa.list_(pa.string())),
            "v": pa.FixedSizeListArray.from_arrays(pa.array(rng.random(n * 3).astype("float32")), 3),
            "Mixed Case": pa.array(np.arange(n)),
        }
    )
    path = str(tmp_path_factory.mktemp("surface") / "t.lance")
    dataset = lance.write_dataset(table, path, max_rows_per_file=200)
    dataset.delete("`Mixed Case` % 17 = 3")
    return path


@pytest.fixture
def both(uri: str) -> Both:
    return lance.dataset(uri), ld.dataset(uri)


SQL_FILTERS = """
a = 5
a != 5
a <> 5
a > 5 AND b < 0.5
a > 15 OR b < 0.1
NOT (a > 3)
NOT a > 3
a >= -3 AND a <= 3
a BETWEEN 3 AND 9
a NOT BETWEEN 3 AND 9
a IN (1, 2, 3)
a NOT IN (1, 2, 3)
a IS NULL
a IS NOT NULL
a IS NULL OR b IS NULL
a = 3 OR a IS NULL AND b > 0.5
a + 1 = 3
a * 2 > small
a % 2 = 0
-a = 5
abs(a) < 4
a > b
a = small
5 < a
b > 0.5
b = 0.25
small > 250
s = 'apple'
s != 'apple'
s > 'b'
s = ''
s = 'it''s'
s = 'ünï'
s IN ('apple', 'ünï')
s LIKE 'a%'
s LIKE '%an%'
s LIKE '_pple'
s NOT LIKE 'a%'
s ILIKE 'b%'
starts_with(s, 'ch')
length(s) > 5
lower(s) = 'banana'
upper(s) = 'BANANA'
s || 'x' = 'applex'
flag
NOT flag
flag = true
flag = false
flag IS NULL
flag AND a > 0
flag IS TRUE
flag IS NOT TRUE
d > date '2020-01-20'
d = date '2020-01-05'
d IN (date '2020-01-05', date '2020-01-06')
ts >= timestamp '2020-01-10 00:00:00'
cast(ts AS date) = date '2020-01-10'
dec BETWEEN -1 AND 1
st.x > 3
st.y = '7'
st.x = a
st IS NULL
array_has(tags, 'blue')
coalesce(a, 0) = 0
nullif(a, 3) IS NULL
cast(a AS string) = '5'
cast(a AS double) = 5.0
`Mixed Case` < 100
_rowid < 50
_rowaddr > 4294967300
_rowid IN (1, 5, 8589934593)
true
false
a = NULL
a IN (1, NULL)
1 = 1
""".strip().splitlines()

# What DuckDB's SQL has and pylance's lacks, or has under another name.
WIDER_FILTERS = """
small > -1
small = 5.0
d >= '2020-01-20'
ts < '2020-01-10T00:00:00'
dec > 1.5
dec = 2.25
CASE WHEN a > 0 THEN b > 0.5 ELSE false END
"Mixed Case" < 100
regexp_matches(s, '^[ab]')
len(tags) = 2
list_contains(tags, 'blue')
a IS DISTINCT FROM 3
a IS NOT DISTINCT FROM NULL
year(d) = 2020 AND dayofweek(d) = 1
s SIMILAR TO '.*an.*'
st = {'x': 3, 'y': '3'}
tags = ['red', 'blue']
a::VARCHAR = '5'
greatest(a, 3) = 3
""".strip().splitlines()


@pytest.mark.parametrize("text", SQL_FILTERS)
def test_sql_filters_return_the_same_rows_as_pylance(text: str, both: Both, cases: Cases) -> None:
    theirs, ours = both
    expected = theirs.to_table(filter=text, with_row_id=True)
    with cases.case("to_table"):
        assert_tables_same(expected, ours.to_table(filter=text, with_row_id=True))
    with cases.case("columns that the filter does not read"):
        assert_tables_same(expected.select(["v", "tags"]), ours.to_table(["v", "tags"], filter=text))
    with cases.case("count_rows"):
        assert ours.count_rows(text) == expected.num_rows
        assert ours.count_rows(filter=text) == theirs.count_rows(filter=text)
    with cases.case("limit and offset"):
        found = ours.to_table(filter=text, limit=7, offset=3, with_row_id=True)
        assert_tables_same(theirs.to_table(filter=text, limit=7, offset=3, with_row_id=True), found)


@pytest.mark.parametrize("text", WIDER_FILTERS)
def test_filter_in_sql_of_duckdb(text: str, both: Both, cases: Cases) -> None:
    con = duckdb.connect()
    con.register("truth", both[0].to_table())
    expected = con.sql(f'SELECT "Mixed Case" FROM truth WHERE {text} ORDER BY 1').fetchall()
    found = both[1].to_table(["Mixed Case"], filter=text)["Mixed Case"].to_pylist()
    with cases.case("to_table"):
        assert found == [row[0] for row in expected]


field = pc.field
EXPRESSIONS: list[pc.Expression] = [
    field("a") == 5,
    field("a") != 5,
    (field("a") > 5) & (field("b") < 0.5),
    (field("a") > 15) | ~(field("b") < 0.9),
    ~(field("a") > 3),
    field("a").isin([1, 2, 3]),
    field("s").isin(["apple", "ünï"]),
    field("a").is_null(),
    field("a").is_valid(),
    field("flag"),
    ~field("flag"),
    field("s") == "it's",
    field("s") > "b",
    field("d") > datetime.date(2020, 1, 20),
    field("ts") >= datetime.datetime(2020, 1, 10),
    field("st", "x") > 3,
    field("small") > 50,
    field("dec") > decimal.Decimal("1.50"),
    field("a") > field("small"),
]


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)
def test_pyarrow_filters_return_the_same_rows_as_pyarrow(expression: pc.Expression, both: Both, cases: Cases) -> None:
    truth = both[0].to_table()
    expected = pds.dataset(truth.drop_columns(["v"])).to_table(filter=expression)
    with cases.case("to_table"):
        assert_tables_same(expected, both[1].to_table(expected.column_names, filter=expression))
    with cases.case("count_rows"):
        assert both[1].count_rows(expression) == expected.num_rows


OPTIONS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "order of columns": {"columns": ["v", "a", "s"]},
    "one column": {"columns": ["st"]},
    "field of a struct": {"columns": ["st.x", "a"]},
    "no column, row ids": {"columns": [], "with_row_id": True},
    "column expressions": {"columns": {"twice": "a * 2", "s": "s", "low": "lower(s)"}},
    "column expressions and filter": {"columns": {"twice": "a * 2"}, "filter": "a > 3"},
    "limit": {"limit": 10},
    "limit 0": {"limit": 0},
    "offset": {"offset": 250},
    "limit and offset": {"limit": 200, "offset": 150},
    "offset past the end": {"limit": 5, "offset": 10_000},
    "limit past the end": {"limit": 10_000},
    "row ids": {"with_row_id": True},
    "row addresses": {"with_row_address": True},
    "both": {"with_row_id": True, "with_row_address": True, "columns": ["s"]},
    "hidden columns by name": {"columns": ["_rowaddr", "a", "_rowid"]},
    "hidden columns by name and filter": {"columns": ["_rowid"], "filter": "a > 3"},
    "batch size": {"batch_size": 7},
    "in order": {"scan_in_order": True, "filter": "a > 3"},
    "order by": {"order_by": ["Mixed Case"], "limit": 9},
    "deleted rows too": {"include_deleted_rows": True, "with_row_id": True},
    "prefilter": {"filter": "a > 3", "prefilter": True},
    "no index": {"filter": "a > 3", "use_scalar_index": False},
    "read ahead": {"batch_readahead": 2, "fragment_readahead": 2},
    "late materialization": {"late_materialization": True, "filter": "a > 3"},
    "not late": {"late_materialization": False, "filter": "a > 3"},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_scan_options_return_the_same_rows_as_pylance(options: dict[str, Any], both: Both, cases: Cases) -> None:
    expected = both[0].scanner(**options).to_table()
    with cases.case("to_table"):
        assert_tables_same(expected, both[1].to_table(**options))
    with cases.case("scanner"):
        scanner = both[1].scanner(**options)
        assert scanner.projected_schema.equals(expected.schema)
        assert_tables_same(expected, scanner.to_table())
    with cases.case("batches"):
        batches = list(both[1].to_batches(**options))
        assert_tables_same(expected, pa.Table.from_batches(batches, expected.schema))


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_batches_end_at_fragment_boundaries(size: int, both: Both, cases: Cases) -> None:
    with cases.case("sizes"):
        assert [b.num_rows for b in both[1].to_batches(batch_size=size)] == [
            b.num_rows for b in both[0].to_batches(batch_size=size)
        ]
    with cases.case("strict"):
        sizes = [b.num_rows for b in both[1].scanner(batch_size=size, strict_batch_size=True).to_batches()]
        assert sizes == [b.num_rows for b in both[0].scanner(batch_size=size, strict_batch_size=True).to_batches()]


def test_head_and_take_equal_those_of_pylance(both: Both, cases: Cases) -> None:
    theirs, ours = both
    for n in (0, 1, 5, 300, 5000):
        with cases.case(f"head {n}"):
            assert_tables_same(theirs.head(n), ours.head(n))
    with cases.case("head of columns"):
        assert_tables_same(theirs.head(3, columns=["s"]), ours.head(3, columns=["s"]))
    total = theirs.count_rows()
    for rows in ([], [0], [total - 1], [5, 3, 3, 400, 0], list(range(total)), pa.array([9, 1]), np.array([7, 2])):
        for columns in (None, ["s", "a"], ["_rowid", "a"], {"x": "a + 1"}, ["st.y"]):
            with cases.case(f"take {str(rows)[:30]} {columns}"):
                listed = rows if isinstance(rows, list) else rows.tolist()
                assert_tables_same(theirs.take(listed, columns), ours.take(rows, columns))


def test_fragments_equal_those_of_pylance(both: Both, cases: Cases) -> None:
    theirs, ours = both
    for left, right in zip(theirs.get_fragments(), ours.get_fragments(), strict=True):
        with cases.case("counts"):
            assert left.fragment_id == right.fragment_id
            assert left.count_rows() == right.count_rows()
            assert left.count_rows("a > 3") == right.count_rows("a > 3")
            assert (left.num_deletions, left.physical_rows) == (right.num_deletions, right.physical_rows)
            assert left.schema.equals(right.schema)
            assert left.deletion_file() == right.deletion_file()
        with cases.case("metadata"):
            assert _plain(left.metadata.to_json()) == _plain(right.metadata.to_json())
        for options in ({}, {"columns": ["s"], "filter": "a > 3"}, {"limit": 5, "offset": 9}, {"with_row_id": True}):
            with cases.case(f"scan {options}"):
                assert_tables_same(left.to_table(**options), right.to_table(**options))
                assert_tables_same(left.scanner(**options).to_table(), right.scanner(**options).to_table())
        with cases.case("take"):
            assert_tables_same(left.take([0, 5, 9]), right.take([0, 5, 9]))
            assert_tables_same(left.head(4), right.head(4))
    with cases.case("scan of some fragments"):
        some = [f.get_fragments()[1:] for f in both]
        left, right = (f.scanner(fragments=part).to_table() for f, part in zip(both, some, strict=True))
        assert_tables_same(left, right)
    with cases.case("get_fragment"):
        assert_tables_same(theirs.get_fragment(1).to_table(), ours.get_fragment(1).to_table())
        assert ours.get_fragment(99) is None


def _plain(metadata: dict[str, Any]) -> dict[str, Any]:
    return {k: metadata[k] for k in ("id", "files", "physical_rows", "deletion_file")}


def test_dataset_properties_equal_those_of_pylance(both: Both, cases: Cases) -> None:
    theirs, ours = both
    for name in ("schema", "version", "latest_version", "metadata", "schema_metadata", "data_storage_version"):
        with cases.case(name):
            assert getattr(ours, name) == getattr(theirs, name)
    with cases.case("versions"):
        for left, right in zip(ours.versions(), theirs.versions(), strict=True):
            assert (left["version"], left["metadata"]) == (right["version"], right["metadata"])
    with cases.case("calls"):
        assert ours.config() == theirs.config()
        assert ours.count_rows() == theirs.count_rows() == len(ours)


def test_other_libraries_read_the_dataset(both: Both, cases: Cases) -> None:
    theirs, ours = both
    truth = theirs.to_table()
    with cases.case("pyarrow"):
        assert isinstance(ours, pds.Dataset)
        assert_tables_same(truth, pa.table(ours))
        assert_tables_same(truth, ours.scanner().to_reader().read_all())
    with cases.case("polars"):
        pl = pytest.importorskip("polars")
        expected = pl.scan_pyarrow_dataset(pds.dataset(truth)).filter(pl.col("a") > 3).select("s", "b").collect()
        found = pl.scan_pyarrow_dataset(ours).filter(pl.col("a") > 3).select("s", "b").collect()
        assert found.equals(expected)
    with cases.case("join"):
        other = pds.dataset(pa.table({"a": [1, 2], "name": ["one", "two"]}))
        joined = other.join(ours.scanner(columns=["a", "s"]).to_table(), "a", join_type="inner")
        assert joined.count_rows() == truth.filter(pc.field("a").isin([1, 2])).num_rows
    with cases.case("filter"):
        assert ours.filter(pc.field("a") > 3).count_rows() == truth.filter(pc.field("a") > 3).num_rows


FAULTS: dict[str, Callable[[Handle], object]] = {
    "unknown column": lambda d: d.to_table(columns=["nope"]),
    "unknown field of a struct": lambda d: d.to_table(columns=["st.nope"]),
    "unknown column in a filter": lambda d: d.to_table(filter="nope = 3"),
    "filter that does not parse": lambda d: d.to_table(filter="a = = 3"),
    "filter that is not a condition": lambda d: d.to_table(filter="a +"),
    "empty filter": lambda d: d.to_table(filter=" "),
    "filter of wrong types": lambda d: d.to_table(filter="d > 'tomorrow'"),
    "unknown function": lambda d: d.to_table(filter="no_such_function(a) = 3"),
    "negative limit": lambda d: d.to_table(limit=-1),
    "negative offset": lambda d: d.to_table(offset=-1),
    "limit that is no number": lambda d: d.to_table(limit="ten"),
    "unknown parameter": lambda d: d.to_table(no_such_parameter=3),
    "take past the end": lambda d: d.take([10_000]),
    "take of an unknown column": lambda d: d.take([0], columns=["nope"]),
    "unknown version": lambda d: d.checkout_version(77),
    "unknown tag": lambda d: d.checkout_version("nope"),
    "count with a bad filter": lambda d: d.count_rows("nope > 1"),
    "column expression that does not parse": lambda d: d.to_table(columns={"x": "a +"}),
}
KINDS = (ValueError, OSError, TypeError, IndexError, KeyError)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_errors_have_the_same_class_as_in_pylance(fault: Callable[[Handle], object], both: Both, cases: Cases) -> None:
    with cases.case("error"):
        _same_kind(*(_error(lambda d=d: fault(d)) for d in both))


@pytest.mark.parametrize("what", ["missing", "empty folder", "file", "version", "tag"])
def test_open_errors_have_the_same_class_as_in_pylance(what: str, uri: str, tmp_path: Path, cases: Cases) -> None:
    (tmp_path / "empty folder").mkdir()
    (tmp_path / "file").write_text("not a table")
    args: tuple[Any, ...] = (str(tmp_path / what),)
    if what in ("version", "tag"):
        args = (uri, 99 if what == "version" else "no such tag")
    with cases.case("error"):
        _same_kind(*(_error(lambda m=m: m.dataset(*args)) for m in (lance, ld)))


def _error(call: Callable[[], object]) -> BaseException:
    try:
        call()
    except BaseException as error:
        return error
    raise AssertionError("no error")


def _same_kind(theirs: BaseException, ours: BaseException) -> None:
    expected = {k for k in KINDS if isinstance(theirs, k)}
    if "Invalid user input" in str(theirs):
        expected = {ValueError}  # pylance raises an OSError for some of them
    assert expected <= {k for k in KINDS if isinstance(ours, k)}, f"pylance: {theirs!r}; ours: {ours!r}"
    if not isinstance(theirs, TypeError):
        assert isinstance(ours, LanceDuckError), repr(ours)


def test_pylance_row_address_sets_are_accepted(both: Both) -> None:
    rows = lance.dataset(str(both[1].uri)).to_table(columns=["_rowid"])["_rowid"].to_pylist()[::7]
    blob = serialize_row_addrs(rows)
    for options in ({"row_addr_allowlist": blob}, {"row_addr_blocklist": blob, "filter": "a > 0"}):
        theirs, ours = (d.scanner(columns=["Mixed Case"], **options).to_table() for d in both)
        assert_tables_same(ours, theirs)


JSON_TYPES = [
    *(pa.bool_(), pa.uint16(), pa.float16(), pa.large_string(), pa.binary(3), pa.date64(), pa.time32("ms")),
    *(pa.timestamp("us"), pa.timestamp("s", "UTC"), pa.duration("ms"), pa.decimal256(40, 3), pa.json_(), pa.uuid()),
    *(pa.dictionary(pa.int8(), pa.string()), pa.large_list(pa.field("item", pa.int8(), False)), pa.list_(pa.int8(), 2)),
    pa.list_(pa.struct([pa.field("x", pa.int8(), metadata={"a": "b"})])),
]


@pytest.mark.parametrize("type_", JSON_TYPES, ids=str)
def test_a_schema_is_the_same_json(type_: pa.DataType) -> None:
    schema = pa.schema([pa.field("c", type_, False, {"k": "v"})], {"m": "n"})
    made = ld.schema_to_json(schema)
    assert made == lance.schema_to_json(schema)
    for back in (ld.json_to_schema(made), lance.json_to_schema(made)):
        assert back.equals(schema, check_metadata=True)


ABSENT = {
    *("bytes_read_counter", "iops_counter", "io", "set_logger", "simd_info", "FFILanceTableProvider"),  # of its engine
    *("BlobDescriptor", "BlobDescriptorArrayBuilder", "DedicatedBlobWriter", "PackedBlobWriter"),
    *("CompactedSsTable", "ExecutionPlan", "LsmPointLookupPlanner", "LsmScanner", "LsmVectorSearchPlanner"),
    *("ShardSnapshot", "ShardWriter", "ShardingField", "ShardingSpec", "evaluate_sharding_spec"),  # of MemWAL
}


def test_all_public_names_of_pylance_exist() -> None:
    assert {name for name in lance.__all__ if not hasattr(ld, name)} == ABSENT
