"""BM25 scores equal a manual computation whether an index covers all, some or none of the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import IndexWarning
from lance_duck.query import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    FullTextOperator,
    FullTextQuery,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
    PrefixQuery,
)
from tests.support.text_model import Model, in_order

A = ["alfa bravo", "bravo golf", "alfa alfa delta", "golf", "alfa bravo golf", None, "", "kilo kilt kiln"]
B = ["x alfa", "y bravo", None, "alfa", "q", "r", "golf alfa", "s"]
MODEL = Model({"a": dict(enumerate(A)), "b": dict(enumerate(B))})
AND = FullTextOperator.AND
ALFA, BRAVO, GOLF = MatchQuery("alfa", "a"), MatchQuery("bravo", "a"), MatchQuery("golf", "b")

QUERIES: list[FullTextQuery] = [
    ALFA,
    MatchQuery("alfa bravo alfa", "a", boost=1.5),
    MatchQuery("alfa bravo", "a", operator=AND),
    MatchQuery("alfa bravo nowhere", "a", operator=AND),
    MatchQuery("nowhere", "a"),
    MatchQuery("", "a"),
    MatchQuery("alfa", "a", boost=0),
    MatchQuery("kilp", "a", fuzziness=1),
    MatchQuery("kilp alfo", "a", fuzziness=1, max_expansions=2),
    MatchQuery("kilp alfo", "a", fuzziness=1, operator=AND),
    MatchQuery("milo", "a", fuzziness=1, prefix_length=1),
    MatchQuery("bravi go", "a", fuzziness=None),
    PrefixQuery("kil al", "a"),
    PrefixQuery("kil", "a", max_expansions=2),
    PrefixQuery("al br", "a", operator=AND),
    PhraseQuery("alfa bravo", "a"),
    PhraseQuery("bravo alfa", "a"),
    PhraseQuery("alfa golf", "a", slop=1),
    PhraseQuery("alfa alfa delta", "a"),
    MultiMatchQuery("alfa golf", ["a", "b"], boosts=[1, 3]),
    CombinedFieldsQuery("alfa golf alfa", ["a", "b"], boosts=[1.5, 2]),
    CombinedFieldsQuery("alfa bravo", ["a", "b"], operator=AND),
    BoostQuery(ALFA, BRAVO, negative_boost=3),
    ALFA & BRAVO,
    ALFA | GOLF,
    BooleanQuery([(Occur.SHOULD, GOLF), (Occur.MUST, ALFA), (Occur.MUST_NOT, MatchQuery("delta", "a"))]),
    BooleanQuery([(Occur.SHOULD, ALFA | GOLF), (Occur.MUST_NOT, BRAVO)]),
]


@pytest.fixture(scope="module", params=["none", "all", "some", "several", "none by id", "some by id"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    rows = pa.table({"id": range(len(A)), "a": A, "b": pa.array(B, pa.large_string())})
    place = tmp_path_factory.mktemp("text") / "t.lance"
    coverage, _, by_id = request.param.partition(" ")
    first = 4 if coverage in ("some", "several") else len(A)
    table = ld.write_dataset(rows.slice(0, first), place, max_rows_per_file=3, enable_stable_row_ids=bool(by_id))
    if coverage != "none":
        table.create_scalar_index("a", "INVERTED", with_position=coverage == "some")
        table.create_scalar_index("b", "INVERTED", with_position=True)
    if first < len(A):
        table.insert(rows.slice(first, 2))
        if coverage == "several":
            table.optimize.optimize_indices(num_indices_to_merge=0)
        table.insert(rows.slice(first + 2))
    return table


def pairs(table: pa.Table) -> list[tuple[int, bytes]]:
    return list(zip(table["id"].to_pylist(), [score.tobytes() for score in table["_score"].to_numpy()], strict=True))


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_scores_equal_the_reference_model_exactly(table: ld.LanceDataset, query: FullTextQuery) -> None:
    expected = MODEL.scores(query)
    result = table.to_table(full_text_query=query, columns=["id", "_score"])
    assert pairs(result) == [(row, expected[row].tobytes()) for row in in_order(expected)]
    assert table.count_rows(full_text_query=query) == len(expected)


def test_scores_equal_the_bm25_formula(table: ld.LanceDataset) -> None:
    # Six documents of 14 words; three of them have "alfa".
    idf = np.log((6 - 3 + 0.5) / (3 + 0.5) + 1)
    norm = 1.2 * (0.25 + 0.75 * 3 / (14 / 6))
    best = table.to_table(full_text_query=ALFA, limit=1).to_pylist()
    assert best == [{"id": 2, "a": "alfa alfa delta", "b": None, "_score": pytest.approx(idf * 2.2 * 2 / (2 + norm))}]


@pytest.mark.parametrize("condition", ["id > 0", "id in (2, 4)", "id = 7"])
def test_a_prefilter_does_not_change_scores(table: ld.LanceDataset, condition: str) -> None:
    every = pairs(table.to_table(full_text_query=ALFA, columns=["id", "_score"]))
    passing = set(table.to_table(["id"], condition)["id"].to_pylist())
    filtered = table.to_table(full_text_query=ALFA, columns=["id", "_score"], filter=condition, limit=2)
    assert pairs(filtered) == [pair for pair in every if pair[0] in passing][:2]
    late = table.to_table(full_text_query=ALFA, columns=["id", "_score"], filter=condition, limit=2, prefilter=False)
    assert pairs(late) == [pair for pair in every[:2] if pair[0] in passing]


def test_limit_and_offset_apply_to_the_ranked_result(table: ld.LanceDataset) -> None:
    query = MatchQuery("alfa golf", "a")
    every = table.to_table(full_text_query=query)
    for offset, limit in ((0, 0), (0, 2), (1, 2), (2, None), (9, 1)):
        assert table.to_table(full_text_query=query, limit=limit, offset=offset).equals(every.slice(offset, limit))


def test_rows_with_equal_scores_are_ordered_by_row_id(tmp_path: Path) -> None:
    table = ld.write_dataset(pa.table({"s": ["tango"] * 9, "id": range(9)}), tmp_path / "t", max_rows_per_file=2)
    for k in range(1, 10):
        assert table.search("tango", k=k, columns=["id"])["id"].to_pylist() == list(range(k))


def test_deleted_rows_are_not_found_and_new_rows_are(tmp_path: Path) -> None:
    rows = pa.table({"s": ["alfa", "alfa bravo", "bravo", "golf"], "id": range(4)})
    table = ld.write_dataset(rows, tmp_path / "t", enable_stable_row_ids=True)
    assert table.count_rows(full_text_query="alfa") == 2
    table.delete("id = 0")
    table.update({"s": "'alfa alfa'"}, where="id = 3")
    expected = Model({"s": {1: "alfa bravo", 2: "bravo", 3: "alfa alfa"}}).scores(MatchQuery("alfa", "s"))
    result = table.to_table(full_text_query="alfa", columns=["id", "_score"])
    assert pairs(result) == [(row, expected[row].tobytes()) for row in in_order(expected)]


def test_fragments_limit_rows_but_not_statistics(table: ld.LanceDataset) -> None:
    every = pairs(table.to_table(full_text_query=ALFA, columns=["id", "_score"]))
    some = table.to_table(full_text_query=ALFA, columns=["id", "_score"], fragments=table.get_fragments()[1:2])
    ids = table.get_fragments()[1].to_table(columns=["id"])["id"].to_pylist()
    assert pairs(some) == [pair for pair in every if pair[0] in ids]
    one = table.get_fragments()[1].scanner(full_text_query=ALFA, columns=["id", "_score"]).to_table()
    assert pairs(one) == pairs(some)


def test_the_score_follows_the_columns_and_precedes_hidden_ones(table: ld.LanceDataset) -> None:
    def names(**options: Any) -> list[str]:
        return list(table.to_table(full_text_query=ALFA, limit=1, **options).schema.names)

    assert names() == ["id", "a", "b", "_score"]
    assert names(with_row_id=True, with_row_address=True) == ["id", "a", "b", "_score", "_rowid", "_rowaddr"]
    assert names(columns=["_score", "id"]) == ["_score", "id"]
    assert names(columns=["id"], disable_scoring_autoprojection=True) == ["id"]
    assert names(columns={"twice": "_score * 2", "id": "id"}) == ["twice", "id", "_score"]
    assert table.scanner(full_text_query=ALFA).projected_schema.field("_score") == pa.field("_score", pa.float32())


def test_expressions_and_orderings_may_use_the_score(table: ld.LanceDataset) -> None:
    columns = {"sum": "_score * 2 + id", "_score": "_score", "id": "id"}
    result = table.to_table(full_text_query=ALFA, columns=columns, order_by=["_score"])
    scores = result["_score"].to_numpy()
    assert len(scores) == 3
    assert (np.sort(scores) == scores).all()
    np.testing.assert_allclose(result["sum"].to_numpy(), scores * 2 + result["id"].to_numpy(), rtol=1e-6)
    by_id = table.to_table(full_text_query=ALFA, columns=["id"], order_by=["id"], limit=2)
    assert by_id["id"].to_pylist() == [0, 2]


def test_an_unindexed_column_uses_the_default_or_named_analyser(tmp_path: Path) -> None:
    table = ld.write_dataset(pa.table({"s": ["The Running Ducks", "duck"], "id": [0, 1]}), tmp_path / "t")
    assert table.search("DUCK", columns=["id"])["id"].to_pylist() == [1, 0]
    assert table.search("the").num_rows == 0
    plain = {"lower_case": False, "stem": False, "remove_stop_words": False}
    query = {"query": "The", "columns": ["s"], "analyzer": plain}
    assert table.search(query, columns=["id"])["id"].to_pylist() == [0]
    assert table.search({**query, "query": "duck"}, columns=["id"])["id"].to_pylist() == [1]


def test_prefix_queries_match_stems_and_whole_words(tmp_path: Path) -> None:
    table = ld.write_dataset(pa.table({"s": ["running", "runner up", "ran", "sprint"]}), tmp_path / "t")
    assert sorted(table.search(PrefixQuery("Run", "s"))["s"].to_pylist()) == ["runner up", "running"]
    assert table.search(PrefixQuery("running", "s"))["s"].to_pylist() == ["running"]


def test_lists_of_strings_form_one_document(tmp_path: Path) -> None:
    rows = pa.table({"l": [["alfa bravo", "golf"], ["golf"], [], None], "id": range(4)})
    nested = pa.StructArray.from_arrays([pa.array(["alfa", "bravo", None, ""])], ["t"])
    table = ld.write_dataset(rows.append_column("st", nested), tmp_path / "t")
    assert table.search("bravo", column="l", columns=["id"])["id"].to_pylist() == [0]
    assert table.to_table(full_text_query=PhraseQuery("bravo golf", "l"), columns=["id"])["id"].to_pylist() == [0]
    assert table.search("bravo", column="st.t", columns=["id"])["id"].to_pylist() == [1]


def test_the_plan_shows_how_columns_are_searched(tmp_path: Path) -> None:
    rows = pa.table({"id": range(len(A)), "a": A, "b": B})
    table = ld.write_dataset(rows, tmp_path / "t", max_rows_per_file=3)
    table.create_scalar_index("b", "INVERTED")
    scanner = table.scanner(full_text_query=ALFA | GOLF, filter="id > 1", limit=3)
    plan = scanner.explain_plan()
    for text in (
        "LanceFullText:",
        "SHOULD: MatchQuery 'alfa' in a",
        "column b: analyser simple, English",
        "without an index: no index",
        "0 through the index, 3 searched flat (8 rows)",
        "InvertedIndexQuery: b_idx",
        "3 through the index, 0 searched flat (0 rows)",
        "filter: id > 1",
        "limit: 3",
    ):
        assert text in plan
    assert "a: 8 rows of 3 fragments were searched flat" in scanner.analyze_plan()


def test_a_broken_segment_warns_once_and_is_skipped(tmp_path: Path) -> None:
    rows = pa.table({"id": range(len(A)), "a": A})
    table = ld.write_dataset(rows, tmp_path / "t")
    expected = table.to_table(full_text_query="alfa bravo")
    table.create_scalar_index("a", "INVERTED")
    (postings,) = tmp_path.glob("t/_indices/*/part_0_invert.lance")
    data = bytearray(postings.read_bytes())
    data[: len(data) // 2] = bytes(len(data) // 2)
    postings.write_bytes(data)
    with pytest.warns(IndexWarning, match="its rows are scanned") as warnings:
        assert ld.dataset(tmp_path / "t").to_table(full_text_query="alfa bravo").equals(expected)
    assert len(warnings) == 1
    scanner = ld.dataset(tmp_path / "t").scanner(full_text_query="alfa bravo")
    assert scanner.to_table().equals(expected)


def test_an_index_with_another_analyser_is_not_used(tmp_path: Path) -> None:
    table = ld.write_dataset(pa.table({"s": ["The Ducks", "duck"]}), tmp_path / "t")
    table.create_scalar_index("s", "INVERTED", stem=False)
    assert table.search("duck")["s"].to_pylist() == ["duck"]
    query = {"query": "duck", "columns": ["s"], "analyzer": {"stem": True}}
    assert table.search(query)["s"].to_pylist() == ["The Ducks", "duck"]
    plan = table.scanner(full_text_query=query).explain_plan()
    assert "index 's_idx' uses other full-text parameters than the query" in plan
    assert "1 through the index" not in plan


def test_a_fast_search_skips_uncovered_rows(tmp_path: Path) -> None:
    table = ld.write_dataset(pa.table({"s": ["alfa", "bravo"]}), tmp_path / "t")
    table.create_scalar_index("s", "INVERTED")
    expected = table.search("alfa")
    table.insert(pa.table({"s": ["alfa alfa"]}))
    assert table.search("alfa").num_rows == 2
    assert table.search("alfa", fast_search=True).equals(expected)


def test_ngrams_of_a_query_are_alternatives_that_count_once(tmp_path: Path) -> None:
    table = ld.write_dataset(pa.table({"s": ["lake house", "duck", "the lak", "zooo"]}), tmp_path / "t")
    for _ in range(2):
        both = table.search(MatchQuery("lake", "s", operator=AND, analyzer={"base_tokenizer": "ngram"}))
        assert both["s"].to_pylist() == ["lake house", "the lak"]
        texts = ("ooo", "oooo")  # the second has the same three letters twice
        once, twice = (table.search(MatchQuery(text, "s", analyzer={"base_tokenizer": "ngram"})) for text in texts)
        assert once.num_rows == 1
        assert once.equals(twice)
        table.create_scalar_index("s", "INVERTED", base_tokenizer="ngram")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("stable", [False, True])
def test_a_segment_with_only_deleted_rows_has_no_scores(tmp_path: Path, stable: bool) -> None:
    rows = pa.table({"n": range(3), "s": ["lake", None, "lake lake"]})
    dataset = ld.write_dataset(rows, tmp_path / "t.lance", enable_stable_row_ids=stable)
    dataset.create_scalar_index("s", "INVERTED")
    dataset.delete("s IS NOT NULL")
    assert dataset.to_table(full_text_query="lake").num_rows == 0
    assert dataset.search("lake", k=1).num_rows == 0
    dataset.insert(pa.table({"n": [3], "s": ["lake"]}))
    assert dataset.to_table(columns=["n"], full_text_query="lake")["n"].to_pylist() == [3]


@pytest.mark.parametrize(
    "query", [MatchQuery("wx", "s", fuzziness=1, max_expansions=2), PrefixQuery("w", "s", max_expansions=2)]
)
def test_terms_of_deleted_rows_do_not_count_as_expansions(tmp_path: Path, query: FullTextQuery) -> None:
    words = [f"w{letter}" for letter in "abcdefghijklmnop"]
    rows = pa.table({"id": range(16), "s": words})
    dataset = ld.write_dataset(rows, tmp_path / "t.lance", enable_stable_row_ids=True, max_rows_per_file=4)
    dataset.create_scalar_index("s", "INVERTED", stem=False)
    dataset.delete("id < 13")
    found = dataset.to_table(columns=["id", "_score"], full_text_query=query)
    assert sorted(found["id"].to_pylist()) == [13, 14]
    dataset.optimize.optimize_indices(retrain=True)
    assert dataset.to_table(columns=["id", "_score"], full_text_query=query).equals(found)


@pytest.mark.parametrize("stable", [True, False])
@pytest.mark.parametrize("query", ['"lake duck"', "lake", "lake~1"])
def test_rows_without_terms_are_searched_after_all_others_are_deleted(query: str, stable: bool, tmp_path: Path) -> None:
    rows = pa.table({"s": pa.array([None, "lake lake duck", None, ""], pa.string())})
    dataset = ld.write_dataset(rows, tmp_path / "t.lance", enable_stable_row_ids=stable)
    dataset.create_scalar_index("s", "INVERTED", with_position=True)
    dataset.delete("s = 'lake lake duck'")
    assert dataset.to_table(full_text_query=query).num_rows == 0


@pytest.mark.parametrize("form", [{"base_tokenizer": "ngram"}, {"format_version": 1}, {}])
@pytest.mark.parametrize("stable", [True, False])
def test_a_phrase_of_a_deleted_row_matches_no_other_row(form: dict[str, Any], stable: bool, tmp_path: Path) -> None:
    rows = pa.table({"id": [0, 1, 2], "s": ["lakes of ducks", "of lakes", "a lake of lakes"]})
    dataset = ld.write_dataset(rows, tmp_path / "t.lance", enable_stable_row_ids=stable)
    dataset.create_scalar_index("s", "INVERTED", with_position=True, stem=False, remove_stop_words=False, **form)
    dataset.delete("id = 1")
    assert dataset.to_table(columns=["id"], full_text_query=PhraseQuery("of lakes", "s"))["id"].to_pylist() == [2]


@pytest.mark.parametrize("state", ["untrained", "emptied", "broken"])
@pytest.mark.filterwarnings("ignore::lance_duck.errors.IndexWarning")
def test_an_unused_index_still_determines_the_analyser(state: str, tmp_path: Path) -> None:
    rows, place = pa.table({"id": [0, 1, 2], "s": ["a duck", "ducks", "Duck the"]}), tmp_path / "t.lance"
    dataset = ld.write_dataset(rows, place, storage_options={"checksums": "false"})
    dataset.create_scalar_index("s", "INVERTED", stem=False, lower_case=False, train=state != "untrained")
    if state == "emptied":
        dataset.delete("true")
        dataset.insert(rows)
    if state == "broken":
        next(place.glob("_indices/*/part_0_invert.lance")).unlink()
    found = [ld.dataset(place).to_table(columns=["id"], full_text_query=word) for word in ("duck", "ducks", "the")]
    assert [each["id"].to_pylist() for each in found] == [[0], [1], []]


def test_stop_words_follow_an_index_without_live_rows(tmp_path: Path) -> None:
    rows = pa.table({"id": [0, 1], "s": ["duck the", "lake"]})
    dataset = ld.write_dataset(rows, tmp_path / "t.lance")
    dataset.create_scalar_index("s", "INVERTED", custom_stop_words=["lake"])
    dataset.delete("true")
    dataset.insert(rows)
    found = [dataset.to_table(columns=["id"], full_text_query=word)["id"].to_pylist() for word in ("lake", "the")]
    assert found == [[], [0]]


def test_rows_dropped_by_a_deferred_compaction_do_not_affect_scores(tmp_path: Path) -> None:
    texts = [f"duck{' lake' * (i % 5)}" if i % 3 else "moon" for i in range(40)]
    rows = pa.table({"id": range(40), "s": texts})
    dataset = ld.write_dataset(rows, tmp_path / "t.lance", max_rows_per_file=10)
    dataset.create_scalar_index("s", "INVERTED")
    dataset.delete("id % 4 = 1")
    dataset.optimize.compact_files(defer_index_remap=True)
    dataset.insert(pa.table({"id": [40], "s": ["goose"]}))
    before = dataset.to_table(full_text_query="duck lake")
    dataset.optimize.optimize_indices(num_indices_to_merge=9)
    assert dataset.to_table(full_text_query="duck lake").equals(before)


@pytest.mark.parametrize("limits", [{}, {"limit": 1}, {"limit": 2, "offset": 1}, {"offset": 3}, {"limit": 0}])
@pytest.mark.parametrize("options", [{}, {"filter": "id < 3"}, {"filter": "id < 3", "prefilter": False}])
def test_rows_are_counted_as_they_are_returned(
    table: ld.LanceDataset, options: dict[str, Any], limits: dict[str, int]
) -> None:
    for query in QUERIES:
        scanner = table.scanner(full_text_query=query, columns=["id"], **options, **limits)
        assert scanner.count_rows() == len(scanner.to_table()), query
