"""Full-text queries of tables whose index pylance built: once it is optimized, scores are pylance's to the last bit."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lance
import lance.query as theirs
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck import query as ours

WORDS = [f"w{chr(97 + i % 26)}{i}" for i in range(60)]
FORMS: list[dict[str, Any]] = [
    {"with_position": True},
    {"with_position": True, "format_version": 1},
    {"block_size": 256},
]


def texts(count: int, rng: random.Random) -> list[str | None]:
    weights = [1 / (i + 1) for i in range(len(WORDS))]
    return [
        None if rng.random() < 0.05 else " ".join(rng.choices(WORDS, weights, k=rng.randrange(14)))
        for _ in range(count)
    ]


def queries(rng: random.Random, *, phrases: bool) -> Sequence[tuple[Any, Any]]:
    """Return queries as we write them, and as pylance does."""
    pairs: list[tuple[Any, Any]] = []
    for number in range(8):
        words = " ".join(rng.choices(WORDS[:20], k=1 + number % 3))
        every = ours.FullTextOperator.AND, theirs.FullTextOperator.AND
        pairs.append((ours.MatchQuery(words, "s"), theirs.MatchQuery(words, "s")))
        pairs.append((ours.MatchQuery(words, "s", operator=every[0]), theirs.MatchQuery(words, "s", operator=every[1])))
        if phrases:
            pairs.append((ours.PhraseQuery(words, "s", slop=1), theirs.PhraseQuery(words, "s", slop=1)))
        pairs.append((pairs[-1][0] & pairs[0][0], pairs[-1][1] & pairs[0][1]))
        pairs.append((pairs[-1][0] | pairs[0][0], pairs[-1][1] | pairs[0][1]))
        four = [pairs[i % len(pairs)] for i in range(number, number + 4)]
        pairs.append((boolean(ours, [mine for mine, _ in four]), boolean(theirs, [its for _, its in four])))
        pairs.append((ours.BoostQuery(pairs[-1][0], pairs[0][0]), theirs.BoostQuery(pairs[-1][1], pairs[0][1])))
    return pairs


def boolean(module: Any, asked: list[Any]) -> Any:
    must, should = module.Occur.MUST, module.Occur.SHOULD
    return module.BooleanQuery(list(zip((should, must, should, must), asked, strict=True)))


def scores(dataset: Any, query: Any) -> dict[int, float]:
    table = dataset.to_table(full_text_query=query, columns=["id", "_score"])
    return dict(zip(table["id"].to_pylist(), table["_score"].to_pylist(), strict=True))


@pytest.mark.parametrize("by_id", [False, True], ids=["addresses", "row ids"])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_scores_before_optimize_equal_scores_after_optimize(tmp_path: Path, form: dict[str, Any], by_id: bool) -> None:
    rng = random.Random(str((form, by_id)))
    place = str(tmp_path / "t.lance")
    rows = pa.table({"id": range(900), "s": texts(900, rng)})
    table = lance.write_dataset(rows, place, max_rows_per_file=300, enable_stable_row_ids=by_id)
    table.create_scalar_index("s", "INVERTED", stem=False, remove_stop_words=False, **form)
    table.insert(pa.table({"id": range(900, 1200), "s": texts(300, rng)}))
    table.delete("id % 7 = 3")
    table.update({"s": "'wa0 wb1 wc2'"}, where="id % 11 = 5")
    pairs = queries(rng, phrases="with_position" in form)
    before = [scores(ld.dataset(place), mine) for mine, _ in pairs]
    table.optimize.optimize_indices(num_indices_to_merge=1)
    after = [scores(ld.dataset(place), mine) for mine, _ in pairs]
    assert after == [scores(table, its) for _, its in pairs]
    assert before == after
    dataset = ld.dataset(place)
    for mine, _ in pairs[:12]:
        for condition in (None, "id % 3 = 1"):
            every = dataset.to_table(full_text_query=mine, columns=["id", "_score"], filter=condition)
            for k in (1, 10, 200):
                best = dataset.to_table(full_text_query=mine, columns=["id", "_score"], filter=condition, limit=k)
                assert best.equals(every.slice(0, k))
    assert any(len(each) > 100 for each in after)


@pytest.mark.parametrize("every", [False, True], ids=["or", "and"])
def test_variant_scores_are_added_per_word_before_words_are_combined(tmp_path: Path, every: bool) -> None:
    rng = random.Random(5)
    words = ["moon", "tree", "free", "cat", "cut", "fox"]
    rows = pa.table({"id": range(400), "s": [" ".join(rng.choices(words, k=rng.randrange(20))) for _ in range(400)]})
    place = str(tmp_path / "t.lance")
    table = lance.write_dataset(rows, place)
    table.create_scalar_index("s", "INVERTED", stem=False, remove_stop_words=False)
    dataset = ld.dataset(place)
    for query in ("moon tree", "fox cat tree", "tree cat moon fox"):
        mine, its = (
            module.MatchQuery(
                query, "s", fuzziness=1, operator=module.FullTextOperator.AND if every else module.FullTextOperator.OR
            )
            for module in (ours, theirs)
        )
        found = scores(dataset, mine)
        assert found == scores(table, its)
        best = dataset.to_table(full_text_query=mine, columns=["id", "_score"])
        for k in (1, 10, 50):
            assert dataset.to_table(full_text_query=mine, columns=["id", "_score"], limit=k).equals(best.slice(0, k))


def _filtered(tmp_path: Path) -> tuple[lance.LanceDataset, ld.LanceDataset]:
    rng = random.Random(7)
    place = str(tmp_path / "t.lance")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.sample(range(1600), 1600), pa.float32()), 4)
    table = lance.write_dataset(pa.table({"id": range(400), "S": texts(400, rng), "v": vectors}), place)
    table.create_scalar_index("S", "INVERTED", stem=False, remove_stop_words=False, with_position=True)
    return table, ld.dataset(place)


@pytest.mark.parametrize("prefilter", [True, False])
def test_vectors_are_searched_among_the_rows_that_a_query_matches(tmp_path: Path, prefilter: bool) -> None:
    theirs_, ours_ = _filtered(tmp_path)
    nearest = {"column": "v", "q": [0.0] * 4, "k": 20}
    for words in ("wa0", "wb1 wc2", "wd3 we4 wf5"):
        pairs: list[tuple[Any, Any]] = [
            (ours.MatchQuery(words, "S"), theirs.MatchQuery(words, "S")),
            (ours.MatchQuery(words, "s"), theirs.MatchQuery(words, "s")),
            (ours.PhraseQuery(words, "S", slop=2), theirs.PhraseQuery(words, "S", slop=2)),
            (
                ours.MatchQuery(words, "S") & ours.MatchQuery("wb1", "S"),
                theirs.MatchQuery(words, "S") & theirs.MatchQuery("wb1", "S"),
            ),
        ]
        for mine, its in pairs if prefilter else pairs[:2]:  # which is all that pylance does after the search
            options = {"columns": ["id", "_distance"], "nearest": nearest, "prefilter": prefilter}
            found = ours_.to_table(filter=mine, **options)
            assert found.equals(theirs_.to_table(filter=its, **options).combine_chunks())
            assert found.num_rows or not prefilter or " " in words


def test_a_score_filter_applies_after_the_search(tmp_path: Path) -> None:
    theirs_, ours_ = _filtered(tmp_path)
    for condition in ("_score > 0.9", "_score < 0.8 AND id > 30", "_score < 0.5 OR id = 3"):
        options = {"columns": ["id", "_score"], "filter": condition, "prefilter": False}
        mine, its = (each.to_table(full_text_query="wa0 wc2", **options) for each in (ours_, theirs_))
        assert mine.sort_by("id").equals(its.combine_chunks().sort_by("id"))


@pytest.mark.parametrize("words", ["dog", "Dog", "dog cat", "don't", "", "!", "Straße 42", "ÉTÉ", "x"])
def test_contains_tokens_compares_words_as_written(tmp_path: Path, words: str) -> None:
    listed = ["dog", "Dog-cat dog", None, "", "I don't", "42 Straße", "été ÉTÉ", "x_y x1", "cat, dog!"]
    table = pa.table({"id": range(9), "s": listed, "l": pa.array(listed, pa.large_string())})
    table = table.append_column("xs", pa.array([[each, "x"] if i % 2 else [each] for i, each in enumerate(listed)]))
    place = str(tmp_path / "t.lance")
    theirs_ = lance.write_dataset(table, place)
    text = words.replace("'", "''")
    for indexed in (False, True):
        if indexed:
            theirs_.create_scalar_index("s", "INVERTED", lower_case=False, stem=False, remove_stop_words=False)
            ld.dataset(place).create_scalar_index("l", "NGRAM")
        for column in ("s", "l", "xs"):
            for form in ("{}", "NOT {}", "{} AND id > 3", "{} OR id = 2", "{} IS NULL"):
                condition = form.format(f"contains_tokens({column}, '{text}')")
                its = theirs_.to_table(columns=["id"], filter=condition).column("id").to_pylist()
                assert ld.dataset(place).to_table(columns=["id"], filter=condition).column("id").to_pylist() == its
