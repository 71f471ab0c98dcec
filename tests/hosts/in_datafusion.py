"""DataFusion on our tables, as on any dataset of pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.fragment import LanceFragment

ROWS = pa.table(
    {
        "id": pa.array(range(60)),
        "city": pa.array([None if i % 7 == 0 else f"city {i % 5}" for i in range(60)]),
        "fare": pa.array([Decimal(i) / 4 for i in range(60)], pa.decimal128(9, 2)),
        "day": pa.array([date(2024, 1, 1 + i % 28) for i in range(60)]),
    }
)


@pytest.fixture
def table(tmp_path: Path) -> ld.LanceDataset:
    dataset = ld.write_dataset(ROWS, str(tmp_path / "t.lance"), max_rows_per_file=20)
    dataset.delete("id = 33")
    return dataset


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    asked: list[dict[str, Any]] = []
    scanner = LanceFragment.scanner

    def noted(self: LanceFragment, *arguments: Any, **options: Any) -> Any:
        asked.append(options)
        return scanner(self, *arguments, **options)

    monkeypatch.setattr(LanceFragment, "scanner", noted)
    return asked


def answer(table: ld.LanceDataset, query: str) -> list[dict[str, Any]]:
    context = datafusion.SessionContext()
    context.register_dataset("t", table)
    found: list[dict[str, Any]] = context.sql(query).to_arrow_table().to_pylist()
    return found


def test_columns_and_filters_are_pushed_down(table: ld.LanceDataset, scans: list[dict[str, Any]]) -> None:
    found = answer(table, "SELECT city FROM t WHERE id >= 18 AND id < 21 ORDER BY city")
    assert found == [{"city": "city 0"}, {"city": "city 3"}, {"city": "city 4"}]
    assert [scan["columns"] for scan in scans] == [["city"]] * 2
    assert all(str(scan["filter"]) == "((id >= 18) and (id < 21))" for scan in scans)


def test_a_filter_uses_a_scalar_index(table: ld.LanceDataset) -> None:
    table.create_scalar_index("id", "BTREE")
    assert answer(table, "SELECT city, id FROM t WHERE id = 41") == [{"city": "city 1", "id": 41}]


QUERIES = {
    "SELECT count(*) AS n FROM t": [{"n": 59}],
    "SELECT sum(id) AS n FROM t WHERE city IN ('city 1', 'city 2')": [{"n": 570}],
    "SELECT count(*) AS n FROM t WHERE city IS NULL": [{"n": 9}],
    "SELECT count(*) AS n FROM t WHERE NOT (city = 'city 1')": [{"n": 40}],
    "SELECT max(fare) AS n FROM t WHERE fare < 7.5": [{"n": Decimal("7.25")}],
    "SELECT min(id) AS n FROM t WHERE day > DATE '2024-01-20'": [{"n": 20}],
    "SELECT a.id AS n FROM t a JOIN t b ON a.id = b.id + 58": [{"n": 58}, {"n": 59}],
}


@pytest.mark.parametrize("query", QUERIES)
def test_query_results_match_the_rows(table: ld.LanceDataset, query: str) -> None:
    assert sorted(answer(table, query), key=str) == QUERIES[query]
