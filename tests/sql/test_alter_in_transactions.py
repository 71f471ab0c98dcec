"""ALTER TABLE and COMMENT ON between BEGIN and COMMIT give what they give one after the other without BEGIN."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import lance
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import CommitConflictError, LanceDuckError, UnsupportedError
from lance_duck.wire.transaction import CHANGES_ROWS

ROW_FACTS = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


def make(place: Path, *, stable: bool, version: str = "2.1", indexed: bool = True) -> ld.LanceDataset:
    """Write a table of three fragments, one with deleted rows, at version 4 or 3."""
    rows = pa.table(
        {
            "k": pa.array(range(12), pa.int64()),
            "v": [f"v{i % 5}" for i in range(12)],
            "n": pa.array([None if i % 4 == 0 else i for i in range(12)], pa.int32()),
            "s": [None if i == 7 and version != "2.0" else {"x": i, "y": f"y{i}"} for i in range(12)],
        }
    )
    table = ld.write_dataset(
        rows, place, max_rows_per_file=4, enable_stable_row_ids=stable, data_storage_version=version
    )
    table.delete("k IN (1, 5)")
    table.update_metadata({"comment": "first"})
    if indexed:
        table.create_scalar_index("k", "BTREE")
    return table


class Statements:
    """Random statements about the table `t`, given its columns."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.number = 0

    def next(self, columns: Sequence[str]) -> str:
        """Return a statement, which may fail."""
        self.number += 1
        one, plain = self.random.choice(columns), [name for name in columns if name != "s"]
        value = self.random.choice(plain)
        new, number, key = f"c{self.number}", self.random.randrange(100), self.random.randrange(15)
        kind = self.random.choice(["INTEGER", "BIGINT", "VARCHAR", "DOUBLE"])
        text = self.random.choice([f"'of {number}'", "NULL"])
        return self.random.choice(
            [
                f"ALTER TABLE t ADD COLUMN {new} {kind}",
                f"ALTER TABLE t ADD COLUMN {new} {kind} DEFAULT {number}",
                f"ALTER TABLE t ADD COLUMN s.{new} {kind}",
                f"ALTER TABLE t DROP COLUMN {one}",
                f"ALTER TABLE t DROP COLUMN s.{self.random.choice('xy')}",
                f"ALTER TABLE t RENAME {one} TO {new}",
                f"ALTER TABLE t ALTER {value} TYPE {kind}",
                f"ALTER TABLE t ALTER {value} SET NOT NULL",
                f"ALTER TABLE t ALTER {value} DROP NOT NULL",
                f"COMMENT ON TABLE t IS 'about {number}'",
                f"COMMENT ON COLUMN t.{one} IS {text}",
                f"INSERT INTO t ({value}) VALUES ({number}), ({number + 1})",
                f"INSERT INTO t SELECT * FROM t WHERE hash({value}) % 3 = 0",
                f"UPDATE t SET {value} = {number} WHERE hash({value}::VARCHAR) % 2 = 0",
                f"UPDATE t SET {value} = {self.random.choice(plain)}",
                f"DELETE FROM t WHERE hash({value}::VARCHAR) % 4 = 1",
                f"MERGE INTO t USING (SELECT {key} AS {value}) AS u USING ({value}) WHEN MATCHED THEN DELETE "
                f"WHEN NOT MATCHED THEN INSERT ({value}) VALUES (u.{value})",
            ]
        )


def facts(table: ld.LanceDataset, base: int, columns: Sequence[str]) -> dict[str, Any]:
    """Return what both ways must give. Versions after `base` count as one."""
    snapshot = table.handle.snapshot
    rows = table.to_table(columns=[*columns, *(ROW_FACTS if table.has_stable_row_ids else [])])
    for name in set(ROW_FACTS[1:]) & set(rows.column_names):
        values = [min(version, base + 1) for version in rows[name].to_pylist()]
        rows = rows.set_column(rows.column_names.index(name), name, pa.array(values, pa.int64()))
    return {
        "rows": sorted(map(repr, rows.to_pylist())),
        "fields": [(f.id, f.name, f.parent_id, f.logical_type, f.nullable, f.metadata) for f in snapshot.schema.walk()],
        "metadata": dict(table.metadata),
        "indexes": sorted((index.name, tuple(index.fields)) for index in snapshot.indices),
        "count": table.count_rows(),
    }


