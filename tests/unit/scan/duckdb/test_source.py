"""DuckDB scans an in-memory table through the protocol and returns the same rows as for a native table."""

from __future__ import annotations

import datetime
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest

from lance_duck.errors import UnsupportedError
from lance_duck.scan.duckdb.pushed import ByCaller, predicate_from_pushed
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE, ScanSource
from lance_duck.scan.predicate.evaluate import mask
from lance_duck.scan.predicate.tree import Predicate

NAN = float("nan")


class InMemory(pads.Dataset, ScanSource):
    """An in-memory table that records requests."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.obj = self
        self.asked: list[tuple[list[str], Predicate | None]] = []

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def count_rows(self) -> int:
        return self.table.num_rows

    def duckdb_reader(
        self, schema: pa.Schema, predicate: Predicate | None, *, any_form: bool = False
    ) -> pa.RecordBatchReader:
        self.asked.append((schema.names, predicate))
        return pa.RecordBatchReader.from_batches(schema, self._batches(schema, predicate))

    def _batches(self, schema: pa.Schema, predicate: Predicate | None) -> Iterator[pa.RecordBatch]:
        for batch in self.table.to_batches(2):
            if predicate is not None:
                columns = dict(zip(batch.schema.names, batch.columns, strict=True))
                batch = batch.filter(mask(predicate, columns, batch.num_rows))
            yield pa.record_batch([batch.column(f.name).cast(f.type) for f in schema], schema=schema)

    def _for_people(self, **_: Any) -> Any:
        raise AssertionError("DuckDB looks the scanner up on the class")

    scanner = ByCaller(_for_people, ScanSource.pushed_scanner)


def days(unit: str, zone: str | None = None) -> pa.Array:
    found = [None if i == 2 else datetime.datetime(2020, 1, i + 1) for i in range(5)]
    return pa.array(found, pa.timestamp(unit)).cast(pa.timestamp(unit, zone))


def decimals(precision: int) -> pa.Array:
    return pa.array([Decimal("1.25"), Decimal("-3.50"), None, 0, Decimal("99.99")], pa.decimal128(precision, 2))


TABLE = pa.table(
    {
        "i": pa.array([1, 2, None, 4, 5], pa.int32()),
        "f": [1.0, NAN, None, -0.0, float("inf")],
        "f4": pa.array([1.5, NAN, None, -0.0, float("-inf")], pa.float32()),
        "s": ["a", "b", None, "d", ""],
        "b": [True, False, None, True, False],
        "d": decimals(4),
        "d30": decimals(30),
        "dt": days("us").cast(pa.date32()),
        "ts": days("us"),
        "tsms": days("ms"),
        "tz": days("ms", "UTC"),
        "ns": days("ns"),
        "st": [
            {"x": 1, "y": {"z": "q"}, "w": None},
            {"x": 2, "y": None, "w": 0.5},
            None,
            {"x": None, "y": {"z": "r"}, "w": NAN},
            {"x": 5, "y": {"z": None}, "w": None},
        ],
        "dic": pa.array(["a", "b", None, "a", "c"]).dictionary_encode(),
        "bl": [b"a", b"\xff", None, b"", b"c"],
        "t": pa.array([None if i == 2 else datetime.time(1, 2, i) for i in range(5)], pa.time32("s")),
        "u8": pa.array([1, 255, None, 0, 7], pa.uint64()),
    }
)

FILTERS = """
i = 2; i > 1 AND i < 5; i IN (1, 4, 77); i NOT IN (1, 4); i IS NULL; i IS NOT NULL; NOT (i < 3); i = 1 OR s = 'd'
f > 1; f >= 1; f <> 1; f = 'nan'; f < 'nan'; f IN (1, 'nan'); f = 0; f > '-inf'; f = 'inf'; f > 0 OR s = 'b'
NOT (f > 1); f >= 'nan'; f > 'nan'; f BETWEEN 0 AND 'inf'; f <= 'nan'; NOT (f > 'nan'); f BETWEEN 1 AND 'nan'
f4 <= 'nan'; f <= 'nan' AND f4 <= 'nan'; i > 1 AND f4 <= 'nan'; f4 <= 'nan' AND b; f <= 'nan' OR i = 2; st.w <= 'nan'
st.x > 0 AND st.w <= 'nan'; f <= 'nan' AND st.w <= 'nan' AND d30 > 0; f > 'nan' OR f4 <= 'nan' OR s = 'b'
f4 > 1.5; f4 = 1.5; f4 IN (1.5, 'nan'); f4 >= -0.0; f4 < 0
s = 'a'; s > 'a'; s IN ('a', ''); s NOT IN ('a', 'x'); s LIKE 'a%'
b; b = true; NOT b; b = false
d = 1.25; d > 0; d BETWEEN 0 AND 5; d IN (1.25, 99.99); d30 > 1.25; d = 1.251
dt > DATE '2020-01-02'; dt = DATE '2020-01-02'; dt < 'infinity'
ts >= TIMESTAMP '2020-01-02'; ts < 'infinity'::TIMESTAMP; year(ts) = 2020 AND i < 3; tsms > TIMESTAMP_MS '2020-01-02'
tz > TIMESTAMPTZ '2020-01-02 00:00:00+00'; tz = 'infinity'
tz >= TIMESTAMPTZ '2020-01-01 23:59:59.999+00'; tz <> TIMESTAMPTZ '2020-01-02 00:00:00+00'
ns > TIMESTAMP '2020-01-02'; ns = TIMESTAMP_NS '2020-01-02'
st.x = 1; st.y.z = 'q'; st.y IS NULL; st.y.z IS NULL; st IS NULL; st.x > 1 AND st.y.z IS NOT NULL
dic = 'a'; dic IN ('a', 'c'); dic <> 'a'; dic IS NULL
bl = ''::BLOB; bl > 'a'::BLOB; t > TIME '01:02:01'; t > TIME '01:02:01.5'; t = TIME '01:02:01.5'; t <= TIME '01:02:01.5'
u8 > 200; u8 = 255; i + 1 = 3; i = 2.5; i IS DISTINCT FROM 2; i IN (1, NULL); i NOT IN (1, NULL); (i < 3) IS NULL
(f > 0 OR s = 'b') AND NOT (i = 1 AND b); i <> 2 OR f IS NULL
"""


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        plain = TABLE  # noqa: F841
        connection.execute("CREATE TABLE own AS FROM plain")
        yield connection


@pytest.mark.parametrize("where", [w.strip() for line in FILTERS.splitlines() for w in line.split(";") if w.strip()])
def test_pushed_filters_select_the_same_rows_as_duckdb(connection: duckdb.DuckDBPyConnection, where: str) -> None:
    source = InMemory(TABLE)  # noqa: F841
    expected = connection.execute(f"SELECT i, s, f::VARCHAR FROM own WHERE {where}").fetchall()
    assert connection.execute(f"SELECT i, s, f::VARCHAR FROM source WHERE {where}").fetchall() == expected
    assert connection.execute(f"SELECT count(*) FROM source WHERE {where}").fetchall() == [(len(expected),)]


@pytest.mark.skipif(not SPEAKS_SOURCE, reason="needs duckdb 2.0")
def test_only_result_columns_are_requested(connection: duckdb.DuckDBPyConnection) -> None:
    source = InMemory(TABLE)
    connection.execute("SELECT s, i FROM source WHERE f > 0 AND st.x = 1").fetchall()
    ((names, predicate),) = source.asked
    assert (names, str(predicate)) == (["s", "i"], "(f > 0.0 AND st.x = 1)")


@pytest.mark.skipif(not SPEAKS_SOURCE, reason="needs duckdb 2.0")
def test_the_optimizer_receives_the_row_count(connection: duckdb.DuckDBPyConnection) -> None:
    source = InMemory(TABLE)  # noqa: F841
    assert "~5 rows" in connection.execute("EXPLAIN FROM source").fetchall()[0][1]


def test_a_long_chain_of_or_is_translated(connection: duckdb.DuckDBPyConnection) -> None:
    source = InMemory(TABLE)  # noqa: F841
    where = " OR ".join(f"(i = {i} AND s <> '{i}')" for i in range(400))
    assert connection.execute(f"SELECT count(*) FROM source WHERE {where}").fetchall() == [(4,)]


def test_an_expression_that_duckdb_never_pushes_is_rejected() -> None:
    with pytest.raises(UnsupportedError, match="not understood"):
        predicate_from_pushed(pc.starts_with(pc.field("s"), "a"), TABLE.schema)


def test_nan_in_a_pushed_expression_has_duckdb_semantics() -> None:
    predicate = predicate_from_pushed(pc.field("f") > 1.0, TABLE.schema)
    assert mask(predicate, {"f": TABLE["f"].combine_chunks()}, 5).to_pylist() == [False, True, False, False, True]


def test_a_pushed_literal_without_a_column_is_rejected() -> None:
    with pytest.raises(UnsupportedError, match="not understood"):
        predicate_from_pushed(pc.scalar(True) & (pc.field("i") > 1), TABLE.schema)


LATE = """
import sys, threading
import pyarrow as pa, pyarrow.dataset as pads
from lance_duck.scan.duckdb.source import ScanSource

