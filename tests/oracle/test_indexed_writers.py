"""One table with indexes, changed by this package, pylance and LanceDB in random order: an index and a scan agree."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from oracle.unreached import over_listed
from oracle.writers import LANCEDB, OURS, PYLANCE, WRITERS, Writer

import lance_duck as ld

CASE_KIND = "life cycle"
SCHEMA = pa.schema(
    {
        "key": pa.int64(),
        "n": pa.int64(),
        "text": pa.string(),
        "tags": pa.list_(pa.string()),
        "v": pa.list_(pa.float32(), 2),
    }
)
SCALAR = ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER")
KINDS = {"key": SCALAR, "n": SCALAR, "text": SCALAR, "tags": ("LABEL_LIST",), "v": ("IVF_FLAT", "IVF_SQ")}

Row = dict[str, Any]
writers = st.sampled_from(WRITERS)
steps = st.integers(2, 5)


class IndexedWriters(RuleBasedStateMachine):
    """The model is a dict from key to row."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="indexed-writers-")
        self.path = f"{self.folder}/t.lance"
        self.rows: dict[int, Row] = {}
        self.next_key = 0
        self.follower: ld.LanceDataset | None = None
        self.made_here = True

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @initialize(writer=writers, stable=st.booleans(), version=st.sampled_from(["2.0", "2.1", "2.2"]), count=steps)
    def create(self, writer: Writer, stable: bool, version: str, count: int) -> None:
        rows = self.new_rows(count * 4)
        writer.create(self.path, self.table(rows), stable=stable, data_storage_version=version, max_rows_per_file=5)
        self.took(rows)

    @rule(data=st.data(), column=st.sampled_from(sorted(KINDS)))
    def index(self, data: st.DataObject, column: str) -> None:
        writer, kind = data.draw(
            st.sampled_from([(w, k) for w in WRITERS for k in KINDS[column] if k in w.scalar_kinds | w.vector_kinds])
        )
        if self.rows:
            self.wrote_index(writer)
            writer.create_index(self.path, column, kind)

    @rule(writer=writers, count=steps)
    def append(self, writer: Writer, count: int) -> None:
        rows = self.new_rows(count)
        writer.append(self.path, self.table(rows))
        self.took(rows)

    @rule(writer=writers, step=steps, rest=st.integers(0, 4))
    def delete(self, writer: Writer, step: int, rest: int) -> None:
        writer.delete(self.path, f"key % {step} = {rest}")
        self.rows = {k: r for k, r in self.rows.items() if k % step != rest}

    @rule(writer=writers, step=steps, rest=st.integers(0, 4), both=st.booleans())
    def update(self, writer: Writer, step: int, rest: int, both: bool) -> None:
        values = {"n": "n + 1"} | ({"text": "'u'"} if both else {})
        writer.update(self.path, values, f"key % {step} = {rest}")
        for key, row in self.rows.items():
            if key % step == rest:
                new = {"n": None if row["n"] is None else row["n"] + 1} | ({"text": "u"} if both else {})
                self.rows[key] = row | new

    @rule(writer=writers, step=steps, count=st.integers(0, 3))
    def upsert(self, writer: Writer, step: int, count: int) -> None:
        rows = [row | {"n": row["key"], "text": "m"} for key, row in self.rows.items() if key % step == 0]
        rows += self.new_rows(count)
        if rows:
            writer.upsert(self.path, self.table(rows))
            self.took(rows)

    @rule(writer=writers)
    def optimize(self, writer: Writer) -> None:
        self.wrote_index(writer)
        writer.optimize(self.path)

    @rule(writer=writers, size=st.sampled_from([10, 1000]))
    def compact(self, writer: Writer, size: int) -> None:
        if writer is LANCEDB:  # it also optimizes indexes
            self.wrote_index(writer)
        writer.compact(self.path, size)

    @rule(writer=st.sampled_from([OURS, PYLANCE]), merge=st.sampled_from([None, 0, 1, 10]))
    def optimize_indices(self, writer: Writer, merge: int | None) -> None:
        self.wrote_index(writer)
        writer.optimize_indices(self.path, **({} if merge is None else {"num_indices_to_merge": merge}))

    @invariant()
    def every_reader_finds_by_index_what_there_is(self) -> None:
        if not os.path.exists(self.path):
            return
        dataset = ld.dataset(self.path)
        scanned = dataset.to_table(use_scalar_index=False).sort_by("key")
        assert scanned.to_pylist() == [self.rows[k] for k in sorted(self.rows)]
        # Other libraries keep entries of changed rows next to new segments and find their old values.
        trusted = [OURS, LANCEDB, PYLANCE] if self.made_here else [OURS]
        assert not (self.made_here and over_listed(dataset))
        questions = self.questions()
        for reader in trusted:
            assert dict(zip(questions, reader.keys(self.path, *questions), strict=True)) == questions, reader
        self.follower = dataset if self.follower is None else self.follower
        self.follower.checkout_latest()
        for where, expected in questions.items():
            found = self.follower.to_table(columns=["key"], filter=where)["key"].to_pylist()
            assert sorted(found) == expected, (where, "what stayed in memory")
        assert dataset.count_rows(filter="n >= 0") == sum(r["n"] is not None for r in self.rows.values())
        if self.rows:
            for reader in trusted:
                # Other libraries count rows that no longer exist, after a compaction with stable row ids.
                count = len(self.rows) if reader is OURS else 2 * self.next_key
                found = reader.nearest(self.path, "v", [1.0, 2.0], count)
                assert found == sorted(self.rows), ("nearest", reader)

    def questions(self) -> dict[str, list[int]]:
        """Conditions, and the keys of the rows that satisfy them."""
        middle = self.next_key // 2
        found = {
            f"key = {middle}": lambda r: r["key"] == middle,
            f"key < {middle}": lambda r: r["key"] < middle,
            f"n >= {middle} AND n < {middle * 2}": lambda r: r["n"] is not None and middle <= r["n"] < middle * 2,
            "n IS NULL": lambda r: r["n"] is None,
            "n IN (3, 6, 7)": lambda r: r["n"] in (3, 6, 7),
            "text = 'u'": lambda r: r["text"] == "u",
            "text IN ('m', 't1')": lambda r: r["text"] in ("m", "t1"),
            "text IS NULL": lambda r: r["text"] is None,
            "array_has_any(tags, ['a', 'd'])": lambda r: bool({"a", "d"} & set(r["tags"])),
        }
        return {where: sorted(k for k, r in self.rows.items() if holds(r)) for where, holds in found.items()}

    def wrote_index(self, writer: Writer) -> None:
        """Record the writer of segments; segments of other writers are checked only with this package."""
        self.made_here &= writer is OURS

    def new_rows(self, count: int) -> list[Row]:
        """Rows with keys that were never used."""
        start = self.next_key
        self.next_key += count
        return [
            {
                "key": k,
                "n": None if k % 5 == 1 else k * 3,
                "text": None if k % 7 == 2 else f"t{k % 4}",
                "tags": [tag for tag in "abcd" if k % (ord(tag) - 95) == 0],
                "v": [float(k % 3), float(k)],
            }
            for k in range(start, start + count)
        ]

    def took(self, rows: list[Row]) -> None:
        self.rows |= {row["key"]: row for row in rows}

    def table(self, rows: list[Row]) -> pa.Table:
        return pa.Table.from_pylist(rows, schema=SCHEMA)


IndexedWriters.TestCase.settings = settings(max_examples=6, stateful_step_count=8)
test_indexed_writers = IndexedWriters.TestCase


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_indexed_writers_for_long() -> None:
    run_state_machine_as_test(IndexedWriters, settings=settings(max_examples=100, stateful_step_count=20))
