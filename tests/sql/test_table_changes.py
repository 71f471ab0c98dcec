"""`table_changes` equals a plain comparison of each version with the previous one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import lance
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, NotFoundError, UnsupportedError

Row = tuple[Any, ...]
Rows = Callable[..., list[Row]]
CHANGES = "SELECT * EXCLUDE rowid FROM lance_table_changes"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "t.lance"


class Changer:
    """Makes random changes of a table of `id`, `a` and `s`, whose ids are unique."""

    def __init__(self, seed: int, path: Path, con: ld.Connection) -> None:
        self.random = random.Random(seed)
        self.path = path
        self.con = con
        self.next_id = 100

    def change(self) -> None:
        kinds = [self.insert] * 3 + [self.delete] * 2 + [self.update] * 3 + [self.merge] * 2
        kinds += [
            self.compact,
            self.overwrite,
            self.restore,
            self.index,
            self.by_pylance,
            self.by_pylance,
            self.in_place,
        ]
        self.random.choice(kinds)()

    def ids(self, count: int) -> range:
        self.next_id += count
        return range(self.next_id - count, self.next_id)

    def condition(self) -> str:
        n = self.random.randrange(2, 5)
        return self.random.choice([f"id % {n} = 0", f"a % {n} = 1", f"id > {self.random.randrange(120)}", "s = 'x'"])

    def insert(self) -> None:
        values = ", ".join(f"({i}, {i % 7}, 'i')" for i in self.ids(self.random.randrange(1, 5)))
        self.con.execute(f"INSERT INTO t VALUES {values}")

    def delete(self) -> None:
        self.con.execute(f"DELETE FROM t WHERE {self.condition()} AND id % 3 = {self.random.randrange(3)}")

    def update(self) -> None:
        self.con.execute(f"UPDATE t SET a = a + 1, s = s || 'u' WHERE {self.condition()}")

    def merge(self) -> None:
        new = ", ".join(f"({i}, -1, 'm')" for i in self.ids(2))
        self.con.execute(f"""
            MERGE INTO t
            USING (SELECT id, a + 10, 'x' FROM t WHERE {self.condition()} UNION ALL VALUES {new}) q(id, a, s) USING (id)
            WHEN MATCHED AND q.id % 5 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET a = q.a
            WHEN NOT MATCHED THEN INSERT VALUES (q.id, q.a, q.s)""")

    def compact(self) -> None:
        ld.dataset(self.path).optimize.compact_files()

    def overwrite(self) -> None:
        ids = [*self.ids(3), 1, 2]
        ld.write_dataset(pa.table({"id": ids, "a": [0] * 5, "s": ["o"] * 5}), self.path, mode="overwrite")

    def restore(self) -> None:
        version = self.random.randrange(1, ld.dataset(self.path).version + 1)
        self.con.execute("CALL lance_restore('t', ?)", [version])

    def index(self) -> None:
        ld.dataset(self.path).create_scalar_index("id", "BTREE", replace=True)

    def in_place(self) -> None:
        """Rewrite one column of a fragment in place."""
        table = lance.dataset(self.path)
        fragments = table.get_fragments()
        if not fragments:
            return
        fragment = self.random.choice(fragments)
        ids = fragment.to_table(["id"]).column("id")
        if len(ids) == 0:
            return
        kept = ids.slice(0, (len(ids) + 1) // 2)
        values = pa.table({"id": kept, "s": [f"p{self.random.randrange(9)}"] * len(kept)})
        updated, fields = fragment.update_columns(values, "id", "id")
        operation = lance.LanceOperation.Update(updated_fragments=[updated], fields_modified=fields)
        lance.LanceDataset.commit(self.path, operation, read_version=table.version)

    def by_pylance(self) -> None:
        table = lance.dataset(self.path)
        match self.random.randrange(3):
            case 0:
                table.update({"a": "a + 100"}, where=self.condition())
            case 1:
                table.delete(self.condition() + " AND id % 2 = 1")
            case _:
                source = pa.table({"id": [*self.ids(1), 1, 2, 101], "a": [50] * 4, "s": ["pm"] * 4})
                table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(source)


def difference(before: list[Row], after: list[Row], operation: str, *, stable: bool) -> Counter[Row]:
    """Return what changed from one version to the next, by the key of its rows."""
    old, new = {row[0]: row for row in before}, {row[0]: row for row in after}
    changes: Counter[Row] = Counter()
    if operation == "Overwrite":
        changes.update(("delete", *row) for row in before)
        changes.update(("insert", *row) for row in after)
        return changes
    changes.update(("delete", *old[key]) for key in old.keys() - new.keys())
    changes.update(("insert", *new[key]) for key in new.keys() - old.keys())
    for key in old.keys() & new.keys():
        if old[key] != new[key]:
            changes["update_preimage" if stable else "delete", *old[key]] += 1
            changes["update_postimage" if stable else "insert", *new[key]] += 1
    return changes


def cancelled(changes: Counter[Row]) -> Counter[Row]:
    """Return the changes without rows that are deleted and inserted unchanged."""
    net: Counter[Row] = Counter()
    for (kind, *row), count in changes.items():
        net[tuple(row)] += count if kind in ("insert", "update_postimage") else -count
    return Counter({row: count for row, count in net.items() if count})


def moved(changes: Counter[Row]) -> Counter[Row]:
    """Return the changes with updates as rows that are deleted and inserted."""
    names = {"update_preimage": "delete", "update_postimage": "insert"}
    result: Counter[Row] = Counter()
    for (kind, *row), count in changes.items():
        result[names.get(kind, kind), *row] += count
    return result


@pytest.mark.parametrize("stable", [True, False], ids=["stable ids", "addresses"])
@pytest.mark.parametrize("seed", range(6))
def test_random_changes_equal_a_comparison_by_key(
    seed: int, stable: bool, path: Path, connect: Callable[..., ld.Connection], rows: Rows
) -> None:
    start = pa.table({"id": range(12), "a": [i % 4 for i in range(12)], "s": list("xyzxyzxyzxyz")})
    ld.write_dataset(start, path, enable_stable_row_ids=stable, max_rows_per_file=5)
    con = connect(path.parent)
    changer = Changer(seed, path, con)
    for _ in range(14):
        changer.change()
    versions = rows(con, "SELECT version, operation FROM lance_versions('t') ORDER BY 1")
    every = rows(con, f"{CHANGES}('t', 1, NULL)")
    before: list[Row] = []
    for version, operation in versions:
        after = rows(con, f"FROM t AT (VERSION => {version})")
        found = Counter(row[1:] for row in every if row[0] == version)
        expected = difference(before, after, operation, stable=stable)
        assert cancelled(found) == cancelled(expected), (version, operation)
        if not stable:  # only a column that is written in place is an update here
            found = moved(found)
        if stable or operation != "Restore":  # without ids, restored rows cannot be distinguished
            assert not expected - found, (version, operation)
            # An update that leaves the values of a row as they were is an update all the same.
            assert not cancelled(found - expected), (version, operation)
            assert operation == "Update" or found == expected, (version, operation)
        assert rows(con, f"{CHANGES}('t', {version}, {version})") == [row for row in every if row[0] == version]
        before = after


@pytest.fixture
def con(path: Path, connect: Callable[..., ld.Connection]) -> ld.Connection:
    """A table with stable row ids: 1 insert, 2 update, 3 delete, 4 insert."""
    ld.write_dataset(pa.table({"id": [1, 2], "s": ["a", "b"]}), path, enable_stable_row_ids=True)
    con = connect(path.parent)
    con.execute("UPDATE t SET s = 'B' WHERE id = 2")
    con.execute("DELETE FROM t WHERE id = 1")
    con.execute("INSERT INTO t VALUES (3, 'c')")
    return con


UPDATE = [(2, 1, "update_preimage", 2, "b"), (2, 1, "update_postimage", 2, "B")]
DELETE = [(3, 0, "delete", 1, "a")]
INSERT = [(4, 2, "insert", 3, "c")]


def test_lance_table_changes_works_on_a_plain_connection(
    con: ld.Connection, plain: duckdb.DuckDBPyConnection, rows: Rows
) -> None:
    assert rows(plain, "FROM lance_table_changes('t.lance', 2, 3)") == [*UPDATE, *DELETE]


def test_change_columns_are_renamed_if_the_table_has_the_same_names(
    path: Path, connect: Callable[..., ld.Connection]
) -> None:
    ld.write_dataset(pa.table({"rowid": ["x"], "Snapshot_ID": [5]}), path)
    found = connect(path.parent).execute("FROM lance_table_changes('t', 1)")
    assert [column[0] for column in found.description] == [
        "snapshot_id", "rowid", "change_type", "rowid_1", "Snapshot_ID_1"
    ]  # fmt: skip
    assert found.fetchall() == [(1, 0, "insert", "x", 5)]


def test_changed_values_of_every_type_equal_those_of_the_table(
    path: Path, connect: Callable[..., ld.Connection]
) -> None:
    table = pa.table(
        {
            "v": pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)),
            "h": pa.array([1.5, None], pa.float16()),
            "l": pa.array([[1, None], []]),
            "st": pa.array([{"x": 1, "y": "a"}, None]),
            "d": pa.array(["p", "q"]).dictionary_encode(),
            "ts": pa.array([1, None], pa.timestamp("us")),
            "b": pa.array([b"1", None]),
        }
    )
    ld.write_dataset(table, path)
    con = connect(path.parent)
    found = con.execute("SELECT * EXCLUDE (snapshot_id, rowid, change_type) FROM lance_table_changes('t', 1)")
    changed, types = found.fetchall(), [column[1] for column in found.description]
    whole = con.execute("FROM t")
    assert changed == whole.fetchall()
    assert types == [column[1] for column in whole.description]


def test_a_column_rewritten_in_place_is_reported_as_an_update(con: ld.Connection, path: Path, rows: Rows) -> None:
    table = lance.dataset(path)
    fragment = next(f for f in table.get_fragments() if 3 in f.to_table(["id"]).column("id").to_pylist())
    updated, fields = fragment.update_columns(pa.table({"id": [3], "s": ["C"]}), "id", "id")
    operation = lance.LanceOperation.Update(updated_fragments=[updated], fields_modified=fields)
    lance.LanceDataset.commit(path, operation, read_version=table.version)
    assert rows(con, "FROM lance_table_changes('t', 5)") == [
        (5, 2, "update_preimage", 3, "c"), (5, 2, "update_postimage", 3, "C")
    ]  # fmt: skip


def test_cleaned_up_versions_are_rejected(con: ld.Connection, path: Path) -> None:
    ld.dataset(path).cleanup_old_versions(older_than=timedelta(0))
    with pytest.raises(NotFoundError, match="the changes of version 4 need version 3, which does not exist"):
        con.execute("FROM lance_table_changes('t', 4)")


def test_changes_of_a_branch_start_at_its_creation(con: ld.Connection, rows: Rows) -> None:
    con.execute("CALL lance_create_branch('t', 'dev', version => 2)")
    dev = ld.dataset("t.lance", version=("dev", None))
    dev.insert(pa.table({"id": [9], "s": ["z"]}))
    assert rows(con, "SELECT * EXCLUDE rowid FROM lance_table_changes('t', 3, branch := 'dev')") == [
        (3, "insert", 9, "z")
    ]
    with pytest.raises(InvalidInputError, match="branch 'dev' begins with version 2"):
        con.execute("FROM lance_table_changes('t', 2, branch := 'dev')")


def test_moved_rows_without_ids_or_a_transaction_are_rejected(
    path: Path, connect: Callable[..., ld.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    ld.write_dataset(pa.table({"id": [1, 2, 3]}), path, max_rows_per_file=2)
    ld.dataset(path).optimize.compact_files()
    con = connect(path.parent)
    last = ld.dataset(path).version
    monkeypatch.setattr("lance_duck.snapshot.snapshot.Snapshot.transaction", lambda _: None)
    with pytest.raises(UnsupportedError, match=f"the changes of version {last} cannot be determined"):
        con.execute(f"FROM lance_table_changes('t', {last})").fetchall()


def test_changes_of_a_detached_version_are_rejected(tmp_path: Path, connect: Callable[..., ld.Connection]) -> None:
    dataset = ld.write_dataset({"id": [1]}, tmp_path / "r.lance")
    operation = ld.LanceOperation.Append([])
    detached = ld.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version, detached=True)
    con = connect({"d": detached})
    with pytest.raises(InvalidInputError, match="is detached"):
        con.execute("FROM lance_table_changes('d', 1)")
    assert con.execute("SELECT version, latest_version FROM lance_info('d')").fetchall() == [(None, 1)]
