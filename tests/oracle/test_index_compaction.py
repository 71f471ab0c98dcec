"""Indexes during compaction by both libraries: remapped, deferred, or uncovered; never wrong."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance.optimize import Compaction, RewriteResult
from oracle.cases import Cases

import lance_duck as ld
from lance_duck.errors import IndexWarning
from lance_duck.index.catalog import Segment, catalog
from lance_duck.index.query import Among, Between, Null, Query
from lance_duck.index.reuse import reuse_of
from lance_duck.index.search import search
from lance_duck.optimize import Compaction as OurCompaction
from lance_duck.optimize import RewriteResult as OurRewriteResult
from lance_duck.snapshot import Snapshot, open_snapshot
from lance_duck.wire.index import FRAGMENT_REUSE

CASE_KIND = "predicate"
SEED = int(os.environ.get("LANCE_DUCK_SEED", "4"))
LIVES = int(os.environ.get("LANCE_DUCK_LIVES", "3"))
STEPS = 6
INDEXES = {"x": "BTREE", "s": "BITMAP", "z": "ZONEMAP"}
WAYS: dict[str, dict[str, Any]] = {
    "remap": {},
    "defer": {"defer_index_remap": True},
    "leave": {"remap_indices": False},
    "sort": {"order_by": ["x", "s"]},
}


class Life:
    """A table that is changed at random."""

    def __init__(self, path: Path, seed: int, *, stable: bool) -> None:
        self.rng = np.random.default_rng(seed)
        self.path = str(path)
        self.stable = stable
        self.keys = 0
        self.said: list[str] = []
        self.is_spoiled = False
        lance.write_dataset(self.rows(), self.path, enable_stable_row_ids=stable)
        for _ in range(int(self.rng.integers(1, 5))):
            self.append()
        for column, kind in INDEXES.items():
            options = {"rows_per_zone": 16} if kind == "ZONEMAP" else {}
            lance.dataset(self.path).create_scalar_index(column, kind, **options)

    def rows(self) -> pa.Table:
        count = int(self.rng.integers(1, 80))
        keys = np.arange(self.keys, self.keys + count)
        self.keys += count
        x = pa.array(self.rng.integers(0, 20, count), mask=self.rng.random(count) < 0.1)
        s = pa.array([None if i > 4 else f"s{i}" for i in self.rng.integers(0, 6, count)], pa.string())
        return pa.table({"key": keys, "x": x, "s": s, "z": keys / 7})

    def writer(self) -> Any:
        ours = self.rng.random() < 0.5
        self.said[-1] += " by us" if ours else " by pylance"
        return ld if ours else lance

    def append(self) -> None:
        self.said.append("append")
        self.writer().dataset(self.path).insert(self.rows())

    def delete(self) -> None:
        modulus = int(self.rng.integers(2, 9))
        self.said.append(f"delete key % {modulus} = 1")
        self.writer().dataset(self.path).delete(f"key % {modulus} = 1")

    def update(self) -> None:
        modulus = int(self.rng.integers(2, 9))
        self.said.append(f"update where key % {modulus} = 0")
        self.writer().dataset(self.path).update({"x": "x + 1"}, where=f"key % {modulus} = 0")

    def optimize(self) -> None:
        count = int(self.rng.integers(0, 3))
        self.said.append(f"optimize {count}")
        lance.dataset(self.path).optimize.optimize_indices(num_indices_to_merge=count)

    def compact(self) -> None:
        ways = ["remap", "leave", "sort"] if self.stable else list(WAYS)
        way = ways[int(self.rng.integers(0, len(ways)))]
        self.said.append(f"compact {way}")
        writer = self.writer()
        options = {
            "target_rows_per_fragment": int(self.rng.integers(40, 300)),
            "materialize_deletions_threshold": 0.05,
        }
        if way in ("leave", "sort"):  # pylance has neither
            ld.dataset(self.path).optimize.compact_files(**options, **WAYS[way])
            return
        other = ld if writer is lance else lance
        reused = any(i.name == FRAGMENT_REUSE for i in open_snapshot(self.path).indices)
        shutil.copytree(self.path, f"{self.path}-copy")
        writer.dataset(self.path).optimize.compact_files(**options, **WAYS[way])
        other.dataset(f"{self.path}-copy").optimize.compact_files(**options, **WAYS[way])
        mine, theirs = rows_covered(self.path), rows_covered(f"{self.path}-copy")
        shutil.rmtree(f"{self.path}-copy")
        del mine["z"], theirs["z"]  # zone maps follow where we compact
        # pylance rewrites B-trees without earlier moves: it loses rows, and this package covers fewer.
        self.is_spoiled |= reused and way == "remap"
        if self.is_spoiled:
            del mine["x"], theirs["x"]
        assert mine == theirs, self.said

    def change(self) -> None:
        steps = [self.append, self.delete, self.update, self.optimize, self.compact, self.compact, self.compact]
        steps[int(self.rng.integers(0, len(steps)))]()


def rows_covered(path: str) -> dict[str, int]:
    """Return the number of indexed rows by column."""
    snapshot = open_snapshot(path)
    return {
        column: sum(
            snapshot.num_rows(snapshot.fragment(int(i)))
            for index in catalog(snapshot).over(column)
            for i in index.fragments
        )
        for column in INDEXES
    }


def queries(rng: np.random.Generator) -> Iterator[tuple[str, str, Query, Any]]:
    """A column, a condition on it, the same as a query, and as a function of values."""
    low, high = sorted(rng.integers(0, 22, 2).tolist())
    x, bounds = pa.scalar(low, pa.int64()), Between(pa.scalar(low, pa.int64()), pa.scalar(high, pa.int64()))
    yield "x", f"x = {low}", Among(pa.array([low], pa.int64())), lambda v: pc.equal(v, x)
    yield (
        "x",
        f"x BETWEEN {low} AND {high}",
        bounds,
        lambda v: pc.and_(pc.greater_equal(v, low), pc.less_equal(v, high)),
    )
    yield "x", "x IS NULL", Null(), pc.is_null
    yield "s", "s IN ('s1', 's3')", Among(pa.array(["s1", "s3"])), lambda v: pc.is_in(v, pa.array(["s1", "s3"]))
    yield "s", "s IS NULL", Null(), pc.is_null
    top = float(rng.integers(0, 60))
    yield "z", f"z < {top}", Between(None, pa.scalar(top), high_open=True), lambda v: pc.less(v, top)


def compare(cases: Cases, life: Life) -> None:
    """Compare pylance with and without its index, this package, and every single segment."""
    ours, theirs = ld.dataset(life.path), lance.dataset(life.path)
    snapshot = open_snapshot(life.path)
    plain = theirs.to_table()
    for column, condition, query, holds in queries(life.rng):
        with cases.case(f"{condition} after {life.said}"):
            expected = sorted(plain.filter(holds(plain[column]))["key"].to_pylist())
            segments = [s for index in catalog(snapshot).over(column) for s in index.segments]
            answers = [theirs.to_table(filter=condition, use_scalar_index=False), ours.to_table(filter=condition)]
            if (len(segments) < 2 or not life.stable) and (not life.is_spoiled or column != "x"):
                # otherwise pylance finds rows by their old values, or misses them
                answers.append(theirs.to_table(filter=condition))
            for found in answers:
                assert sorted(found["key"].to_pylist()) == expected
            for segment in segments:
                ask(snapshot, segment, query, holds, may_break=life.is_spoiled)


def ask(snapshot: Snapshot, segment: Segment, query: Query, holds: Any, *, may_break: bool) -> None:
    """Check that the answer of a segment is right in the fragments that it covers."""
    answer = search(snapshot, segment, query)
    if answer is None:
        assert may_break
        return
    rows = ld.dataset(snapshot.uri).to_table(columns=[segment.path, "_rowaddr"])
    addresses = rows["_rowaddr"].to_numpy().astype(np.uint64)
    holding = pc.fill_null(holds(rows[segment.path]), False).to_numpy()
    mine = np.isin(addresses >> np.uint64(32), segment.fragments)
    expected = set(addresses[mine & holding].tolist())
    living = set(addresses.tolist())
    assert set(answer.sure) & living <= expected <= set(answer.maybe)
    assert {row >> 32 for row in answer.maybe} <= set(segment.fragments.tolist())


@pytest.mark.filterwarnings("ignore::lance_duck.errors.IndexWarning")
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
@pytest.mark.parametrize("number", range(LIVES))
def test_compaction_loses_no_row_and_finds_none_twice(tmp_path: Path, cases: Cases, number: int, stable: bool) -> None:
    seed = SEED * 1000 + number
    print(f"LANCE_DUCK_SEED={SEED}, life {number}, stable {stable}")
    life = Life(tmp_path / "t.lance", seed, stable=stable)
    compare(cases, life)
    for _ in range(STEPS):
        life.change()
        compare(cases, life)
    if not life.is_spoiled:
        ld.dataset(life.path).validate()
    lance.dataset(life.path).validate()


def test_a_btree_that_pylance_compacted_without_remapping_is_ignored(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    for i in range(3):
        table = pa.table({"key": range(50 * i, 50 * i + 50)})
        lance.write_dataset(table, path, mode="append" if i else "create")
    lance.dataset(path).create_scalar_index("key", "BTREE")
    lance.dataset(path).optimize.compact_files(defer_index_remap=True)
    assert ld.dataset(path).to_table(filter="key = 77").num_rows == 1
    lance.dataset(path).delete("key % 5 = 1")
    lance.dataset(path).optimize.compact_files()
    assert lance.dataset(path).to_table(filter="key = 77").num_rows == 0
    with pytest.warns(IndexWarning, match="expected 120, found 0"):
        assert ld.dataset(path).to_table(filter="key = 77").num_rows == 1
    ld.dataset(path).delete("key % 5 = 2 AND key > 100")
    with pytest.warns(IndexWarning, match="cannot be rewritten"):
        ld.dataset(path).optimize.compact_files(materialize_deletions_threshold=0.0)
    for writer in (lance, ld):
        assert writer.dataset(path).to_table(filter="key = 77").num_rows == 1


@pytest.mark.parametrize("deferred_by", ["us", "pylance"])
@pytest.mark.parametrize(
    ("kind", "asked"),
    [("INVERTED", {"full_text_query": "duck"}), ("NGRAM", {"filter": "contains(s, 'duck')"})],
    ids=["full text", "n-grams"],
)
def test_a_full_text_index_that_pylance_compacted_without_remapping_is_ignored(
    tmp_path: Path, kind: str, asked: dict[str, Any], deferred_by: str
) -> None:
    path = str(tmp_path / "t.lance")
    texts = [f"duck {i}" if i % 4 else ("", None)[i % 8 // 4] for i in range(40)]
    lance.write_dataset(pa.table({"key": range(40), "s": texts}), path, max_rows_per_file=10)
    lance.dataset(path).create_scalar_index("s", kind)
    (ld if deferred_by == "us" else lance).dataset(path).optimize.compact_files(defer_index_remap=True)
    lance.dataset(path).delete("key % 5 = 1")
    asked = {"columns": ["key"], **asked}

    def found(writer: Any) -> list[int]:
        return sorted(writer.dataset(path).to_table(**asked)["key"].to_pylist())

    expected = [i for i in range(40) if i % 4 and i % 5 != 1]
    assert found(ld) == expected
    lance.dataset(path).optimize.compact_files()
    assert found(lance) == []
    with pytest.warns(IndexWarning, match="the index contains rows of removed fragments"):
        assert found(ld) == expected
    ld.dataset(path).create_scalar_index("s", kind, replace=True)
    assert found(ld) == found(lance) == expected


@pytest.mark.filterwarnings("ignore::lance_duck.errors.IndexWarning")
def test_rows_lost_by_pylance_are_scanned_after_a_deferred_compaction(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    ours = ld.write_dataset(pa.table({"x": list(range(120))}), path, max_rows_per_file=40)
    ours.create_scalar_index("x", "BTREE")
    ours.optimize.compact_files(target_rows_per_fragment=80, defer_index_remap=True)
    lance.dataset(path).optimize.compact_files(target_rows_per_fragment=1000)
    ours = ld.dataset(path)
    ours.delete("x % 2 = 1")
    ours.optimize.compact_files(target_rows_per_fragment=30, defer_index_remap=True)
    assert ld.dataset(path).count_rows("x < 10") == 5


def test_both_libraries_follow_a_fragment_reuse_index(tmp_path: Path, cases: Cases) -> None:
    life = Life(tmp_path / "t.lance", SEED, stable=False)
    for i, writer in enumerate((ld, lance, ld, lance)):
        sizes = [(f.fragment_id, f.physical_rows) for f in lance.dataset(life.path).get_fragments()]
        writer.dataset(life.path).optimize.compact_files(
            target_rows_per_fragment=60 * 2**i, materialize_deletions_threshold=0.0, defer_index_remap=True
        )
        reuse = reuse_of(open_snapshot(life.path))
        assert reuse is not None
        every = [np.arange(rows, dtype=np.uint64) | np.uint64(i << 32) for i, rows in sizes]
        with cases.case(f"round {i}"):
            found, lives = reuse.follow(np.concatenate(every))
            expected = lance.dataset(life.path).remap_row_addrs(pa.array(np.concatenate(every)))
            assert pa.array(found, mask=~lives).equals(expected)
        writer.dataset(life.path).delete(f"key % 5 = {i}")
        compare(cases, life)


@pytest.mark.parametrize("executed_by", ["us", "pylance"])
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
def test_the_index_follows_compaction_tasks_of_the_other_library(
    tmp_path: Path, cases: Cases, executed_by: str, stable: bool
) -> None:
    life = Life(tmp_path / "t.lance", SEED, stable=stable)
    life.delete()
    if executed_by == "us":
        ours = ld.dataset(life.path)
        texts = [task.execute(ours).json() for task in OurCompaction.plan(ours).tasks]
        Compaction.commit(lance.dataset(life.path), [RewriteResult.from_json(text) for text in texts])
    else:
        theirs = lance.dataset(life.path)
        texts = [task.execute(theirs).json() for task in Compaction.plan(theirs, {}).tasks]
        OurCompaction.commit(ld.dataset(life.path), [OurRewriteResult.from_json(text) for text in texts])
    compare(cases, life)
    covered = rows_covered(life.path)
    assert covered["x"] == covered["s"] == lance.dataset(life.path).count_rows()


@pytest.mark.parametrize(("kind", "fragments"), [("IVF_FLAT", 1), ("IVF_RQ", 1), ("INVERTED", 1)])
def test_pylance_uses_indexes_that_lance_duck_compaction_left_unchanged(
    tmp_path: Path, cases: Cases, kind: str, fragments: int
) -> None:
    path = str(tmp_path / "t.lance")
    rng = np.random.default_rng(SEED)
    for i in range(3):
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(300 * 8), pa.float32()), 8)
        keys = range(300 * i, 300 * i + 300)
        texts = [f"word{k % 10} other{k % 7}" for k in keys]
        lance.write_dataset(pa.table({"key": keys, "v": vectors, "t": texts}), path, mode="append" if i else "create")
    dataset = lance.dataset(path)
    if kind.startswith("IVF"):
        more = {"num_sub_vectors": 2, "num_bits": 4} if kind == "IVF_PQ" else {}
        dataset.create_index("v", kind, num_partitions=2, **more)
    else:
        dataset.create_scalar_index("t", kind)
    dataset.create_scalar_index("key", "BTREE")

    def asked() -> list[list[int]]:
        now = lance.dataset(path)
        if kind.startswith("IVF"):
            nearest = {"column": "v", "q": np.full(8, 0.5, np.float32), "k": 9, "nprobes": 2, "refine_factor": 50}
            rows = now.to_table(columns=["key", "_distance"], nearest=nearest, fast_search=True)
        else:
            rows = now.to_table(columns=["key", "_score"], full_text_query="word3", fast_search=True)
        return [sorted(rows["key"].to_pylist()), now.to_table(filter="key > 500", columns=["key"])["key"].to_pylist()]

    dataset.delete("key % 9 = 0")
    before = asked()
    ld.dataset(path).optimize.compact_files()
    with cases.case(kind):
        assert len(lance.dataset(path).get_fragments()) == fragments
        assert asked() == before
        assert len(before[0]) > 5
    ld.dataset(path).delete("key % 10 = 5")
    left = [[k for k in keys if k % 10 != 5] for keys in before]
    for writer in (ld, lance):
        writer.dataset(path).optimize.compact_files(materialize_deletions_threshold=0.0)
        with cases.case(f"{kind}, again by {writer.__name__}"):
            found = asked()
            assert found[1] == left[1]
            assert set(found[0]) >= set(left[0]) if kind.startswith("IVF") else found[0] == left[0]
        ld.dataset(path).delete("key % 100 = 10")
        left = [[k for k in keys if k % 100 != 10] for keys in left]
