"""Lives of a table: random statements, transactions, other writers and queries, on Lance and on DuckDB."""

from __future__ import annotations

from pathlib import Path
from random import Random

from sql.random_changes import ChangeMaker, Sample, SchemaMaker
from sql.random_expressions import TYPES, Expressions
from sql.random_queries import Queries
from sql.twins import Twins

import lance_duck as ld


def changed(folder: Path, seed: int, statements: int) -> Twins:
    """Run random changes on both, until there is a difference."""
    twins = Twins(folder, Random(seed), keyed=seed % 3 == 2)
    while sum(twins.counts.values()) < statements and not twins.differences:
        chance = twins.random.random()
        if chance < 0.1:
            twins.change_elsewhere()
            twins.check("another writer")
        elif chance < 0.3:
            _block(twins)
        elif chance < 0.4 and not twins.keyed:
            _schema_change(twins)
        else:
            _change(twins)
    twins.close()
    return twins


def queried(folder: Path, seed: int, statements: int) -> Twins:
    """Run random queries on both, with changes between them."""
    twins = Twins(folder, Random(seed))
    while sum(twins.counts.values()) < statements and not twins.differences:
        chance = twins.random.random()
        if chance < 0.08:
            twins.change_elsewhere()
        elif chance < 0.16:
            _change(twins)
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
            except Exception:  # what no view can be made of is run as it is
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
        if refused or twins.differences:
            break
    if ld.dataset(twins.uri).version != version:
        twins.differences.append("a version before COMMIT")
    end = "ROLLBACK" if refused else twins.random.choice(["COMMIT", "COMMIT", "ROLLBACK", "END"])
    twins.run(Sample("end", end))
    twins.check(end)


def _schema_change(twins: Twins) -> None:
    sample = SchemaMaker(twins.random, twins.tables()).sample()
    twins.run(sample)
    if sample.kind == "alter add" and not twins.differences:
        for column, _ in twins.tables()["{t}"]:  # the default of a Lance column is for the rows that there are
            twins.native.execute(f"ALTER TABLE t ALTER COLUMN {column} DROP DEFAULT")
    made = twins.native.execute("SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'x_'").fetchall()
    twins.check(sample.kind, ["t", *(name for (name,) in made)])
