"""Versions of branches, and versions as parameters; `statements/lance/at.sql` has the rest."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, NotFoundError

Rows = Callable[..., list[tuple[Any, ...]]]
IDS = "SELECT list(id ORDER BY id) FROM"


@pytest.fixture
def moment() -> list[datetime]:
    return []


@pytest.fixture
def con(
    tmp_path: Path, connect: Callable[..., ld.Connection], moment: list[datetime], monkeypatch: pytest.MonkeyPatch
) -> ld.Connection:
    """`t` with versions 1 (1, 2), 2 (and 3; tag `two`) and 3 (without 1); branch `dev` has 9 in its version 3; `u`."""
    monkeypatch.chdir(tmp_path)
    t = ld.write_dataset(pa.table({"id": [1, 2], "s": ["a", "b"]}), tmp_path / "t.lance")
    t.insert(pa.table({"id": [3], "s": ["c"]}))
    t.tags.create("two", 2)
    time.sleep(0.02)
    moment.append(datetime.now(UTC))
    time.sleep(0.02)
    t.delete("id = 1")
    t.create_branch("dev", 2).insert(pa.table({"id": [9], "s": ["z"]}))
    ld.write_dataset(pa.table({"id": [5]}), tmp_path / "u.lance")
    return connect(tmp_path)


@pytest.mark.parametrize(
    ("table", "ids"),
    [
        ("t AT (VERSION => 'dev')", [1, 2, 3, 9]),
        ("'t.lance' AT (VERSION => 'dev:3')", [1, 2, 3, 9]),
        ("lance_scan('t', version := 'dev:3')", [1, 2, 3, 9]),
        ("lance_scan('lance.t', branch := 'dev')", [1, 2, 3, 9]),
        ("lance_scan('t.lance', branch := 'dev', version := 2)", [1, 2, 3]),
        ("lance_scan('t', branch := 'dev', \"asof\" := now() + INTERVAL 1 DAY)", [1, 2, 3, 9]),
    ],
)
def test_versions_of_a_branch_are_selected_by_name_and_number(
    con: ld.Connection, rows: Rows, table: str, ids: Any
) -> None:
    assert rows(con, f"{IDS} {table}") == [(ids,)]


def test_at_timestamp_selects_the_version(con: ld.Connection, rows: Rows, moment: list[datetime]) -> None:
    assert rows(con, f"{IDS} t AT (TIMESTAMP => '{moment[0].isoformat()}')") == [([1, 2, 3],)]
    assert rows(con, f"{IDS} t AT (TIMESTAMP => ?)", [moment[0]]) == [([1, 2, 3],)]


def test_parameters_can_select_versions(con: ld.Connection, rows: Rows) -> None:
    assert rows(con, f"{IDS} t AT (VERSION => ?) WHERE id > ?", [1, 1]) == [([2],)]
    assert rows(con, f"{IDS} t AT (VERSION => $v)", {"v": "dev"}) == [([1, 2, 3, 9],)]
    for clause in ("AT (VERSION => ?)", "AT (TIMESTAMP => ?)"):
        with pytest.raises(InvalidInputError, match=r"the (version|time) is empty"):
            con.execute(f"FROM t {clause}", [None])
    with pytest.raises(NotFoundError, match="no version 9: expected one of 2 to 3"):
        con.execute("FROM t AT (VERSION => 'dev:9')")


@pytest.mark.parametrize("target", ["t", "lance.t", "'t.lance'"])
def test_a_parameter_is_the_version_that_a_change_reads(con: ld.Connection, rows: Rows, target: str) -> None:
    older, parameters = "lance.t AT (VERSION => ?)", [1]
    con.execute(f"INSERT INTO {target} SELECT id + 10, s FROM {older}", parameters)
    assert rows(con, f"{IDS} t") == [([2, 3, 11, 12],)]
    con.execute(f"UPDATE {target} AS n SET s = o.s || '!' FROM {older} AS o WHERE o.id = n.id", parameters)
    assert rows(con, "SELECT s FROM t WHERE id = 2") == [("b!",)]
    con.execute(f"DELETE FROM {target} WHERE id IN (SELECT id FROM {older})", parameters)
    assert rows(con, f"{IDS} t") == [([3, 11, 12],)]
    con.execute(f"MERGE INTO {target} AS n USING {older} AS o ON o.id = n.id WHEN NOT MATCHED THEN INSERT", parameters)
    assert rows(con, f"{IDS} t") == [([1, 2, 3, 11, 12],)]


def test_branches_are_read_on_a_plain_connection(
    con: ld.Connection, plain: duckdb.DuckDBPyConnection, rows: Rows
) -> None:
    assert rows(plain, f"{IDS} lance_scan('t.lance', version := 'dev')") == [([1, 2, 3, 9],)]
    sql = "SELECT id FROM lance_vector_search('v.lance', 'vec', [1.0, 0.0]::FLOAT[], k := 1, branch := 'dev')"
    vectors = pa.table({"id": [1], "vec": pa.array([[0.0, 1.0]], pa.list_(pa.float32(), 2))})
    v = ld.write_dataset(vectors, "v.lance")
    v.create_branch("dev").insert(pa.table({"id": [2], "vec": pa.array([[1.0, 0.0]], pa.list_(pa.float32(), 2))}))
    assert rows(plain, sql) == [(2,)]
    assert rows(con, sql) == [(2,)]


def test_a_version_cannot_be_a_query_with_parameters(con: ld.Connection) -> None:
    with pytest.raises(InvalidInputError, match="query without parameters"):
        con.execute("FROM t AT (VERSION => (SELECT ?))", [1])
