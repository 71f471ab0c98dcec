"""Lives of a table: random statements, transactions, other writers and queries, on Lance and on DuckDB."""

from __future__ import annotations

from pathlib import Path
from random import Random

import duckdb
from sql.random_changes import ChangeMaker, Sample, SchemaMaker
from sql.random_expressions import TYPES, Column, Expressions
from sql.random_queries import Queries
from sql.twins import Twins

import lance_duck as ld
from lance_duck.duck.statement.nearest_clause import KNOWS_NEAREST


def changed(folder: Path, seed: int, statements: int) -> Twins:
    """Run random changes on both, until there is a difference."""
    twins = Twins(folder, Random(seed), keyed=seed % 3 == 2)
    while sum(twins.counts.values()) < statements and not (twins.differences or twins.ended):
        chance = twins.random.random()
        if chance < 0.1:
            twins.change_elsewhere()
            twins.check("another writer")
        elif chance < 0.3:
            _block(twins)
        elif chance < 0.4 and not twins.keyed:
            _schema_change(twins)
        elif chance < 0.46 and not twins.keyed:
            _copy(twins)
        elif chance < 0.49 and len(twins.past) < 2:
            twins.remember()
        else:
            _change(twins)
    twins.close()
    return twins


def queried(folder: Path, seed: int, statements: int) -> Twins:
    """Run random queries on both, with changes between them."""
    twins = Twins(folder, Random(seed))
    while sum(twins.counts.values()) < statements and not (twins.differences or twins.ended):
        chance = twins.random.random()
        if chance < 0.08:
            twins.change_elsewhere()
        elif chance < 0.16:
            _change(twins)
        elif chance < 0.2:
            _execute_again(twins)
        elif chance < 0.24 and len(twins.past) < 3:
            twins.remember()
        else:
            _query(twins)
    twins.close()
    return twins


def _query(twins: Twins) -> None:
    way = twins.random.choice(["execute", "execute", "sql", "prepare", "view"])
    prepared = way in ("execute", "sql", "prepare") and twins.random.random() < 0.25
    make = Expressions(twins.random, [] if prepared else None, "{t}")
    queries = Queries(make, twins.tables())
    kind, sql = queries.statement(twins.random.sample(list(TYPES), twins.random.randrange(1, 4)))
    sample = Sample(kind, sql, make.parameters or [])
    if way == "view":
        for connection, ours in ((twins.lance, True), (twins.native, False)):
            twins.log.append(f"view: {sql}")
            try:
                connection.execute(f"CREATE OR REPLACE TEMP VIEW seen AS {twins.spelled(sql, ours=ours)}")
            except Exception:  # queries that cannot become a view run unchanged
                break
        else:
            sample = Sample(kind, "FROM seen")
    twins.run(sample, way)


def _change(twins: Twins, *, in_transaction: bool = False) -> bool:
    way = twins.random.choices(["execute", "sql", "prepare", "executemany"], [6, 1, 1, 0.7])[0]
    prepared = way == "executemany" or twins.random.random() < 0.15
    sample = ChangeMaker(twins.random, twins.tables(), twins.keyed, prepared, in_transaction).sample()
    if way == "executemany" and (not sample.parameters or twins.keyed):
        way = "execute"
    refused = twins.run(sample, way)
    if not (refused and in_transaction):
        twins.check(f"{sample.kind} by {way}")
    return refused


def _block(twins: Twins) -> None:
    """Run statements between BEGIN and COMMIT or ROLLBACK."""
    version, refused = ld.dataset(twins.uri).version, False
    twins.run(Sample("begin", twins.random.choice(["BEGIN", "BEGIN TRANSACTION", "START TRANSACTION"])))
    for _ in range(twins.random.randrange(1, 5)):
        refused = _change(twins, in_transaction=True)
        if refused or twins.differences or twins.ended:
            break
    if ld.dataset(twins.uri).version != version:
        twins.differences.append("a version before COMMIT")
    end = "ROLLBACK" if refused else twins.random.choice(["COMMIT", "COMMIT", "ROLLBACK", "END"])
    twins.run(Sample("end", end))
    twins.check(end)


def _schema_change(twins: Twins) -> None:
    sample = SchemaMaker(twins.random, twins.tables()).sample()
    twins.run(sample)
    made = twins.native.execute("SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'x_'").fetchall()
    twins.check(sample.kind, ["t", *(name for (name,) in made)])


def _copy(twins: Twins) -> None:
    """Have rows go to a file and back, in all columns or in some."""
    columns = [name for name, type_ in twins.tables()["{t}"] if not type_.startswith(("STRUCT", "MAP", "FLOAT["))]
    file = "{file}." + twins.random.choice(["parquet", "csv", "json"])
    chosen = ["id", *twins.random.sample(columns[1:], twins.random.randrange(1, 4))]
    make = Expressions(twins.random, None, "{t}")
    condition = make.condition([Column(f"z.{name}", "int") for name in ("id",)])
    listed = ", ".join(chosen)
    twins.run(Sample("copy to", f"COPY (SELECT {listed} FROM {{t}} AS z WHERE {condition}) TO '{file}'"))
    twins.run(Sample("copy from", f"COPY {{t}} ({listed}) FROM '{file}'"))
    twins.check("copy from")


def _execute_again(twins: Twins) -> None:
    """Prepare a query, perhaps of a view, and execute it before and after a change."""
    queries = Queries(Expressions(twins.random, None, "{t}"), twins.tables())
    sql = queries.query(["int", "text"], ["k", "v"])
    is_view = twins.random.random() < 0.5
    again = ""
    for connection, ours in ((twins.lance, True), (twins.native, False)):
        spelled = twins.spelled(sql, ours=ours)
        twins.log.append(f"prepare again: {spelled}")
        again = f"PREPARE again AS {'FROM again' if is_view else spelled}"
        try:
            if is_view:
                connection.execute(f"CREATE OR REPLACE TEMP VIEW again AS {spelled}")
            connection.execute(again)
        except duckdb.Error:
            return  # DuckDB refuses the query
    for _ in range(2):
        twins.run(Sample("execute", "EXECUTE again"))
        _change(twins)
        if not KNOWS_NEAREST:  # DuckDB 1.5.0 drops coalesce for a column without NULLs at prepare time
            twins.native.execute(again)
