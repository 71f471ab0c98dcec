"""One table, changed by us and by pylance in random turns, against a dict; both read it after every step."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import lance_duck as ld

CASE_KIND = "life cycle"
FULL = os.environ.get("LANCE_DUCK_PROFILE") == "full"
TYPES: dict[str, pa.DataType] = {"key": pa.int64(), "n": pa.int64(), "text": pa.string()}

Row = dict[str, Any]
writers = st.sampled_from([ld, lance])
steps = st.integers(2, 5)


class TwoWriters(RuleBasedStateMachine):
    """The model is a dict from key to row; versions are stored so that a restore can be applied."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="two-writers-")
        self.path = f"{self.folder}/t.lance"
        self.rows: dict[int, Row] = {}
        self.ids: dict[int, int] = {}
        self.types = dict(TYPES)
        self.history: dict[int, tuple[dict[int, Row], dict[str, pa.DataType]]] = {}
        self.stable = False
        self.added = 0

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @initialize(writer=writers, stable=st.booleans(), version=st.sampled_from(["2.0", "2.1", "2.2"]), count=steps)
    def create(self, writer: Any, stable: bool, version: str, count: int) -> None:
        self.stable = stable
        rows = self.new_rows(count * 3)
        writer.write_dataset(
            self.table(rows), self.path, enable_stable_row_ids=stable, data_storage_version=version, max_rows_per_file=4
        )
        self.took(rows)

    @rule(writer=writers, count=steps)
    def append(self, writer: Any, count: int) -> None:
        rows = self.new_rows(count)
        writer.write_dataset(self.table(rows), self.path, mode="append")
        self.took(rows)

    @rule(writer=writers, step=steps, rest=st.integers(0, 4))
    def delete(self, writer: Any, step: int, rest: int) -> None:
        self.open(writer).delete(f"key % {step} = {rest}")
        self.rows = {k: r for k, r in self.rows.items() if k % step != rest}

    @rule(writer=writers, step=steps, rest=st.integers(0, 4))
    def update(self, writer: Any, step: int, rest: int) -> None:
        self.open(writer).update({"n": "n + 1", "text": "'u'"}, where=f"key % {step} = {rest}")
        for key, row in self.rows.items():
            if key % step == rest:
                self.rows[key] = row | {"n": None if row["n"] is None else row["n"] + 1, "text": "u"}

    @rule(writer=writers, step=steps, count=steps)
    def upsert(self, writer: Any, step: int, count: int) -> None:
        changed = [row | {"n": row["key"], "text": "m"} for key, row in self.rows.items() if key % step == 0]
        rows = [*changed, *self.new_rows(count)]
        merge = self.open(writer).merge_insert("key").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(self.table(rows))
        self.took(rows)

    @rule(writer=writers)
    def add_column(self, writer: Any) -> None:
        self.added += 1
        name = f"c{self.added}"
        self.open(writer).add_columns({name: "key * 2"})
        self.types[name] = pa.int64()
        self.rows = {k: r | {name: 2 * k} for k, r in self.rows.items()}

    @rule(writer=writers)
    def add_empty_column(self, writer: Any) -> None:
        self.added += 1
        name = f"c{self.added}"
        self.open(writer).add_columns(pa.field(name, pa.string()))
        self.types[name] = pa.string()
        self.rows = {k: r | {name: None} for k, r in self.rows.items()}

    @precondition(lambda self: len(self.types) > len(TYPES))
    @rule(writer=writers, data=st.data())
    def drop_column(self, writer: Any, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from([n for n in self.types if n not in TYPES]))
        self.open(writer).drop_columns([name])
        del self.types[name]
        self.rows = {k: {n: v for n, v in r.items() if n != name} for k, r in self.rows.items()}

    @precondition(lambda self: len(self.types) > len(TYPES))
    @rule(writer=writers, data=st.data())
    def rename_column(self, writer: Any, data: st.DataObject) -> None:
        self.added += 1
        old = data.draw(st.sampled_from([n for n in self.types if n not in TYPES]))
        new = f"c{self.added}"
        self.open(writer).alter_columns({"path": old, "name": new})
        self.types = {new if n == old else n: t for n, t in self.types.items()}
        self.rows = {k: {new if n == old else n: v for n, v in r.items()} for k, r in self.rows.items()}

    @rule(writer=writers, size=st.sampled_from([5, 100]))
    def compact(self, writer: Any, size: int) -> None:
        self.open(writer).optimize.compact_files(target_rows_per_fragment=size)

    @rule(name=st.sampled_from(["key", "n"]))
    def index(self, name: str) -> None:
        lance.dataset(self.path).create_scalar_index(name, "BTREE", replace=True)

    @rule(writer=writers, data=st.data())
    def restore(self, writer: Any, data: st.DataObject) -> None:
        version = data.draw(st.sampled_from(sorted(self.history)))
        dataset = self.open(writer).checkout_version(version)
        dataset.restore()
        rows, types = self.history[version]
        self.rows, self.types = dict(rows), dict(types)
        self.ids = {}

    @rule(writer=writers, count=st.integers(0, 3))
    def set_config(self, writer: Any, count: int) -> None:
        self.open(writer).update_config({"turn": str(count)})

    @invariant()
    def both_read_the_model(self) -> None:
        if not self.types or not os.path.exists(self.path):
            return
        expected = self.table([self.rows[k] for k in sorted(self.rows)])
        ours, theirs = ld.dataset(self.path), lance.dataset(self.path)
        assert ours.version == theirs.version
        read: dict[str, pa.Table] = {}
        for name, dataset in (("ours", ours), ("theirs", theirs)):
            found = dataset.to_table(with_row_id=True)
            assert found.schema.names == [*self.types, "_rowid"], name
            found = read[name] = found.sort_by("key")
            assert found.drop_columns(["_rowid"]).to_pydict() == expected.to_pydict(), name
            assert dataset.count_rows() == len(self.rows), name
        assert read["ours"]["_rowid"] == read["theirs"]["_rowid"]
        self.follow_ids(read["ours"])
        for key in sorted(self.rows)[:1]:
            assert theirs.to_table(filter=f"key = {key}").num_rows == 1
        theirs.validate()
        ours.validate()
        self.history[ours.version] = (dict(self.rows), dict(self.types))

    def follow_ids(self, found: pa.Table) -> None:
        """Check that a key keeps its stable row id, and that no id belongs to two keys."""
        if not self.stable:
            return
        ids = dict(zip(found["key"].to_pylist(), found["_rowid"].to_pylist(), strict=True))
        assert len(set(ids.values())) == len(ids)
        assert {k: i for k, i in ids.items() if k in self.ids} == {k: i for k, i in self.ids.items() if k in ids}
        self.ids = ids

    def open(self, writer: Any) -> Any:
        return writer.dataset(self.path)

    def new_rows(self, count: int) -> list[Row]:
        """Rows with keys that were never used; columns that were added are filled."""
        start = self.next_key = getattr(self, "next_key", 0)
        self.next_key += count
        fill: dict[pa.DataType, Callable[[int], Any]] = {
            pa.int64(): lambda k: None if k % 5 == 1 else k * 3,
            pa.string(): lambda k: None if k % 7 == 2 else f"t{k}",
        }
        return [
            {name: k if name == "key" else fill[kind](k) for name, kind in self.types.items()}
            for k in range(start, start + count)
        ]

    def took(self, rows: list[Row]) -> None:
        self.rows |= {row["key"]: row for row in rows}

    def table(self, rows: list[Row]) -> pa.Table:
        return pa.Table.from_pylist(rows, schema=pa.schema(list(self.types.items())))


TwoWriters.TestCase.settings = settings(max_examples=300 if FULL else 15, stateful_step_count=30 if FULL else 12)
test_two_writers = TwoWriters.TestCase
