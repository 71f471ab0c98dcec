"""A table with a full-text index, changed in random turns: the index has the terms of each row that it covers."""

from __future__ import annotations

import shutil
import tempfile
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import lance_duck as ld
from lance_duck.index.catalog import catalog
from lance_duck.index.inverted.partition import InvertedPartition
from lance_duck.index.names import Follower
from lance_duck.index.search import open_index

OPTIONS = {"fsync": "false"}
WORDS = ("lake", "duck", "the", "swims", "reed")
texts = st.one_of(st.none(), st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join))
steps, rests = st.integers(2, 4), st.integers(0, 3)


class InvertedLife(RuleBasedStateMachine):
    """The model is a dict from key to text."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="inverted-life-")
        self.uri = f"{self.folder}/t.lance"
        self.rows: dict[int, str | None] = {}
        self.stable = False

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @property
    def dataset(self) -> ld.LanceDataset:
        return ld.dataset(self.uri, storage_options=OPTIONS)

    @initialize(values=st.lists(texts, min_size=4, max_size=10), stable=st.booleans(), version=st.integers(1, 3))
    def create(self, values: list[str | None], stable: bool, version: int) -> None:
        table = self.new_rows(values)
        options: dict[str, Any] = {"enable_stable_row_ids": True} if stable else {}
        self.stable = stable
        ld.write_dataset(table, self.uri, max_rows_per_file=3, storage_options=OPTIONS, **options)
        self.dataset.create_scalar_index(
            "s", "INVERTED", with_position=True, stem=False, remove_stop_words=False, format_version=version
        )

    @rule(values=st.lists(texts, min_size=1, max_size=5))
    def append(self, values: list[str | None]) -> None:
        self.dataset.insert(self.new_rows(values))

    @rule(step=steps, rest=rests)
    def delete(self, step: int, rest: int) -> None:
        self.dataset.delete(f"key % {step} = {rest}")
        self.rows = {key: text for key, text in self.rows.items() if key % step != rest}

    @rule(step=steps, rest=rests, text=texts.filter(bool))
    def update(self, step: int, rest: int, text: str) -> None:
        self.dataset.update({"s": f"'{text}'"}, where=f"key % {step} = {rest}")
        self.rows |= {key: text for key in self.rows if key % step == rest}

    @rule(step=steps, rest=rests, text=texts)
    def merge(self, step: int, rest: int, text: str | None) -> None:
        keys = [key for key in self.rows if key % step == rest]
        source = pa.table({"key": pa.array(keys, pa.int64()), "s": pa.array([text] * len(keys), pa.string())})
        self.dataset.merge_insert("key").when_matched_update_all().execute(source)
        self.rows |= dict.fromkeys(keys, text)

    @rule(count=st.sampled_from([None, 0, 1, 2, 9]))
    def optimize(self, count: int | None) -> None:
        self.dataset.optimize.optimize_indices(num_indices_to_merge=count)
        assert self.dataset.index_statistics("s_idx")["num_unindexed_rows"] == 0

    @rule()
    def retrain(self) -> None:
        self.dataset.optimize.optimize_indices(retrain=True)

    @rule(size=st.sampled_from([4, 100]), later=st.booleans())
    def compact(self, size: int, later: bool) -> None:
        self.dataset.optimize.compact_files(target_rows_per_fragment=size, defer_index_remap=later and not self.stable)

    @invariant()
    def the_index_has_the_terms_of_the_rows_that_it_covers(self) -> None:
        snapshot = self.dataset.handle.snapshot
        table = self.dataset.to_table(with_row_address=True)
        keys = dict(zip(table["_rowaddr"].to_pylist(), table["key"].to_pylist(), strict=True))
        assert dict(zip(table["key"].to_pylist(), table["s"].to_pylist(), strict=True)) == self.rows
        (index,) = catalog(snapshot).named("s_idx")
        assert not index.ignored
        covered, words = set(), {}
        for segment in index.segments:
            covered |= set(segment.fragments.tolist())
            opened: Any = open_index(snapshot, segment)
            for partition in opened.partitions:
                words |= words_by_key(partition, Follower(snapshot, segment), keys)
        expected = {key: (self.rows[key] or "").split() for address, key in keys.items() if address >> 32 in covered}
        assert words == {key: row for key, row in expected.items() if row}
        self.dataset.validate()

    def new_rows(self, values: list[str | None]) -> pa.Table:
        first = max(self.rows, default=-1) + 1
        added = dict(enumerate(values, first))
        self.rows |= added
        return pa.table({"key": pa.array(added, pa.int64()), "s": pa.array(added.values(), pa.string())})


def words_by_key(partition: InvertedPartition, follower: Follower, keys: dict[int, int]) -> dict[int, list[str]]:
    """Return the words of the living rows of a partition, in order; no row is in it twice."""
    contents = partition.contents()
    addresses, lives = follower.follow(contents.documents.row_ids)
    assert len(set(addresses[lives].tolist())) == np.count_nonzero(lives)
    assert contents.positions is not None
    found: list[list[tuple[int, str]]] = [[] for _ in lives]
    ends = np.cumsum(contents.frequencies, dtype=np.int64).tolist()
    for term, start, stop in zip(contents.terms.to_pylist(), contents.bounds, contents.bounds[1:], strict=False):
        for place in range(start, stop):
            positions = contents.positions[ends[place] - int(contents.frequencies[place]) : ends[place]]
            found[contents.document_ids[place]] += [(p, term.decode()) for p in positions.tolist()]
    return {
        keys[address]: [word for _, word in sorted(words)]
        for address, living, words in zip(addresses.tolist(), lives, found, strict=True)
        if living
    }


def test_a_full_text_index_matches_its_rows_after_every_change() -> None:
    run_state_machine_as_test(
        InvertedLife, settings=settings(max_examples=12, stateful_step_count=8, deadline=None, derandomize=True)
    )
