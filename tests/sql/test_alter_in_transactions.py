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
from support.overlays import add_overlay

import lance_duck as ld
from lance_duck.errors import CommitConflictError, LanceDuckError
from lance_duck.verbs.inserted_rows import Arrivals, arrivals

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
    base = max(write(place).version for place in places)
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


def legacy(place: Path) -> ld.LanceDataset:
    """Write a table in file format 0.1."""
    rows = pa.table({"a": range(4), "b": [f"b{i}" for i in range(4)]})
    lance.write_dataset(rows, place, data_storage_version="legacy", max_rows_per_file=2)
    return ld.dataset(place)


def blobs(place: Path) -> ld.LanceDataset:
    """Write a table with blobs."""
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([pa.field("a", pa.int64()), blob])
    rows = pa.table({"a": range(4), "b": [b"x" * 5000, b"y", None, b"z"]}, schema=schema)
    return ld.write_dataset(rows, place, max_rows_per_file=2, enable_stable_row_ids=True)


def overlaid(place: Path) -> ld.LanceDataset:
    """Write a table with an overlay."""
    lance.write_dataset(pa.table({"a": range(4), "b": [1, 2, 3, 4]}), place, data_storage_version="2.1")
    add_overlay(str(place), 0, pa.table({"b": [20, 30]}), [1, 2])
    return ld.dataset(place)


def nested(place: Path) -> ld.LanceDataset:
    """Write a table with structs in lists and an index of an updated column."""
    rows = pa.table({"a": range(4), "b": [[{"x": i, "y": None}] * i for i in range(4)], "c": list("abcd")})
    table = ld.write_dataset(rows, place, max_rows_per_file=2, enable_stable_row_ids=True)
    table.create_scalar_index("c", "BITMAP")
    return table


@pytest.mark.parametrize(
    ("write", "statements"),
    [
        (
            legacy,
            (
                "ALTER TABLE t ADD COLUMN z INT DEFAULT 4",
                "UPDATE t SET b = 'n' WHERE a > 2",
                "DELETE FROM t WHERE a = 0",
            ),
        ),
        (legacy, ("DELETE FROM t WHERE a = 0", "ALTER TABLE t DROP COLUMN b", "INSERT INTO t VALUES (7)")),
        (
            blobs,
            (
                "ALTER TABLE t ADD COLUMN z INT DEFAULT 4",
                "UPDATE t SET z = a WHERE a > 1",
                "ALTER TABLE t DROP COLUMN a",
            ),
        ),
        (blobs, ("INSERT INTO t VALUES (5, 'q'::BLOB)", "ALTER TABLE t RENAME b TO c", "UPDATE t SET a = a + 1")),
        (overlaid, ("ALTER TABLE t ADD COLUMN z INT DEFAULT 4", "UPDATE t SET z = b WHERE a = 1")),
        (overlaid, ("INSERT INTO t VALUES (5, 6)", "ALTER TABLE t DROP COLUMN b", "ALTER TABLE t ADD COLUMN b INT")),
        (nested, ("ALTER TABLE t ADD COLUMN z INT", "UPDATE t SET c = 'q' WHERE a > 1", "ALTER TABLE t DROP COLUMN z")),
        (nested, ("UPDATE t SET a = a + 1 WHERE c > 'b'", "ALTER TABLE t RENAME c TO d", "UPDATE t SET a = a + 1")),
        (
            nested,
            (
                "ALTER TABLE t DROP COLUMN c",
                "ALTER TABLE t ADD COLUMN c VARCHAR DEFAULT 'b'",
                "DELETE FROM t WHERE a = 3",
            ),
        ),
    ],
)
def test_special_tables_are_altered_in_transactions(
    tmp_path: Path, write: Callable[[Path], ld.LanceDataset], statements: Sequence[str]
) -> None:
    assert check(tmp_path, write, run_all(statements)) == "Merge"


def small(place: Path) -> None:
    ld.write_dataset(pa.table({"a": range(4), "b": list("wxyz")}), place, enable_stable_row_ids=True)


