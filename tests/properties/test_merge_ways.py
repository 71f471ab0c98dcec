"""A MERGE by keys, by a join or with a full rewrite has the same effect as on a native table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.duck.changes.merge.join import MergeJoin
from lance_duck.duck.changes.merge.keys import SourceKeys

KEYS: dict[str, tuple[pa.DataType, pa.DataType, Any]] = {
    "numbers": (pa.int32(), pa.int64(), st.none() | st.integers(-4, 4) | st.just(1 << 40)),
    "texts": (pa.large_string(), pa.string(), st.none() | st.sampled_from(["", "a", "A", "ä", "a "])),
    "dates": (pa.date32(), pa.date32(), st.none() | st.dates().map(lambda day: day.replace(year=2000, month=1))),
    "fractions": (pa.float64(), pa.float64(), st.none() | st.sampled_from([0.0, -0.0, 1.5, float("inf")])),
}
"""For each kind: the type in the table, that in the source, and values; 1 << 40 fits only the source."""

JOINS = ["USING (k)", "ON t.k = s.k", "ON (s.k = t.k AND t.j = s.j)", "ON t.k = s.k AND t.n > 0"]
UPDATES = [
    "",
    "WHEN MATCHED THEN UPDATE SET n = s.n",
    "WHEN MATCHED THEN UPDATE SET n = t.n + s.n * 2, j = coalesce(s.j, t.j, 3)",
    "WHEN MATCHED THEN UPDATE SET n = CASE WHEN s.n > t.n THEN s.n ELSE -1 END, k = s.k",
    "WHEN MATCHED THEN UPDATE SET n = s.d, j = 7",
    "WHEN MATCHED AND s.n > 0 THEN UPDATE SET n = abs(s.n)",
    "WHEN MATCHED AND t.n > 0 THEN DELETE WHEN MATCHED THEN UPDATE SET n = s.n",
]
INSERTS = [
    "",
    "WHEN NOT MATCHED THEN INSERT (k, j, n) VALUES (s.k, s.j, s.n)",
    "WHEN NOT MATCHED THEN INSERT (k, n) VALUES (s.k, s.n + 1)",
    "WHEN NOT MATCHED THEN INSERT (n) VALUES (s.d)",
    "WHEN NOT MATCHED BY SOURCE THEN DELETE",
]
SMALL = st.none() | st.integers(-3, 3)
DIGITS = st.none() | st.sampled_from(["4", "-1"])


@st.composite
def cases(draw: st.DrawFn) -> tuple[pa.Table, pa.Table, str]:
    mine, theirs, keys = KEYS[draw(st.sampled_from(sorted(KEYS)))]
    held = [key for key in draw(st.lists(keys, max_size=6)) if key != 1 << 40]
    asked = draw(st.lists(keys, max_size=6, unique=draw(st.booleans())))
    update, insert = draw(st.sampled_from(UPDATES)), draw(st.sampled_from(INSERTS))
    if "k = s.k" in update:  # DuckDB also casts the keys of rows that no clause changes
        asked = [key for key in asked if key != 1 << 40]
    numbers = [[draw(SMALL) for _ in range(2)] for _ in (*held, *asked)]
    table = pa.table(
        {
            "k": pa.array(held, mine),
            "j": pa.array([j for j, _ in numbers[: len(held)]], pa.int64()),
            "n": pa.array([n for _, n in numbers[: len(held)]], pa.int64()),
        }
    )
    source = pa.table(
        {
            "k": pa.array(asked, theirs),
            "j": pa.array([j for j, _ in numbers[len(held) :]], pa.int32()),
            "n": pa.array([n for _, n in numbers[len(held) :]], pa.int64()),
            "d": pa.array([draw(DIGITS) for _ in asked], pa.string()),
        }
    )
    if not update and not insert:
        update = UPDATES[1]
    return table, source, f"MERGE INTO t USING source AS s {draw(st.sampled_from(JOINS))} {update} {insert}"


@pytest.fixture(scope="module")
def connections(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, ld.Connection, Any]]:
    folder = tmp_path_factory.mktemp("merges")
    with ld.connect(folder) as con, duckdb.connect() as native:
        yield folder, con, native


def outcome(con: Any, source: pa.Table, sql: str) -> tuple[object, list[tuple[Any, ...]]]:
    """Return the result of a statement and the rows after it."""
    assert source.num_rows >= 0
    try:
        answer: object = con.execute(sql).fetchall()
    except (duckdb.Error, ld.LanceDuckError):
        answer = "refused"
    return answer, con.execute("FROM t ORDER BY ALL").fetchall()


def has_several_matches(con: Any, source: pa.Table, sql: str) -> bool:
    """Return whether a MERGE condition matches several source rows for one table row."""
    assert source.num_rows >= 0
    joined = sql.split("AS s ")[1].split("WHEN")[0]
    try:
        matches = con.execute(f"SELECT count(*) FROM t JOIN source AS s {joined} GROUP BY t.rowid").fetchall()
    except duckdb.Error:
        return False
    return any(count > 1 for (count,) in matches)


@given(cases())
@settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
def test_every_merge_strategy_leaves_the_rows_of_a_native_table(
    connections: tuple[Path, ld.Connection, Any], case: tuple[pa.Table, pa.Table, str]
) -> None:
    folder, con, native = connections
    rows, source, sql = case
    native.execute("CREATE OR REPLACE TABLE t AS FROM rows")
    several = has_several_matches(native, source, sql)
    outcomes = {"native": outcome(native, source, sql)}
    for way in ("keys", "join", "shadow"):
        ld.write_dataset(
            rows, folder / "t.lance", mode="overwrite", max_rows_per_file=3, storage_options={"fsync": "false"}
        )
        with pytest.MonkeyPatch.context() as patch:
            if way != "keys":
                patch.setattr(SourceKeys, "of", lambda *_: None)
            if way == "shadow":
                patch.setattr(MergeJoin, "of", lambda *_: None)
            outcomes[way] = outcome(con, source, sql)
    refusals = [outcomes[way][0] == "refused" for way in ("native", "shadow")]
    if not (several and refusals == [False, True]):  # but for 2.0.0, DuckDB takes the last of several
        assert outcomes["shadow"] == outcomes["native"]
    assert outcomes["join"] == outcomes["keys"] == outcomes["shadow"]


@pytest.mark.parametrize(("setting", "way"), [("nocase", None), ("", SourceKeys)])
def test_string_keys_are_used_only_if_equality_is_binary(
    setting: str, way: type | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ld.write_dataset(pa.table({"k": ["a", "B"], "n": [1, 2]}), tmp_path / "t.lance")
    found = []
    of = SourceKeys.of

    def watched(*arguments: Any) -> SourceKeys | None:
        found.append(of(*arguments))
        return found[-1]

    monkeypatch.setattr(SourceKeys, "of", watched)
    with ld.connect(tmp_path) as con:
        con.execute(f"SET default_collation = '{setting}'")
        con.execute("MERGE INTO t USING (VALUES ('A', 5)) s(k, n) USING (k) WHEN MATCHED THEN UPDATE SET n = s.n")
        assert con.execute("FROM t ORDER BY n").fetchall() == (
            [("B", 2), ("a", 5)] if setting else [("a", 1), ("B", 2)]
        )
    assert [each and type(each) for each in found] == [way]
