"""Random statements do to Lance tables what they do to tables of DuckDB, and random queries give the same.

Statements: all forms of INSERT, UPDATE, DELETE and MERGE with sources of every kind, upserts of a table with a key,
TRUNCATE, CREATE TABLE, ALTER TABLE; between BEGIN and COMMIT too, prepared, with parameters, by `execute`, `sql` and
`executemany`; COPY to files and from them, NEAREST BY, older versions by number and tag, CREATE TABLE LIKE, correlated
subqueries, LATERAL, set operations, windows with frames, COMMENT and RENAME TO, queries that are prepared and executed
before and after a change; pylance and datasets of ours change the table between them. The tables have columns of
sixteen types, several fragments, deleted rows, indexes, stable row ids or none, and many names.

Conditions: columns beside literals of every spelling, those that do not fit among them, through indexes and without.
Where one side refuses a value of a row and the other gives rows, both are right: which conditions see which rows, no
database promises.

Known differences, which are not asked for: `rowid` in RETURNING and MERGE, several rows of a source for one row of
UPDATE … FROM, keys that plain INSERT repeats, defaults of columns for later rows, ALTER … TYPE to another kind of
types or of an indexed column, PREPARE of MERGE (which DuckDB refuses), `con.sql` of a change on DuckDB 1 (which gives
none), parameters in RETURNING (which DuckDB refuses), on DuckDB 1 the title of a NULL in RETURNING, MERGE
that DuckDB 2.0.0 fails in on its own tables, and vectors with null elements, which a search passes over.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from sql.random_conditions import selected
from sql.random_lives import changed, queried


def _many(short: int, all_: int) -> list[object]:
    return [*range(short), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(short, all_))]


@pytest.mark.parametrize("seed", _many(3, 80))
def test_random_changes_have_the_same_result_as_on_a_native_table(tmp_path: Path, seed: int) -> None:
    twins = changed(tmp_path, seed, statements=15)
    print(f"seed {seed}: {dict(twins.counts)}, refused {dict(twins.refused)}")
    assert not twins.differences, "\n".join([*twins.log, *twins.differences])


@pytest.mark.parametrize("seed", _many(3, 80))
def test_random_queries_have_the_same_result_as_on_a_native_table(tmp_path: Path, seed: int) -> None:
    twins = queried(tmp_path, seed, statements=20)
    print(f"seed {seed}: {dict(twins.counts)}, refused {dict(twins.refused)}")
    assert not twins.differences, "\n".join([*twins.log, *twins.differences])


@pytest.mark.parametrize("seed", _many(2, 40))
def test_random_conditions_select_the_same_rows_as_on_a_native_table(tmp_path: Path, seed: int) -> None:
    conditions = selected(tmp_path, seed, statements=60)
    print(f"seed {seed}: {dict(conditions.counts)}")
    assert not conditions.differences, "\n".join(conditions.differences)
