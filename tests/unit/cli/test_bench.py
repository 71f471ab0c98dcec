from __future__ import annotations

from pathlib import Path

import pytest
from support.command_line import objects, rows

import lance_duck as ld
from lance_duck.errors import InvalidInputError

TABLES = Path(__file__).parents[2] / "golden" / "tables"


def test_bench_reports_the_rows_of_each_read() -> None:
    dataset = ld.dataset(TABLES / "vectors.lance")
    count = dataset.count_rows()
    found = {row["what"]: row["rows"] for row in objects("bench", dataset.uri, "--where", "id < 7", "--runs", "1")}
    expected = {"scan": count, "scan where id < 7": 7, "take of random rows": 100}
    assert {name: found[name] for name in expected} == expected
    assert found["search of v128"] == 10


def test_bench_reports_a_time_and_a_rate_for_each_read() -> None:
    (scan, take) = rows("bench", str(TABLES / "history.lance"), "--runs", "2")
    assert (scan["what"], take["what"]) == ("scan", "take of random rows")
    for row in (scan, take):
        assert float(row["ms"]) > 0
        assert int(row["rows_per_second"]) > 0


def test_bench_of_a_table_without_rows(tmp_path: Path) -> None:
    ld.write_dataset({"id": [1]}, tmp_path / "t.lance").delete("true")
    with pytest.raises(InvalidInputError, match="nothing to read"):
        objects("bench", str(tmp_path / "t.lance"))
