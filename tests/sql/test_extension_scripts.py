"""Scripts for the DuckDB extension `lance` run as they are: INSTALL, LOAD and its settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, UnsupportedError

PLAN = "EXPLAIN SELECT id FROM t ORDER BY array_distance(vec, [0.1, 0.2, 0.3]) LIMIT 5"


@pytest.fixture
def con(tmp_path: Path) -> ld.Connection:
    rng = np.random.default_rng(0)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(3000, np.float32)), 3)
    table = ld.write_dataset(pa.table({"id": range(1000), "vec": vectors}), tmp_path / "t.lance")
    table.create_index("vec", "IVF_FLAT", num_partitions=8)
    con = ld.connect(tmp_path)
    # Unrecognised statements fail, because extensions cannot be downloaded here.
    con.execute(f"SET custom_extension_repository = '{tmp_path}'; SET extension_directory = '{tmp_path}'")
    return con


def plan(con: ld.Connection) -> str:
    return str(con.execute(PLAN).fetchall()[-1][1])


STATEMENTS = (
    "INSTALL lance",
    "install LANCE;",
    "LOAD lance",
    "LOAD 'lance'",
    'load "lance" ;',
    "INSTALL lance FROM community",
    "INSTALL 'lance' FROM 'https://example.com/nightly'",
    "FORCE INSTALL lance",
    "FORCE  INSTALL\nlance FROM core_nightly;",
    "-- the tables\nINSTALL lance -- of vectors\n;",
    "/* first */ LOAD lance",
)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_statements_for_the_lance_extension_do_not_install_or_load_it(con: ld.Connection, sql: str) -> None:
    runs: tuple[Callable[[str], Any], ...] = (con.execute, con.sql, con.cursor().execute)
    for run in runs:
        run(sql)
    con.execute(duckdb.extract_statements(sql)[0])
    con.execute(f"{sql.rstrip(' ;')}\n; SELECT 1; {sql.rstrip(' ;')}\n; FROM t LIMIT 1")
    assert len(con.fetchall()) == 1
    loaded = "SELECT count(*) FROM duckdb_extensions() WHERE extension_name = 'lance' AND (loaded OR installed)"
    assert con.execute(loaded).fetchone() == (0,)


@pytest.mark.parametrize("sql", ["INSTALL lance_other", "LOAD 'x/lance.duckdb_extension'", "INSTALL nothing"])
def test_statements_for_other_extensions_are_run_by_duckdb(con: ld.Connection, sql: str) -> None:
    with pytest.raises(duckdb.Error):
        con.execute(sql)


def test_extension_statements_work_in_a_transaction_and_with_a_table_named_lance(
    con: ld.Connection, tmp_path: Path
) -> None:
    ld.write_dataset({"load": [1]}, tmp_path / "lance.lance")
    con.execute("BEGIN; INSTALL lance; LOAD lance")
    assert con.execute("SELECT load FROM lance.lance").fetchall() == [(1,)]
    con.execute("COMMIT")


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SET lance_knn_nprobes = 3", "partitions probed: 3"),
        ("SET SESSION lance_knn_nprobes TO '3'", "partitions probed: 3"),
        ("SET lance_knn_nprobes = 3; SET lance_knn_nprobes = 0", "target recall 0.95"),
        ("SET lance_knn_nprobes = 3; SET lance_knn_nprobes = -1", "target recall 0.95"),
        ("SET lance_knn_nprobes = 3; RESET lance_knn_nprobes", "target recall 0.95"),
        ("SET lance_knn_use_index = false", "use_index is false"),
        ("SET lance_knn_use_index = 'off'", "use_index is false"),
        ("SET lance_knn_use_index = 0; SET lance_knn_use_index = true", "target recall 0.95"),
        ("SET lance_knn_use_index = 0; RESET lance_knn_use_index", "target recall 0.95"),
        ("SET lance_knn_prefilter = true", "target recall 0.95"),
        ("RESET lance_knn_prefilter; RESET lance_knn_max_k", "target recall 0.95"),
    ],
)
def test_settings_of_the_extension_are_aliases(con: ld.Connection, sql: str, words: str) -> None:
    con.execute(sql)
    assert words in plan(con)


def test_aliases_share_their_value_with_the_settings(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("SET lance_knn_refine_factor = 4; SET lance_knn_ef_search = 70; SET lance_knn_nprobes = 2")
    for name, value in (("refine_factor", 4), ("ef", 70), ("nprobes", 2)):
        assert con.execute(f"SELECT current_setting('lance_{name}')").fetchone() == (value,)
    for name, value in (("refine_factor", 4), ("ef_search", 70), ("nprobes", 2), ("use_index", True)):
        assert con.execute(f"SELECT current_setting('lance_knn_{name}')").fetchone() == (value,)
    con.execute("SET lance_nearest = 'exact'")
    assert con.execute("SELECT current_setting('lance_knn_use_index')").fetchone() == (False,)
    with ld.connect(tmp_path, config={"lance_knn_use_index": False}) as other:
        assert "use_index is false" in plan(other)


@pytest.mark.parametrize(
    ("sql", "error", "message"),
    [
        ("SET lance_knn_prefilter = false", UnsupportedError, "lance_knn_prefilter"),
        ("SET lance_knn_max_k = 500", UnsupportedError, "lance_knn_max_k"),
        ("SET lance_knn_use_index = maybe", InvalidInputError, "lance_knn_use_index"),
        ("SET lance_knn_nprobes = many", InvalidInputError, "lance_nprobes"),
        ("SET lance_knn_nothing = 1", InvalidInputError, "no setting lance_knn_nothing"),
    ],
)
def test_unsupported_settings_are_rejected_by_name(
    con: ld.Connection, sql: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        con.execute(sql)
    assert con.execute("SELECT 1").fetchone() == (1,)
