"""A table with strings, changed at random by pylance and this package: index answers match the rows."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import lance_duck as ld
from lance_duck.query import FullTextOperator, MatchQuery, PhraseQuery

OPTIONS = {"fsync": "false"}
WORDS = ("lake", "duck", "reed", "swims")
OPEN: dict[str, Callable[[str], Any]] = {
    "ours": lambda uri: ld.dataset(uri, storage_options=OPTIONS),
    "theirs": lance.dataset,
}
texts = st.one_of(st.none(), st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join))
full_texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
who, steps, rests = st.sampled_from(list(OPEN)), st.integers(2, 4), st.integers(0, 3)


class TextLife(RuleBasedStateMachine):
    """The model is a dict from key to text."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="text-life-")
        self.uri = f"{self.folder}/t.lance"
        self.rows: dict[int, str | None] = {}
        self.stable = False

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def by(self, writer: str) -> Any:
        return OPEN[writer](self.uri)

    @initialize(values=st.lists(texts, min_size=4, max_size=10), stable=st.booleans(), full_text=who, grams=who)
    def create(self, values: list[str | None], stable: bool, full_text: str, grams: str) -> None:
        self.stable = stable
        options: dict[str, Any] = {"enable_stable_row_ids": True} if stable else {}
        ld.write_dataset(self.new_rows(values), self.uri, max_rows_per_file=3, storage_options=OPTIONS, **options)
        self.by(full_text).create_scalar_index("s", "INVERTED", "words", with_position=True, stem=False)
        self.by(grams).create_scalar_index("s", "NGRAM", "grams")

    @rule(writer=who, values=st.lists(texts, min_size=1, max_size=5))
    def append(self, writer: str, values: list[str | None]) -> None:
        self.by(writer).insert(self.new_rows(values))

    @rule(writer=who, step=steps, rest=rests)
    def delete(self, writer: str, step: int, rest: int) -> None:
        self.by(writer).delete(f"key % {step} = {rest}")
        self.rows = {key: text for key, text in self.rows.items() if key % step != rest}

    @rule(writer=who, step=steps, rest=rests, text=full_texts)
    def update(self, writer: str, step: int, rest: int, text: str) -> None:
        self.by(writer).update({"s": f"'{text}'"}, where=f"key % {step} = {rest}")
        self.rows |= {key: text for key in self.rows if key % step == rest}

    @rule(writer=who, count=st.sampled_from([0, 1, 2, 9]))
    def optimize(self, writer: str, count: int) -> None:
        before = self.answers()
        self.by(writer).optimize.optimize_indices(num_indices_to_merge=count)
        assert self.answers() == before

    @rule(writer=who, size=st.sampled_from([4, 100]), later=st.booleans())
    def compact(self, writer: str, size: int, later: bool) -> None:
        later = later and not self.stable
        self.by(writer).optimize.compact_files(target_rows_per_fragment=size, defer_index_remap=later)

    @invariant()
    def answers_are_what_the_rows_say(self) -> None:
        answers = self.answers()
        for word in WORDS:
            assert answers[word].keys() == self.keys(lambda words, word=word: word in words)
            filtered = self.found(word, filter="key % 2 = 0")
            assert filtered == {key: score for key, score in answers[word].items() if key % 2 == 0}
        both = MatchQuery("lake duck", "s", operator=FullTextOperator.AND)
        assert self.found(both).keys() == self.keys(lambda words: {"lake", "duck"} <= set(words))
        assert self.found("lake duck").keys() == self.keys(lambda words: bool({"lake", "duck"} & set(words)))
        pairs = {key for key, text in self.rows.items() if text and "lake duck" in text}
        assert self.found(PhraseQuery("lake duck", "s")).keys() == pairs
        table = self.by("ours").to_table(columns=["key"], filter="contains(s, 'ake d')")
        assert sorted(table["key"].to_pylist()) == sorted(
            k for k, text in self.rows.items() if text and "ake d" in text
        )

    def answers(self) -> dict[str, dict[int, float]]:
        """Return the scores of the rows with each word."""
        return {word: self.found(word) for word in WORDS}

    def found(self, query: Any, **options: Any) -> dict[int, float]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            scanner = self.by("ours").scanner(columns=["key", "_score"], full_text_query=query, **options)
            table = scanner.to_table()
            assert scanner.count_rows() == len(table)
        keys = table["key"].to_pylist()
        assert len(set(keys)) == len(keys)
        return dict(zip(keys, table["_score"].to_pylist(), strict=True))

    def keys(self, holds: Callable[[list[str]], bool]) -> set[int]:
        return {key for key, text in self.rows.items() if holds((text or "").split())}

    def new_rows(self, values: list[str | None]) -> pa.Table:
        first = max(self.rows, default=-1) + 1
        added = dict(enumerate(values, first))
        self.rows |= added
        return pa.table({"key": pa.array(added, pa.int64()), "s": pa.array(added.values(), pa.string())})


def test_full_text_searches_match_the_rows_after_changes_by_either_library() -> None:
    run_state_machine_as_test(
        TextLife, settings=settings(max_examples=12, stateful_step_count=8, deadline=None, derandomize=True)
    )