table = pa.table({"i": range(10)})
asked = []

class Rows(pads.Dataset, ScanSource):
    schema = table.schema
    def __init__(self):
        self.obj = self
    def count_rows(self):
        return len(table)
    def accepts(self, predicate):
        asked.append(super().accepts(predicate))
        return asked[-1]
    def duckdb_reader(self, schema, predicate, *, any_form=False):
        assert predicate is not None
        return table.filter(pa.compute.greater(table["i"], 6)).to_reader()

rows = Rows()
assert "duckdb" not in sys.modules
assert rows.__class__ is Rows and isinstance(rows, ScanSource) and not isinstance(rows, int)
import duckdb
"""

FIRST_QUESTION = """
assert duckdb.sql("SELECT i FROM rows WHERE i > 6").fetchall() == [(7,), (8,), (9,)]
assert asked == [True]
from duckdb._sources.arrow import ArrowScanSource
assert issubclass(Rows, ArrowScanSource) and rows.__class__ is Rows
assert all(hasattr(rows, name) for name in dir(ArrowScanSource))
"""

QUESTIONS_AT_ONCE = """
from duckdb._sources import Source
sys.setswitchinterval(1e-6)
begin, found = threading.Barrier(16), []
def ask():
    begin.wait()
    found.append(isinstance(rows, Source))