def test_statements_of_a_transaction_read_the_altered_table(tmp_path: Path, connect: Any) -> None:
    small(tmp_path / "t.lance")
    ld.write_dataset(pa.table({"a": [1, 2]}), tmp_path / "u.lance")
    con = connect(tmp_path)
    con.execute("PREPARE p AS SELECT * FROM t WHERE a = ?")
    con.execute("BEGIN; ALTER TABLE t ADD COLUMN z INT")
    assert con.execute("EXECUTE p(2)").fetchall() == [(2, "y", None)]
    assert con.execute("UPDATE t SET z = a * 2 WHERE a > 1 RETURNING z, b").fetchall() == [(4, "y"), (6, "z")]
    con.execute("ALTER TABLE lance.t RENAME z TO twice; ALTER TABLE lance.main.t DROP COLUMN b")
    assert con.execute("INSERT INTO t BY NAME SELECT 9 AS twice RETURNING *").fetchall() == [(None, 9)]
    assert con.execute("SELECT twice FROM lance.t JOIN u USING (a) ORDER BY 1").fetchall() == [(4,), (None,)]
    assert con.sql(f"SELECT sum(twice) FROM '{tmp_path}/t.lance'").fetchall() == [(19,)]
    assert con.table("t").columns == ["a", "twice"]
    assert [row[:2] for row in con.execute("DESCRIBE lance.t").fetchall()] == [("a", "BIGINT"), ("twice", "INTEGER")]
    con.execute(f"COPY lance.t TO '{tmp_path}/t.csv'")
    assert (tmp_path / "t.csv").read_text().splitlines()[:2] == ["a,twice", "0,"]
    con.append("t", pa.table({"twice": [70]}), by_name=True)
    con.execute("COMMENT ON COLUMN t.twice IS 'a + a'; COMMENT ON TABLE t IS 'doubled'")
    comment = "SELECT comment FROM duckdb_columns() WHERE table_name = 't' AND column_name = 'twice'"
    assert con.execute(comment).fetchall() == [("a + a",)]
    assert con.cursor().execute("SELECT * FROM t LIMIT 1").fetchall() == [(0, "w")]
    con.execute("COMMIT")
    for reader in (con, con.cursor(), connect(tmp_path)):
        assert reader.execute("SELECT twice FROM t WHERE twice > 5 ORDER BY 1").fetchall() == [(6,), (9,), (70,)]
        assert reader.execute(comment).fetchall() == [("a + a",)]
    assert ld.dataset(tmp_path / "t.lance").version == 2


@pytest.mark.parametrize("first", ["ALTER TABLE t DROP COLUMN b", "COMMENT ON TABLE t IS 'x'", "DELETE FROM t"])
@pytest.mark.parametrize(
    "second", ["ALTER TABLE u DROP COLUMN b", "COMMENT ON COLUMN u.a IS 'x'", "INSERT INTO u VALUES (1, 'q')"]
)
def test_altering_a_table_is_a_change_of_the_table(tmp_path: Path, connect: Any, first: str, second: str) -> None:
    small(tmp_path / "t.lance")
    small(tmp_path / "u.lance")
    con = connect(tmp_path)
    con.execute(f"BEGIN; {first}")
    with pytest.raises(duckdb.TransactionException, match="a single transaction can only write to a single"):
        con.execute("CREATE TABLE memory.main.own AS SELECT 1 AS a")
    con.execute(f"ROLLBACK; BEGIN; {first}; {second}; COMMIT")
    for name in "tu":
        assert ld.dataset(tmp_path / f"{name}.lance").version == 2
    (entry,) = con.execute("SELECT outcome, tables FROM lance_commits()").fetchall()
    assert (entry[0], sorted(entry[1])) == ("published", ["t.lance", "u.lance"])


def test_a_statement_that_fails_after_an_alter_aborts_the_transaction(tmp_path: Path, connect: Any) -> None:
    small(tmp_path / "t.lance")
    before, con = stored(tmp_path), connect(tmp_path)
    con.execute("BEGIN; ALTER TABLE t ADD COLUMN z INT DEFAULT 3; INSERT INTO t VALUES (8, 'q', 5)")
    with pytest.raises(LanceDuckError, match="no column 'nosuch'"):
        con.execute("ALTER TABLE t DROP COLUMN nosuch")
    with pytest.raises(LanceDuckError, match="nothing was committed"):
        con.execute("COMMIT")
    con.execute("BEGIN; ALTER TABLE t ADD COLUMN z INT DEFAULT 3; INSERT INTO t VALUES (8, 'q', 5)")
    con.close()
    assert stored(tmp_path) == before


STRICT = "another writer changed a table that the transaction altered: expected version 1 as the newest version"