def layout(table: ld.LanceDataset) -> list[tuple[Any, ...]]:
    """Return the fragments, with the fields of their files, and the fragments that indexes cover."""
    snapshot = table.handle.snapshot
    fragments = [
        (f.id, f.physical_rows, f.num_deletions, sorted(sorted(file.fields) for file in f.files))
        for f in snapshot.fragments
    ]
    return [*fragments, *sorted((i.name, i.proto.fragment_bitmap) for i in snapshot.indices)]


def stored(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*.*") if path.is_file()}


def named(table: ld.LanceDataset, versions: Sequence[int]) -> set[str]:
    """Return the data files and deletion files that versions list."""
    found = set()
    for version in versions:
        for fragment in table.checkout_version(version).handle.snapshot.fragments:
            found |= {f"data/{file.path}" for file in fragment.all_files}
            if fragment.deletion_file is not None:
                found.add(fragment.deletion_file.path(fragment.id))
    return found


def run_random(seed: int) -> Callable[[Any], list[str]]:
    """Return a function that runs random statements one after the other, and returns those that succeed."""

    def run(con: Any) -> list[str]:
        statements, done = Statements(seed), []
        while len(done) < 2 + seed % 7:
            sql = statements.next([row[0] for row in con.execute("DESCRIBE t").fetchall()])
            try:
                con.execute(sql)
            except (duckdb.Error, LanceDuckError):
                continue
            done.append(sql)
        return done

    return run


def check(folder: Path, write: Callable[[Path], ld.LanceDataset], run_alone: Callable[[Any], list[str]]) -> str:
    """Compare a transaction with the same statements one after the other, and return the operation of its commit.

    Args:
        folder: An empty folder.
        write: Writes a table.
        run_alone: Runs the statements one after the other, and returns them.
    """
    places = [folder / name / "t.lance" for name in ("alone", "together")]
    base = [write(place).version for place in places][0]
    before = stored(places[1])
    with ld.connect(places[0].parent) as alone, ld.connect(places[1].parent) as together:
        statements = run_alone(alone)
        wanted, columns = alone.execute("FROM t ORDER BY ALL").fetchall(), alone.execute("DESCRIBE t").fetchall()
        other = together.cursor()
        seen = other.execute("FROM t ORDER BY ALL").fetchall()
        for end in ("ROLLBACK", "COMMIT"):
            together.execute("BEGIN")
            for sql in statements:
                together.execute(sql)
            assert together.execute("DESCRIBE t").fetchall() == columns, statements
            assert together.execute("FROM lance.t ORDER BY ALL").fetchall() == wanted, statements
            assert other.execute("FROM t ORDER BY ALL").fetchall() == seen
            together.execute(end)
            if end == "ROLLBACK":
                assert stored(places[1]) == before, statements
        for con in (together, other):
            assert con.execute("FROM t ORDER BY ALL").fetchall() == wanted
            assert con.execute("DESCRIBE t").fetchall() == columns
    names = [row[0] for row in columns]
    first, second = (ld.dataset(place) for place in places)
    assert second.version - base in (0, 1), statements
    assert facts(second, base, names) == facts(first, base, names), statements
    second.validate()
    transaction = second.handle.snapshot.transaction()
    operation = "" if transaction is None or second.version == base else transaction.operation
    if operation == "Merge":
        assert layout(second) == layout(first), statements
    data = {path for path in stored(places[1]) if path.startswith(("data", "_deletions"))}
    assert data == named(second, range(1, second.version + 1)), statements
    theirs = lance.dataset(places[1]).to_table(columns=names).to_pylist()
    assert sorted(map(repr, theirs)) == sorted(map(repr, second.to_table(columns=names).to_pylist()))
    return operation


def check_seed(folder: Path, seed: int, *, stable: bool, version: str) -> None:
    """See `check`, with random statements."""
    check(folder, lambda place: make(place, stable=stable, version=version), run_random(seed))


def run_all(statements: Sequence[str]) -> Callable[[Any], list[str]]:
    """Return a function that runs statements one after the other, and returns them."""

    def run(con: Any) -> list[str]:
        for sql in statements:
            con.execute(sql)
        return list(statements)

    return run


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("stable", [True, False])
def test_a_transaction_gives_what_its_statements_give_without_it(tmp_path: Path, seed: int, stable: bool) -> None:
    check_seed(tmp_path, seed, stable=stable, version=["2.0", "2.1", "2.2"][seed % 3])


ADD_AND_UPDATE = ("ALTER TABLE t ADD COLUMN z INT DEFAULT 4", "UPDATE t SET z = a WHERE a > 2")


@pytest.mark.parametrize(
    ("statements", "operation"),
    [
        (("INSERT INTO t VALUES (9, 'n')", "DELETE FROM t WHERE a = 0"), "Update"),
        (("ALTER TABLE t DROP COLUMN b",), "Project"),
        (("ALTER TABLE t DROP COLUMN b", "ALTER TABLE t RENAME a TO b", "COMMENT ON COLUMN t.b IS 'x'"), "Project"),
        (("ALTER TABLE t RENAME a TO c", "COMMENT ON TABLE t IS 'x'"), "Project"),
        (("ALTER TABLE t ADD COLUMN z INT",), "Merge"),
        (("ALTER TABLE t ADD COLUMN z INT", "COMMENT ON COLUMN t.z IS 'x'", "COMMENT ON TABLE t IS 'y'"), "Merge"),
        (("ALTER TABLE t ADD COLUMN z INT DEFAULT 4", "ALTER TABLE t DROP COLUMN z"), "Merge"),
        (("COMMENT ON TABLE t IS 'x'",), "UpdateConfig"),
        (("COMMENT ON TABLE t IS 'x'", "COMMENT ON COLUMN t.a IS 'y'", "COMMENT ON TABLE t IS NULL"), "UpdateConfig"),
        (("COMMENT ON TABLE t IS 'x'", "COMMENT ON COLUMN t.a IS 'y'", "INSERT INTO t VALUES (9, 'n')"), "Append"),
        (("INSERT INTO t VALUES (9, 'n')", "DELETE FROM t WHERE a = 9", "COMMENT ON TABLE t IS 'x'"), "UpdateConfig"),
        (ADD_AND_UPDATE, "Merge"),
        (
            (*ADD_AND_UPDATE, "DELETE FROM t WHERE z = 4", "INSERT INTO t VALUES (9, 'n', 9)", "UPDATE t SET z = 0"),
            "Merge",
        ),
        (("DELETE FROM t", "ALTER TABLE t ADD COLUMN z INT DEFAULT 4", "INSERT INTO t VALUES (1, 'n', 5)"), "Merge"),
        (
            ("ALTER TABLE t ALTER a TYPE INT", "INSERT INTO t VALUES (9, 'n')", "ALTER TABLE t ALTER a TYPE BIGINT"),
            "Merge",
        ),
        (
            (
                "INSERT INTO t VALUES (NULL, 'n')",
                "UPDATE t SET a = 7 WHERE a IS NULL",
                "ALTER TABLE t ALTER a SET NOT NULL",
            ),
            "Merge",
        ),
    ],
)
@pytest.mark.parametrize("stable", [True, False])
def test_a_transaction_is_committed_as_one_operation(
    tmp_path: Path, statements: Sequence[str], operation: str, stable: bool
) -> None:
    def write(place: Path) -> ld.LanceDataset:
        rows = pa.table({"a": range(6), "b": [f"b{i}" for i in range(6)]})
        return ld.write_dataset(rows, place, max_rows_per_file=3, enable_stable_row_ids=stable)

    assert check(tmp_path, write, run_all(statements)) == operation