threads = [threading.Thread(target=ask) for _ in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert found == [True] * 16
"""


SUBCLASS = """
class Tagged(Rows):
    def __init_subclass__(cls, *, tag, **options):
        super().__init_subclass__(**options)

class More(Tagged, tag=1):
    pass

rows = More()
assert not isinstance(rows, int)
assert duckdb.sql("SELECT i FROM rows WHERE i > 6").fetchall() == [(7,), (8,), (9,)]
"""


@pytest.mark.skipif(not SPEAKS_SOURCE, reason="needs duckdb 2.0")
@pytest.mark.parametrize("use", [FIRST_QUESTION, QUESTIONS_AT_ONCE, SUBCLASS])
def test_sources_work_if_duckdb_is_imported_later(use: str) -> None:
    run = subprocess.run([sys.executable, "-c", LATE + use], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    "module", ["duckdb", "duckdb._sources.arrow", "duckdb.no_such", "no_such.duckdb", "json.tool", "colorsys.json"]
)
def test_the_file_of_a_module_is_found_without_importing_it(module: str) -> None:
    script = f"""
import sys
from lance_duck.scan.duckdb.source import file_of
before = set(sys.modules)
found = file_of({module!r})
assert not {{"duckdb", "json.tool"}} & (set(sys.modules) - before)
try:
    __import__({module!r})
except ImportError:
    assert not found
else:
    assert found
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr


def test_a_leftover_cache_folder_is_not_a_module(tmp_path: Path) -> None:
    for folder in ("installed/_left/__pycache__", "installed/_old"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "installed/__init__.py").touch()
    script = f"""
import sys
from lance_duck.scan.duckdb.source import file_of
sys.path.insert(0, {str(tmp_path)!r})
assert file_of("installed") and not file_of("installed._left.arrow") and not file_of("installed._old")
assert "installed" not in sys.modules
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr


def test_a_duckdb_without_the_class_of_sources_is_an_older_one(tmp_path: Path) -> None:
    (tmp_path / "duckdb/_sources").mkdir(parents=True)
    for name in ("__init__.py", "_sources/__init__.py", "_sources/arrow.py"):
        (tmp_path / "duckdb" / name).touch()
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n" + (
        "from lance_duck.scan.duckdb import source\nassert source._is_defined() is False"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