@pytest.mark.parametrize(
    ("mine", "theirs", "error"),
    [
        ("ALTER TABLE t DROP COLUMN b", "INSERT INTO t VALUES (7, 'q')", None),
        ("ALTER TABLE t RENAME b TO c; ALTER TABLE t DROP COLUMN c", "DELETE FROM t WHERE a = 1", None),
        ("ALTER TABLE t ADD COLUMN z INT", "COMMENT ON TABLE t IS 'theirs'", None),
        ("ALTER TABLE t ADD COLUMN z INT", "INSERT INTO t VALUES (7, 'q')", "changed data that this Merge needs"),
        ("ALTER TABLE t ADD COLUMN z INT; UPDATE t SET z = a", "INSERT INTO t VALUES (7, 'q')", STRICT),
        ("ALTER TABLE t DROP COLUMN b; DELETE FROM t WHERE a = 1", "COMMENT ON TABLE t IS 'theirs'", STRICT),
        ("INSERT INTO t VALUES (8, 'r'); COMMENT ON TABLE t IS 'mine'", "INSERT INTO t VALUES (7, 'q')", None),
        ("INSERT INTO t VALUES (8, 'r'); COMMENT ON COLUMN t.a IS 'x'", "ALTER TABLE t ADD COLUMN z INT", None),
        ("COMMENT ON TABLE t IS 'mine'", "UPDATE t SET a = 5 WHERE a = 1", None),
        ("INSERT INTO t VALUES (8, 'r'); COMMENT ON TABLE t IS 'x'", "COMMENT ON TABLE t IS 'y'", "the same metadata"),
        (
            "INSERT INTO t VALUES (8, 'r'); COMMENT ON COLUMN t.b IS 'x'",
            "ALTER TABLE t DROP COLUMN b",
            "the same metadata",
        ),
        ("COMMENT ON COLUMN t.b IS 'x'", "COMMENT ON COLUMN t.b IS 'y'", "incompatible with this UpdateConfig"),
    ],
)
def test_a_commit_with_columns_conflicts_as_lance_rules_say(
    tmp_path: Path, connect: Any, mine: str, theirs: str, error: str | None
) -> None:
    small(tmp_path / "t.lance")
    con, other = connect(tmp_path), connect(tmp_path)
    con.execute(f"BEGIN; {mine}")
    other.execute(theirs)
    if error is None:
        con.execute("COMMIT")
        assert ld.dataset(tmp_path / "t.lance").version == 3
    else:
        with pytest.raises(CommitConflictError, match=error):
            con.execute("COMMIT")
        assert ld.dataset(tmp_path / "t.lance").version == 2
        data = {path for path in stored(tmp_path / "t.lance") if path.startswith(("data", "_deletions"))}
        assert data == named(ld.dataset(tmp_path / "t.lance"), [1, 2])
    rows = other.execute("FROM t ORDER BY ALL").fetchall()
    assert con.execute("FROM t ORDER BY ALL").fetchall() == rows
    assert sorted(map(repr, lance.dataset(tmp_path / "t.lance").to_table().to_pylist())) == sorted(
        map(repr, ld.dataset(tmp_path / "t.lance").to_table().to_pylist())
    )


def test_the_history_of_a_table_has_the_rows_that_a_transaction_with_columns_changed(
    tmp_path: Path, connect: Any
) -> None:
    small(tmp_path / "t.lance")
    con = connect(tmp_path)
    con.execute("BEGIN; ALTER TABLE t DROP COLUMN b; UPDATE t SET a = 10 WHERE a = 1; DELETE FROM t WHERE a = 2")
    con.execute("INSERT INTO t VALUES (20); COMMIT")
    changes = con.execute("SELECT change_type, a FROM lance_table_changes('t', 2) ORDER BY ALL").fetchall()
    assert changes == [("delete", 2), ("insert", 20), ("update_postimage", 10), ("update_preimage", 1)]
    assert arrivals(ld.dataset(tmp_path / "t.lance").handle.snapshot) == Arrivals(2, "Merge", (), changed=True)
    con.execute("BEGIN; ALTER TABLE t ADD COLUMN z INT DEFAULT 2; INSERT INTO t VALUES (21, 1); COMMIT")
    assert arrivals(ld.dataset(tmp_path / "t.lance").handle.snapshot) == Arrivals(3, "Merge", (3,))
    con.execute("BEGIN; ALTER TABLE t ADD COLUMN y INT DEFAULT 4; ALTER TABLE t DROP COLUMN z; COMMIT")
    assert con.execute("FROM lance_table_changes('t', 4)").fetchall() == []
    assert arrivals(ld.dataset(tmp_path / "t.lance").handle.snapshot) == Arrivals(4, "Merge")
