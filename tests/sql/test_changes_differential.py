"""Random statements on a Lance table and a native table: the same rows, counts, RETURNING and errors."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from sql.changes_support import TYPES, StatementMaker, outcome

import lance_duck as ld
from lance_duck.errors import LanceDuckError

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        ("a", pa.int32()),
        ("s", pa.string()),
        ("d", pa.float64()),
        ("l", pa.list_(pa.int32())),
    ]
)
REFUSED = (duckdb.Error, LanceDuckError)
FIRST = "SELECT i, i % 7, ['a', 'bb', NULL, 'x'][1 + i % 4], i / 2, range(i % 4)::INT[] FROM range(20) r(i)"


class Twins:
    """The same table in Lance and in DuckDB."""

    def __init__(self, folder: Path, *, stable: bool = False) -> None:
        ld.write_dataset(SCHEMA.empty_table(), folder / "t.lance", enable_stable_row_ids=stable)
        self.uri = folder / "t.lance"
        self.lance, self.native = ld.connect(folder), duckdb.connect()
        self.native.execute(f"CREATE TABLE t ({TYPES})")
        for connection in (self.lance, self.native):
            connection.execute(f"INSERT INTO t {FIRST}")

    def close(self) -> None:
        self.lance.close()
        self.native.close()

    def run(self, sql: str, native: str | None = None) -> bool:
        """Run a statement on both, compare all, and return whether it was refused."""
        ours = outcome(lambda: self.lance.execute(sql).fetchall(), REFUSED)
        theirs = outcome(lambda: self.native.execute(native or sql).fetchall(), REFUSED)
        assert ours == theirs, sql
        return ours is None

    def check(self, sql: str) -> None:
        """Compare the rows of the tables."""
        ours, theirs = (sorted(map(repr, c.execute("FROM t").fetchall())) for c in (self.lance, self.native))
        assert ours == theirs, sql


@pytest.mark.parametrize("seed", range(6))
def test_random_upserts_have_the_same_result_as_on_a_native_table_with_a_key(tmp_path: Path, seed: int) -> None:
    twins, maker = Twins(tmp_path, stable=seed % 2 == 0), StatementMaker(random.Random(200 + seed))
    twins.native.execute("DROP TABLE t; CREATE TABLE t (" + TYPES.replace("NOT NULL", "PRIMARY KEY", 1) + ")")
    twins.native.execute(f"INSERT INTO t {FIRST}")
    refused = 0
    for _ in range(20):
        sql = maker.keyed_statement()
        refused += twins.run(sql)
        twins.check(sql)
    print(f"seed {seed}: 20 statements, {refused} refused")
    twins.close()


def spelled(path: Path) -> list[str]:
    return ["t", "lance.t", '"t"', "lance.main.T", f"'{path}'"]


@pytest.mark.parametrize("seed", range(12))
def test_random_statements_have_the_same_result_as_on_a_native_table(tmp_path: Path, seed: int) -> None:
    twins, maker = Twins(tmp_path, stable=seed % 3 == 0), StatementMaker(random.Random(seed))
    counts = {"statements": 0, "refused": 0, "versions": 0}
    version = ld.dataset(twins.uri).version
    for _ in range(25):
        sql = maker.statement()
        own = maker.random.choice(spelled(twins.uri))
        changed = sql.replace("INTO t", f"INTO {own}").replace("UPDATE t ", f"UPDATE {own} ")
        if "RETURNING t." in sql and own.startswith("'"):
            changed = sql
        counts["refused"] += twins.run(changed, sql)
        twins.check(sql)
        newest = ld.dataset(twins.uri).version
        assert newest - version in (0, 1)
        counts["versions"] += newest - version
        counts["statements"] += 1
        version = newest
    print(f"seed {seed}: {counts}")
    twins.close()


@pytest.mark.parametrize("seed", range(8))
def test_a_random_transaction_commits_one_version_or_none(tmp_path: Path, seed: int) -> None:
    maker = StatementMaker(random.Random(100 + seed), ["t"], in_transactions=True)
    twins, statements = Twins(tmp_path, stable=seed % 2 == 0), 0
    for _ in range(6):
        version, failed = ld.dataset(twins.uri).version, False
        twins.run("BEGIN")
        for _ in range(maker.random.randrange(1, 6)):
            sql = maker.statement()
            failed = twins.run(sql)
            if failed:
                break
            twins.check(sql)
            statements += 1
        assert ld.dataset(twins.uri).version == version
        ends = maker.random.choice(["COMMIT", "COMMIT", "ROLLBACK"])
        twins.run("ROLLBACK" if failed else ends)
        assert ld.dataset(twins.uri).version - version in ((0,) if failed or ends == "ROLLBACK" else (0, 1))
        twins.check("after the transaction")
    print(f"seed {seed}: {statements} statements")
    twins.close()
