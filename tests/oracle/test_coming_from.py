"""The page for those who come from other libraries: each line of its tables runs, on both sides."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import lance
import lance_namespace
import lancedb
import numpy as np
import pyarrow as pa
import pytest
from lancedb.rerankers import RRFReranker

import lance_duck as ld
from lance_duck import indices

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "coming-from.md"
ROWS = {
    "id": list(range(6)),
    "fare": [5.0, 25.0, 30.0, 8.0, 40.0, 21.0],
    "city": ["Kyoto", "Nara", "Kyoto", "Uji", "Nara", "Kyoto"],
    "body": ["a duck", "a goose", "duck lake", "no bird", "duck and duck", "lake"],
}


def lines(title: str) -> list[tuple[str, str, str]]:
    """Return the rows of the table with code below a heading. Code has no backticks."""
    section = PAGE.read_text(encoding="utf-8").split(f"## From {title}\n")[1].split("\n## ")[0]
    table = section.split("| Notes |\n")[1].split("\n\n")[0]
    found = []
    for line in table.splitlines():
        cells = re.split(r"(?<!\\)\|", line.strip("|")) if line.startswith("| `") else []
        if cells:
            theirs, ours, about = (cell.strip() for cell in cells)
            found.append((theirs.strip("`"), ours.strip("`"), about))
    assert found
    return found


def comparable(value: Any) -> Any:
    """Return a result as something that `==` compares, without distances, which differ in their last bit."""
    if isinstance(value, pa.Table | pa.ChunkedArray | pa.Array):
        value = value.to_pylist()
    if isinstance(value, list):
        return [{k: v for k, v in row.items() if k != "_distance"} if isinstance(row, dict) else row for row in value]
    return value


@pytest.fixture
def scope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(12, dtype=np.float32)), 2)
    rows = pa.table({**ROWS, "vec": vectors})
    ds = ld.write_dataset(rows, "t.lance")
    ds.create_scalar_index("body", "INVERTED")
    return {
        "ld": ld,
        "lance": lance,
        "lancedb": lancedb,
        "rows": rows,
        "indices": indices,
        "catalog": lance_namespace.connect("dir", {"root": str(tmp_path)}),
        "ds": ds,
        "tbl": lancedb.connect(".").open_table("t"),
        "RRFReranker": RRFReranker,
        "q": np.array([1, 0], np.float32),
        "hello": [{"vector": [3.1, 4.1], "item": "foo"}, {"vector": [5.9, 26.5], "item": "bar"}],
    }


@pytest.mark.filterwarnings("ignore:create_fts_index is deprecated:DeprecationWarning")
@pytest.mark.parametrize(("theirs", "ours", "about"), [*lines("pylance"), *lines("LanceDB")])
def test_a_line_of_python_runs_on_both_sides(theirs: str, ours: str, about: str, scope: dict[str, Any]) -> None:
    there, here = eval(theirs, scope), eval(ours, scope)
    if about.startswith(("same", "differs")):
        assert comparable(here) == comparable(there)


@pytest.mark.parametrize(("theirs", "ours"), [line[:2] for line in lines("DuckDB's `lance` extension")])
def test_statements_of_the_extension_and_ours_give_the_same(theirs: str, ours: str, scope: dict[str, Any]) -> None:
    with ld.connect(".") as con:
        there = con.execute(theirs).fetchall()
        if theirs.startswith("ATTACH"):
            assert con.execute("SELECT count(*) FROM ns.t").fetchall() == [(6,)]
        else:
            assert there
            assert con.execute(ours).fetchall() == there
