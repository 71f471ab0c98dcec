"""Groups by several string columns equal DuckDB's groups of the same rows in memory."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.duck.planner import Planner
from lance_duck.duck.run import group_keys
from lance_duck.duck.tables.grouped_table import GROUP

STATEMENTS = (
    "SELECT a, b, count(*), sum(x), avg(d) FROM t GROUP BY a, b ORDER BY a, b",
    "SELECT b, sum(x * 2) AS s, A FROM t GROUP BY a, b ORDER BY b DESC, a NULLS FIRST",
    "SELECT a AS k, b AS l, c, min(x), count(DISTINCT x) FROM t AS u WHERE x > 3 GROUP BY u.a, b, c ORDER BY ALL",
    "SELECT t.a, b, count(a), max(b) FROM t WHERE a <> 'x' GROUP BY b, t.a ORDER BY 1, 2",
    "SELECT a, b, count(*) FROM t WHERE a IN ('x', 'é') OR b IS NULL GROUP BY a, b HAVING count(*) > 1 ORDER BY ALL",
    "SELECT count(*) AS n, sum(d) FROM t GROUP BY a, b ORDER BY ALL LIMIT 2",
    "SELECT a, b, c FROM t GROUP BY a, b, c ORDER BY ALL",
    "SELECT a, b, sum(x) FROM t WHERE x > (SELECT avg(x) FROM t) GROUP BY a, b ORDER BY ALL",
)


@pytest.fixture(autouse=True)
def small_tables_are_grouped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_keys, "LARGE", 0)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each planned statement groups by numbers."""
    found: list[bool] = []
    plan = Planner._plan

    def recorded(self: Planner, *args: object, **options: object) -> object:
        made = plan(self, *args, **options)  # type: ignore[arg-type]
        found.append(made is not None and GROUP in made.sql)
        return made

    monkeypatch.setattr(Planner, "_plan", recorded)
    return found


def random_rows(rng: np.random.Generator) -> pa.Table:
    """Return rows with three string columns of a few values each, some of them null, and two columns of numbers."""
    count = int(rng.integers(1, 3000))
    values = np.array(["", "x", "é", "a long value of a column", "N", None, "x\0y"], object)

    def texts() -> pa.Array:
        chosen = values[rng.permutation(len(values))[: rng.integers(1, 5)]]
        return pa.array(chosen[rng.integers(0, len(chosen), count)], pa.string())

    columns = {name: texts() for name in "abc"}
    x = pa.array(rng.integers(0, 9, count))
    return pa.table({**columns, "x": x, "d": x.cast(pa.decimal128(21, 2)).cast(pa.decimal128(9, 2))})


@pytest.mark.parametrize("seed", range(4))
def test_groups_by_strings_equal_those_of_rows_in_memory(tmp_path: Path, planned: list[bool], seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = random_rows(rng)
    per_file = int(rng.integers(1, rows.num_rows + 1))
    dataset = ld.write_dataset(rows, tmp_path / "t.lance", max_rows_per_file=max(per_file, rows.num_rows // 5))
    dataset.delete("x = 4")
    native = duckdb.connect()
    native.execute("CREATE TABLE t AS SELECT * FROM rows WHERE x IS DISTINCT FROM 4")
    with ld.connect(tmp_path) as con:
        for statement in STATEMENTS:
            ours, theirs = con.execute(statement), native.execute(statement)
            names = [column[:2] for column in theirs.description or ()]
            assert ([column[:2] for column in ours.description or ()], ours.fetchall()) == (names, theirs.fetchall()), (
                seed,
                statement,
            )
    assert any(planned)


def test_a_table_with_more_groups_than_its_sample_is_grouped_by_its_strings(
    tmp_path: Path, planned: list[bool]
) -> None:
    count = 60_000
    texts = [f"{i}" if 1000 <= i < 1400 else "usual" for i in range(count)]
    rows = pa.table({"a": texts, "b": texts, "c": ["one"] * count})
    ld.write_dataset(rows, tmp_path / "t.lance")
    with ld.connect(tmp_path) as con:
        answers = [con.execute("SELECT a, b, count(*) FROM t GROUP BY a, b").fetchall() for _ in range(2)]
    expected = [(f"{i}", f"{i}", 1) for i in range(1000, 1400)] + [("usual", "usual", count - 400)]
    assert ([sorted(answer) for answer in answers], planned) == ([sorted(expected)] * 2, [True, False])


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT a || b AS c, count(*) FROM t GROUP BY a, b",
        "SELECT a, upper(b) AS b, count(*) FROM t GROUP BY a, b ORDER BY b",
        "SELECT a, b, row_number() OVER (ORDER BY a) FROM t GROUP BY a, b",
        "SELECT a, b FROM t GROUP BY ROLLUP (a, b)",
        "SELECT a, b, count(*) FROM t GROUP BY a, b HAVING a = 'x'",
        "SELECT a, x, count(*) FROM t GROUP BY a, x",
    ],
)
def test_other_uses_of_group_columns_stay_as_written(tmp_path: Path, planned: list[bool], statement: str) -> None:
    rows = random_rows(np.random.default_rng(0))
    ld.write_dataset(rows, tmp_path / "t.lance")
    native = duckdb.connect()
    native.register("t", rows)
    with ld.connect(tmp_path) as con:
        assert sorted(map(repr, con.execute(statement).fetchall())) == sorted(
            map(repr, native.execute(statement).fetchall())
        )
    assert not any(planned)
