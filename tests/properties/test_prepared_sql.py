"""Prepared statements give what DuckDB gives, over changes of the table, of its names and of settings."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.changing import CHANGES, FAST, rows

import lance_duck as ld
from lance_duck.duck.direct import DirectReads
from lance_duck.errors import LanceDuckError

LISTS = [
    "id",
    "text, id",
    "t.ID AS k, n, real",
    '"text" AS n, day, flag, holes',
    "id, id, text AS id2",
    "moment, small, big, whole, data, wide",
    "text AS x, st",
    "*",
    "id + 1, text",
    "t, id",
    "missing",
]
CONDITIONS = [
    "id = ?",
    "t.id = $1",
    "id IN (?, ?)",
    "ID in ($1, 3, $1, 41)",
    "id = $key",
    "text = ?",
    "id = 7",
    "id IN (7, 1003)",
    "text = 'row -3'",
    "n = ?",
    "holes = ?",
    "id = ? AND n < 3",
    "id = ? ORDER BY text LIMIT 1",
]
KEYS = st.integers(-1, 70) | st.sampled_from([1003, -(2**63), 2**64, 10**40, None, "3", "row 3", "ROW 3", "a\0b"])
OTHERS = st.sampled_from([3.0, True, Decimal(3), b"3", np.int64(3), [3], float("nan")])
STEPS = [
    *CHANGES,
    "index",
    "drop index",
    "optimize",
    "again",
    "rename",
    "SET default_collation = 'nocase'",
    "RESET default_collation",
    "SET max_execution_time = 60000",
    "USE memory",
    "USE lance",
    "CREATE TEMP TABLE t AS SELECT 7 AS id, 'other' AS text",
    "DROP TABLE IF EXISTS temp.t",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
]


def whole(first: int, count: int, seed: int) -> pa.Table:
    """Return rows of the changing table with more types."""
    table = rows(first, count, seed)
    numbers = np.random.default_rng(seed).integers(0, 100, count)
    more = {
        "moment": pa.array(numbers * 10**12, pa.timestamp("us")),
        "small": pa.array(numbers.astype(np.uint8)),
        "big": pa.array(np.where(numbers % 2 == 0, np.nan, numbers / 3)),
        "whole": pa.array(numbers.astype(np.uint64) << np.uint64(57)),
        "data": pa.array([None if n % 9 == 0 else bytes([0, n]) for n in numbers.tolist()]),
        "wide": pa.array([f"ä\0{n}" for n in numbers.tolist()], pa.large_string()),
    }
    for name, column in more.items():
        table = table.append_column(name, column)
    return table.drop_columns(["v"])


def create(folder: str, *, stable: bool, seed: int) -> ld.LanceDataset:
    options: dict[str, Any] = {"enable_stable_row_ids": stable, "storage_options": FAST, "max_rows_per_file": 20}
    return ld.write_dataset(whole(0, 60, seed), f"{folder}/t.lance", mode="overwrite", **options)


def change(dataset: ld.LanceDataset, name: str, number: int) -> None:
    """Change the table by another handle."""
    dataset.checkout_latest()
    match name:
        case "index":
            for column in ("id", "text"):
                dataset.create_scalar_index(column, "BTREE" if number % 4 else "BITMAP", replace=True)
        case "drop index":
            dataset.drop_index("id_idx")
        case "optimize":
            dataset.optimize.optimize_indices()
        case "rename":
            dataset.alter_columns({"path": "n", "name": "missing" if "n" in dataset.schema.names else "n"})
        case "append":
            dataset.insert(whole(1000 * number, 7, number))
        case _:
            CHANGES[name](dataset, number)


_VALUE = re.compile(r"""'[^']*'|"[^"]*\"""")
"""Matches a value in an error: the first one that DuckDB cannot convert depends on its threads."""
Fetch = Callable[[Any], Any]


def arrow(con: Any) -> pa.Table:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # DuckDB prefers relations
        return con.fetch_arrow_table()


FETCHES: list[Fetch] = [
    lambda con: con.fetchall(),
    lambda con: (con.fetchone(), con.fetchmany(2), con.fetchall(), con.fetchone()),
    lambda con: (con.fetchone(), [column[:2] for column in con.description], con.fetchall()),
    arrow,
    lambda con: con.fetchnumpy(),
    lambda con: (con.rowcount, con.fetchall(), con.fetchall()),
]


def outcome(run: Callable[[], Any], fetch: Fetch) -> str:
    """Return the result, or the class and text of an error."""
    try:
        found = fetch(run())
    except (duckdb.Error, LanceDuckError, ValueError, TypeError) as error:
        return f"{type(error).__name__}: {_VALUE.sub('', str(error))}"
    return f"{found.schema} {found.to_pylist()}" if isinstance(found, pa.Table) else repr(found)


@contextmanager
def counted() -> Iterator[list[bool]]:
    """Note whether statements are answered without DuckDB."""
    answers: list[bool] = []
    answer = DirectReads.answer

    def noted(self: DirectReads, *arguments: Any, **options: Any) -> bool:
        answers.append(answer(self, *arguments, **options))
        return answers[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DirectReads, "answer", noted)
        yield answers


def by_duckdb(connection: ld.Connection) -> ld.Connection:
    """Leave all statements of a connection to DuckDB."""
    connection._direct.answer = lambda *_, **__: False  # type: ignore[method-assign]
    return connection


def with_changes(folder: str, both: list[ld.Connection], dataset: ld.LanceDataset, name: str, number: int) -> None:
    """Run a statement on both connections, or change the table."""
    if name == "again":
        both[0].rollback() if both[0].in_transaction else None
        both[1].rollback() if both[1].in_transaction else None
        ld.LanceDataset.drop(dataset.uri)
        dataset.handle.move_to(create(folder, stable=bool(number % 2), seed=number).handle.snapshot)
        change(dataset, "index", 1)
    elif name[0].isupper():
        assert len({outcome(lambda con=con: con.execute(name), lambda _: None) for con in both}) == 1  # type: ignore[misc]
    else:
        with suppress(LanceDuckError):
            change(dataset, name, number)


@settings(max_examples=settings.default.max_examples // 20)
@given(
    st.booleans(),
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 50)), max_size=6),
    st.lists(st.tuples(st.sampled_from(LISTS), st.sampled_from(CONDITIONS)), min_size=1, max_size=3),
    st.lists(KEYS | OTHERS, min_size=2, max_size=5),
    st.sampled_from(FETCHES),
)
def test_prepared_statements_give_what_duckdb_gives(
    stable: bool, steps: list[tuple[str, int]], texts: list[tuple[str, str]], keys: list[Any], fetch: Fetch
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        dataset = create(folder, stable=stable, seed=0)
        change(dataset, "index", 1)
        with ld.connect(folder) as ours, by_duckdb(ld.connect(folder)) as plain:
            statements = [f"SELECT {columns} FROM t WHERE {condition}" for columns, condition in texts]
            prepared = [ours.prepare(sql) for sql in statements]
            for name, number in [("", 0), *steps, ("", 0)]:
                if name:
                    with_changes(folder, [ours, plain], dataset, name, number)
                for sql, ask in zip(statements, prepared, strict=True):
                    for key, other in pairwise(keys):
                        values: Any = [key, other] if sql.count("?") > 1 else {"key": key} if "$key" in sql else [key]
                        if "?" not in sql and "$" not in sql:
                            values = None
                        expected = outcome(lambda sql=sql, values=values: plain.execute(sql, values), fetch)  # type: ignore[misc]
                        assert outcome(lambda ask=ask, values=values: ask(values), fetch) == expected  # type: ignore[misc]
