"""`Scopes` names the tables of a statement that DuckDB names, and gives each column the tables of its SELECT."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import duckdb
import pytest
from sql.corpus_support import CORPUS, TABLES, statements
from sql.named_tables import differences
from sql.random_shapes import Shapes, connection
from support.statements import read_cases

import lance_duck as ld

TPCH = Path(__file__).parents[1] / "golden" / "tpch"
FILES = sorted((Path(__file__).parent / "statements").glob("*.sql"))
_NATIVE = "CREATE TABLE n (i INTEGER)"
_OF_FILES = (
    "CREATE TABLE t (id INTEGER, name VARCHAR, list INTEGER[], v INTEGER); CREATE TABLE u (id INTEGER, v INTEGER)"
)


@pytest.fixture(scope="module")
def shapes() -> Iterator[duckdb.DuckDBPyConnection]:
    with connection() as made:
        yield made


def _connection(schema: str) -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute(f"PRAGMA disable_optimizer; {schema}").fetchall()
    return made


def test_table_names_of_tpch_queries_are_found() -> None:
    with _connection("CREATE SCHEMA unused") as made:
        for path in sorted((TPCH / "tables").glob("*.lance")):
            empty = ld.dataset(path).schema.empty_table()
            made.register("empty", empty)
            made.execute(f"CREATE TABLE {path.stem} AS FROM empty").fetchall()
        made.unregister("empty")
        for path in sorted((TPCH / "queries").glob("*.sql")):
            assert differences(made, path.read_text(encoding="utf-8")) == [], path.stem


def test_tables_of_the_corpus() -> None:
    compared = 0
    with _connection(_NATIVE) as made:
        for name, table in TABLES.items():
            table.create(made, name)
        for path in sorted(CORPUS.glob("*.sql")):
            for sql in statements(path.stem):
                found = differences(made, sql)
                assert not found, f"{sql}\n{found}"
                compared += found is not None
    assert compared > 100


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_table_names_of_statement_files_are_found(path: Path) -> None:
    with _connection(_OF_FILES) as made:
        for case in read_cases(path):
            found = differences(made, case.sql)
            assert not found, f"{path.name}:{case.line}: {found}"


def _many(short: int, all_: int) -> list[object]:
    return [*range(short), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(short, all_))]


@pytest.mark.parametrize("seed", _many(3, 60))
def test_tables_of_random_statements(shapes: duckdb.DuckDBPyConnection, seed: int) -> None:
    counts: Counter[bool] = Counter()
    for number in range(150):
        sql = Shapes(Random(seed * 1_000 + number)).statement()
        found = differences(shapes, sql)
        assert not found, f"{sql}\n{found}"
        counts[found is not None] += 1
    print(f"seed {seed}: compared {counts[True]}, refused {counts[False]}")
    assert counts[True] > 30
