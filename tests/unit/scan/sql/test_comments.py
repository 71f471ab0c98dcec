"""Comments in filters end where DuckDB ends them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError

TABLE = pa.table({"a": [1, 1, 1, 2], "b": [1, 1, 1, 1], "p": [True, False, False, True], "s": ["ab", "a", "b", "abc"]})


@pytest.fixture
def table(tmp_path: Path) -> ld.LanceDataset:
    return ld.write_dataset(TABLE, str(tmp_path / "t.lance"))


@pytest.mark.parametrize(
    "text",
    [
        "a = 1 -- one\rAND p",
        "a = 1 -- one\nAND p",
        "b >= 0 AND a + 0 = 1 -- keep\rAND p",
        "a = 1 /* one */ AND p",
        "a = 1 /* /* */ OR p */ AND b = 1",
        "b >= 0 AND a + 0 = 2 /* /* */ OR p /* */ -- */",
        "b >= 0 AND a + 0 = 2 /* /* /* deep */ */ OR */ OR p",
        "/**/ a = 1 /***/ AND /*/**/*/ p -- end",
        "a = 1 AND s = '/* no */ -- comment' OR p",
        "s ^@ 'ab'",
        "a = 1 AND s = 'a' || 'b'",
    ],
)
def test_a_filter_with_comments_finds_the_rows_of_duckdb(table: ld.LanceDataset, text: str) -> None:
    rows = duckdb.from_arrow(TABLE).filter(f"{text}\n").fetchall()
    assert [tuple(row.values()) for row in table.to_table(filter=text).to_pylist()] == rows
    assert table.count_rows(text) == len(rows)


@pytest.mark.parametrize("text", ["a = 1 /* /* */", "a = 1 /*/ OR b = 2 /*/", "a = 1 /*", "s ^@ 'a' || 'b'"])
def test_filters_rejected_by_duckdb_are_rejected(table: ld.LanceDataset, text: str) -> None:
    with pytest.raises(InvalidInputError):
        table.to_table(filter=text)


def test_deletes_with_comments_remove_the_same_rows_as_duckdb(table: ld.LanceDataset) -> None:
    table.delete("b >= 0 AND a + 0 = 1 -- keep\rAND p")
    assert table.count_rows() == 3
