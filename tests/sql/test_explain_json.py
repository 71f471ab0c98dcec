"""EXPLAIN (FORMAT JSON) returns one document with DuckDB's plan and the Lance tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_duck as ld


def scans(con: ld.Connection, sql: str, options: str = "FORMAT JSON") -> list[dict[str, str]]:
    ((_, document),) = con.execute(f"EXPLAIN ({options}) {sql}").fetchall()
    content: Any = json.loads(document)
    outermost = content[0] if isinstance(content, list) else content
    found: list[dict[str, str]] = outermost["extra_info"]["Lance Scans"]
    return found


def test_plans_name_the_table_and_its_pushed_down_filters(con: ld.Connection, folder: Path) -> None:
    ld.write_dataset({"id": list(range(1000)), "s": ["x"] * 1000}, folder / "many.lance")
    con.execute("CREATE INDEX i ON many (id)")
    (scan,) = scans(con, "SELECT s FROM many WHERE id = 3")
    assert list(scan) == ["Lance Path", "Lance Pushed Filter Parts", "Lance Plan (Bind)"]
    assert scan["Lance Path"] == str(folder / "many.lance")
    assert scan["Lance Pushed Filter Parts"] == "1"
    assert "ScalarIndexQuery: id" in scan["Lance Plan (Bind)"]
    (scan,) = scans(con, "SELECT s FROM many WHERE id % 2 = 1")
    assert scan["Lance Pushed Filter Parts"] == "0"


def test_all_tables_of_a_statement_are_in_it(con: ld.Connection) -> None:
    found = scans(con, "SELECT * FROM trips JOIN dim USING (city)")
    assert {Path(scan["Lance Path"]).stem for scan in found} == {"trips", "dim"}


def test_explain_analyze_reports_rows_read(con: ld.Connection, folder: Path) -> None:
    (scan,) = scans(con, "SELECT id FROM trips", "ANALYZE, FORMAT JSON")
    assert scan["Lance Path"] == str(folder / "trips.lance")
    assert scan["Lance Rows Out"] == "7"
    assert "returned: 7 rows" in scan["Lance Plan"]


@pytest.mark.parametrize("use_index", ["true", "false"])
def test_the_plan_of_a_search_shows_whether_it_may_use_an_index(tmp_path: Path, use_index: str) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.0, 0, 1, 0], pa.float32()), 2)
    ld.write_dataset(pa.table({"v": vectors}), tmp_path / "t.lance")
    with ld.connect(tmp_path) as con:
        (scan,) = scans(con, f"FROM lance_vector_search('t', 'v', [1, 0]::FLOAT[], use_index = {use_index})")
    assert scan["Lance Use Index"] == use_index
    assert scan["Lance Plan (Bind)"].startswith("LanceNearest: uri=")


def test_other_plan_formats_are_unchanged(con: ld.Connection) -> None:
    rows = con.execute("EXPLAIN SELECT * FROM trips").fetchall()
    assert [key for key, _ in rows] == ["physical_plan", "lance_plan"]
    ((_, document),) = con.execute("EXPLAIN (FORMAT JSON) SELECT 1").fetchall()
    assert "Lance" not in document
