"""Keys of every type on tables that hold one repeatedly; `statements/lance/repeated_keys.sql` has the rest."""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError

Connect = Callable[..., ld.Connection]
KEYS = {
    "BIGINT": (1, 2, 3),
    "VARCHAR": ("it's", "", "é"),
    "DOUBLE": (0.5, float("inf"), -1.0),
    "BOOLEAN": (True, False, None),
    "DATE": (datetime.date(2024, 1, 1), datetime.date(1969, 1, 1), datetime.date(2000, 2, 29)),
    "TIMESTAMP": tuple(datetime.datetime(2024, 1, 1, hour) for hour in (1, 2, 3)),
    "DECIMAL(12, 3)": (decimal.Decimal("1.500"), decimal.Decimal("-2.000"), decimal.Decimal("0.001")),
    "BLOB": (b"\x00", b"", b"ab"),
}
if duckdb.__version__ >= "2":  # 1.5 cannot push UUIDs of a join into a scan of Arrow
    KEYS["UUID"] = tuple(uuid.UUID(int=number) for number in (1, 2, 3))


@pytest.fixture
def con(tmp_path: Path, connect: Connect) -> ld.Connection:
    """A table `t` that holds the key 1 twice."""
    con = connect(tmp_path)
    con.execute("CREATE TABLE lance.t (id INTEGER, n INTEGER)")
    con.execute("INSERT INTO t VALUES (1, 10), (2, 20), (1, 11), (NULL, 5), (NULL, 6)")
    return con


def rows(con: ld.Connection) -> list[tuple[Any, ...]]:
    return con.execute("FROM t ORDER BY ALL").fetchall()


@pytest.mark.parametrize("type_", KEYS)
def test_repeated_source_keys_of_every_type_are_detected(tmp_path: Path, connect: Connect, type_: str) -> None:
    con, (repeated, single, new) = connect(tmp_path), KEYS[type_]
    con.execute(f"CREATE TABLE lance.t (k {type_}, n INTEGER)")
    for number, key in enumerate((repeated, single, repeated, repeated)):
        con.execute("INSERT INTO t VALUES (?, ?)", [key, number])
    con.execute(f"CREATE TEMP TABLE source (k {type_}, n INTEGER)")
    con.executemany("INSERT INTO source VALUES (?, ?)", [[repeated, 9], [single, 9], [new, 9]])
    con.execute("INSERT INTO t FROM source ON CONFLICT (k) DO NOTHING")
    assert sorted(con.execute("SELECT n FROM t").fetchall()) == [(0,), (1,), (2,), (3,), (9,)]
    with pytest.raises(InvalidInputError, match="3 rows with k"):
        con.execute("INSERT INTO t FROM source ON CONFLICT (k) DO UPDATE SET n = excluded.n")
