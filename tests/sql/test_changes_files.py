"""No statement writes another format at the path of a Lance table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import lance
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, LanceDuckError, UnsupportedError


@pytest.fixture
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the tables, as the one that paths are relative to."""
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("COPY trips TO ?", ["new.lance"]),
        ("COPY trips TO $1", ["new.lance"]),
        ("COPY trips TO $path (FORMAT lance)", {"path": "new.lance"}),
        ("COPY (SELECT * FROM trips WHERE id <> $1) TO $2", [99, "new.lance"]),
        ("PREPARE x AS COPY trips TO 'new.lance'; EXECUTE x", None),
        ("PREPARE x AS COPY trips TO $1; EXECUTE x('new.lance')", None),
        ("PREPARE x AS COPY trips TO $p; EXECUTE x(p := 'new' || '.lance')", None),
        ("SET VARIABLE place = 'new.lance'; COPY trips TO (getvariable('place'))", None),
        ("COPY trips TO ('new.' || 'lance')", None),
        (r"COPY trips TO e'new\x2elance' (FORMAT lance)", None),
        ("COPY trips TO $$new.lance$$", None),
        ("COPY trips TO new.lance", None),
        ("COPY trips TO new . lance", None),
        ("SELECT 1; COPY trips TO ?", ["new.lance"]),
    ],
)
def test_copy_writes_a_lance_table_for_every_path_syntax(
    con: ld.Connection, inside: Path, sql: str, parameters: Any
) -> None:
    assert con.execute(sql, parameters).fetchall() == [(7,)]
    assert lance.dataset(inside / "new.lance").count_rows() == 7


@pytest.mark.parametrize(
    ("sql", "parameters", "error"),
    [
        ("COPY trips TO ? (FORMAT csv)", ["new.lance"], InvalidInputError),
        ("COPY trips TO ('new.lance') (FORMAT parquet)", None, InvalidInputError),
        ("COPY trips TO 'new.lance' (FORMAT parquet, PARTITION_BY (city))", None, LanceDuckError),
        ("COPY trips TO 'new.lance' (PER_THREAD_OUTPUT)", None, LanceDuckError),
        ("COPY trips TO 'trips.lance/new.csv'", None, UnsupportedError),
        ("COPY trips TO ?", ["trips.lance/data/new.csv"], UnsupportedError),
        ("COPY trips TO ?", [], LanceDuckError),
        ("PREPARE x AS COPY trips TO $1 (FORMAT csv); EXECUTE x('new.lance')", None, InvalidInputError),
        ("EXPLAIN ANALYZE COPY trips TO ? (FORMAT csv)", ["new.lance"], InvalidInputError),
        ("EXPORT DATABASE 'new.lance'", None, UnsupportedError),
        ("EXPORT DATABASE 'new.lance' (FORMAT parquet)", None, UnsupportedError),
        ("EXPORT DATABASE memory TO 'trips.lance/new'", None, UnsupportedError),
        ("ATTACH 'new.lance' AS new", None, UnsupportedError),
        ("ATTACH DATABASE IF NOT EXISTS 'new.lance' AS new (READ_WRITE)", None, UnsupportedError),
    ],
)
def test_other_formats_are_rejected_at_a_lance_table_path(
    con: ld.Connection, inside: Path, sql: str, parameters: Any, error: type[Exception]
) -> None:
    before = sorted(inside.rglob("*"))
    con.execute("CREATE TABLE memory.own AS SELECT 1 AS a")
    with pytest.raises(error):
        con.execute(sql, parameters)
    assert sorted(inside.rglob("*")) == before


def test_copies_to_other_paths_are_run_by_duckdb(con: ld.Connection, inside: Path) -> None:
    con.execute("CREATE TABLE memory.own AS SELECT 1 AS a")
    con.execute("COPY own TO ?", ["a.csv"])
    con.execute("COPY own TO $1 (FORMAT parquet)", ["b.parquet"])
    con.execute("PREPARE x AS COPY trips TO $1; EXECUTE x('c.csv')")
    con.execute("COPY own TO ('d' || '.csv')")
    con.execute("COPY own TO e.csv")
    con.execute("EXPORT DATABASE 'exported'")
    con.execute("ATTACH 'f.db' AS f; ATTACH ':memory:' AS m")
    con.executemany("COPY own TO ?", [["g.csv"], ["h.csv"]])
    names = {path.name for path in inside.iterdir()}
    assert {"a.csv", "b.parquet", "c.csv", "d.csv", "e.csv", "exported", "f.db", "g.csv", "h.csv"} <= names
    assert duckdb.sql(f"SELECT count(*) FROM '{inside}/c.csv'").fetchall() == [(7,)]


def test_copy_writes_to_several_paths(con: ld.Connection, inside: Path) -> None:
    con.executemany("COPY trips TO ?", [["new.lance"], ["newer.lance"]])
    assert lance.dataset(inside / "newer.lance").count_rows() == 7
    with pytest.raises(UnsupportedError):
        con.executemany("COPY trips TO ?", [["new.csv"], ["newest.lance"]])
    assert not (inside / "new.csv").exists()
    assert not (inside / "newest.lance").exists()
