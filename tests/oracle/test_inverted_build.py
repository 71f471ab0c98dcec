"""Full-text indexes built by this package: pylance finds the same rows with bit-identical scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from oracle.cases import Cases
from oracle.full_text import OPTIONS, all_scores, contents, ours, rows, texts

import lance_duck as ld
from lance_duck.errors import IndexWarning, InvalidInputError, NotIndexableError, UnsupportedError, WrongTypeError
from lance_duck.text.parameters import LANGUAGES

CASE_KIND = "life cycle"
ROWS = 1000

PLAIN: dict[str, Any] = {"stem": False, "remove_stop_words": False}
SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "format 1": {"format_version": 1, "with_position": True},
    "format 2 with positions": {"with_position": True},
    "format 3": {"format_version": "v3"},
    "blocks of 256": {"block_size": 256, "with_position": True},
    "plain": PLAIN,
    "whitespace": {"base_tokenizer": "whitespace", "lower_case": False, "ascii_folding": False},
    "raw": {"base_tokenizer": "raw", "max_token_length": None},
    "ngrams": {"base_tokenizer": "ngram", "min_ngram_length": 2, "max_ngram_length": 3},
    "own stop words": {"custom_stop_words": ["lake", "duck"], "max_token_length": 10},
}


def twins(folder: Path, settings: dict[str, Any], **options: Any) -> tuple[str, str]:
    """Return two tables of the same rows with an index of the same settings, by us and by pylance."""
    mine, theirs = str(folder / "mine.lance"), str(folder / "theirs.lance")
    for uri in (mine, theirs):
        ld.write_dataset(rows(7, 0, ROWS), uri, max_rows_per_file=400, storage_options=OPTIONS, **options)
    ours(mine).create_scalar_index("s", "INVERTED", **settings)
    lance.dataset(theirs).create_scalar_index("s", "INVERTED", num_workers=1, **settings)
    return mine, theirs


@pytest.mark.parametrize("name", list(SETTINGS))
def test_pylance_finds_the_same_rows_with_either_index(tmp_path: Path, cases: Cases, name: str) -> None:
    settings = SETTINGS[name]
    mine, theirs = twins(tmp_path, settings)
    phrases = bool(settings.get("with_position"))
    expected = all_scores(theirs, phrases=phrases)
    assert any(expected)
    assert all_scores(mine, phrases=phrases) == expected
    assert contents(mine) == contents(theirs)
    cases.count += len(expected)
    (my_details,) = ours(mine).handle.snapshot.indices
    (their_details,) = ours(theirs).handle.snapshot.indices
    assert (my_details.details, my_details.version) == (their_details.details, their_details.version)
    ours(mine).validate()
    ours(theirs).validate()


@pytest.mark.parametrize(
    "language", [*LANGUAGES[:4], *(pytest.param(n, marks=pytest.mark.slow) for n in LANGUAGES[4:])]
)
def test_every_language_is_analysed_like_in_pylance(tmp_path: Path, cases: Cases, language: str) -> None:
    mine, theirs = twins(tmp_path, {"language": language})
    assert all_scores(mine) == all_scores(theirs)
    assert contents(mine) == contents(theirs)
    cases.count += 1


def test_statistics_and_descriptions_equal_those_of_pylance(tmp_path: Path) -> None:
    uri, _ = twins(tmp_path, {"with_position": True, "language": "German"})
    mine, theirs = ours(uri), lance.dataset(uri)
    said = mine.index_statistics("s_idx")
    expected = theirs.stats.index_stats("s_idx")
    for segments in ("segments", "indices"):
        (figures,), (figures_expected,) = said[segments], expected[segments]
        assert {name: figures[name] for name in figures_expected} == figures_expected
    assert {k: v for k, v in said.items() if k not in ("segments", "indices")} == {
        k: v for k, v in expected.items() if k not in ("segments", "indices")
    }
    assert mine.describe_indices()[0].details == theirs.describe_indices()[0].details
    assert mine.describe_indices()[0].index_type == "Inverted"


@pytest.mark.parametrize(
    "type_", [pa.large_string(), pa.string_view(), pa.list_(pa.string()), pa.large_list(pa.large_string())], ids=str
)
def test_all_string_types_can_be_indexed(tmp_path: Path, type_: pa.DataType) -> None:
    values = texts(3, 200)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        lists = [None if i % 11 == 0 else values.slice(i, i % 4).to_pylist() for i in range(200)]
        column = pa.array(lists, pa.list_(pa.string())).cast(type_)
    else:
        column = values.cast(type_)
    found = []
    for maker in ("ours", "theirs"):
        uri = str(tmp_path / f"{maker}.lance")
        ld.write_dataset(pa.table({"id": range(200), "s": column}), uri, storage_options=OPTIONS)
        dataset = ours(uri) if maker == "ours" else lance.dataset(uri)
        dataset.create_scalar_index("s", "INVERTED", with_position=True)
        found.append(all_scores(uri, phrases=True))
    assert found[0] == found[1]
    assert any(found[0])


def test_a_field_of_a_struct_is_indexed(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    structs = pa.StructArray.from_arrays([texts(3, 100)], ["text"])
    ld.write_dataset(pa.table({"id": range(100), "a": structs}), uri, storage_options=OPTIONS)
    ours(uri).create_scalar_index("a.text", "fts")
    (listed,) = ours(uri).list_indices()
    assert (listed["name"], listed["fields"]) == ("a.text_idx", ["a.text"])
    found = lance.dataset(uri).to_table(full_text_query={"query": "lake", "columns": ["a.text"]}, columns=["id"])
    expected = [i for i, text in enumerate(texts(3, 100).to_pylist()) if text and "lake" in text.lower()]
    assert sorted(found["id"].to_pylist()) == expected


@pytest.mark.parametrize(
    "column",
    [pa.array(["a", "b"]).dictionary_encode(), pa.array([b"a", b"b"]), pa.array([1, 2]), pa.array([[1], [2]])],
    ids=["dictionary", "binary", "number", "list of numbers"],
)
def test_unsupported_columns_are_rejected_by_both_libraries(tmp_path: Path, column: pa.Array) -> None:
    uri = str(tmp_path / "t.lance")
    ld.write_dataset(pa.table({"s": column}), uri, storage_options=OPTIONS)
    with pytest.raises(NotIndexableError, match="index kind Inverted does not support"):
        ours(uri).create_scalar_index("s", "INVERTED")
    with pytest.raises((TypeError, OSError, ValueError, NotImplementedError)):
        lance.dataset(uri).create_scalar_index("s", "INVERTED")


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"with_positions": True}, WrongTypeError),
        ({"format_version": 4}, InvalidInputError),
        ({"format_version": 2, "block_size": 256}, InvalidInputError),
        ({"block_size": 64}, InvalidInputError),
        ({"language": "Klingon"}, InvalidInputError),
        ({"memory_limit": 0}, InvalidInputError),
        ({"memory_limit": "1"}, WrongTypeError),
        ({"base_tokenizer": "icu"}, UnsupportedError),
        ({"base_tokenizer": "jieba/default"}, UnsupportedError),
        ({"document_granularity": "word"}, InvalidInputError),
    ],
    ids=str,
)
def test_invalid_parameters_are_rejected(tmp_path: Path, parameters: dict[str, Any], error: type[Exception]) -> None:
    uri = str(tmp_path / "t.lance")
    ld.write_dataset(rows(1, 0, 3), uri, storage_options=OPTIONS)
    with pytest.raises(error):
        ours(uri).create_scalar_index("s", "INVERTED", **parameters)
    assert ours(uri).list_indices() == []


def test_a_memory_limit_changes_partitions_but_not_results(tmp_path: Path) -> None:
    mine, theirs = twins(tmp_path, {"with_position": True})
    expected = all_scores(theirs, phrases=True)
    big = pa.concat_tables([rows(7, 0, ROWS)] * 30)
    ld.write_dataset(big, mine, mode="overwrite", storage_options=OPTIONS)
    ours(mine).create_scalar_index("s", "INVERTED", with_position=True, memory_limit=1, num_workers=2)
    (segment,) = ours(mine).handle.snapshot.indices
    assert len([name for name, _ in segment.files if name.endswith("_docs.lance")]) > 1
    ours(mine).validate()
    assert [len(found) for found in all_scores_of_any(mine)] == [30 * len(found) for found in expected[:1]]


def all_scores_of_any(uri: str) -> list[list[int]]:
    """Return the rows of one query, including repeated ids."""
    table = lance.dataset(uri).to_table(full_text_query={"query": "lake", "columns": ["s"]}, columns=["id"])
    return [table["id"].to_pylist()]


@pytest.mark.parametrize("maker", ["ours", "theirs"])
def test_an_untrained_index_is_filled_by_the_other_library(tmp_path: Path, maker: str) -> None:
    uri, twin = twins(tmp_path, {"language": "German", "with_position": True})
    dataset = ours(uri) if maker == "ours" else lance.dataset(uri)
    dataset.create_scalar_index("s", "FTS", train=False, language="German", with_position=True)
    keeper: Any = lance.dataset(uri) if maker == "ours" else ours(uri)
    keeper.optimize.optimize_indices()
    assert all_scores(uri, phrases=True) == all_scores(twin, phrases=True)
    assert contents(uri)[-1] == contents(twin)[-1]


def test_a_table_without_terms_has_an_index_without_partitions(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    ld.write_dataset(pa.table({"id": [0, 1], "s": ["", None]}), uri, storage_options=OPTIONS)
    ours(uri).create_scalar_index("s", "INVERTED")
    (segment,) = ours(uri).handle.snapshot.indices
    assert [name for name, _ in segment.files] == ["metadata.lance"]
    assert all_scores(uri) == [{}] * 6
    ours(uri).validate()


def test_an_index_with_an_unsupported_tokenizer_is_kept_but_not_used(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    ld.write_dataset(rows(7, 0, 300), uri, max_rows_per_file=100, storage_options=OPTIONS)
    lance.dataset(uri).create_scalar_index("s", "INVERTED", base_tokenizer="icu")
    mine = ours(uri)
    expected = all_scores(uri)
    mine.delete("id = 5")
    mine.insert(rows(8, 300, 50))
    with pytest.warns(IndexWarning, match="'icu' is not supported"):
        mine.optimize.optimize_indices()
    mine.optimize.compact_files(target_rows_per_fragment=10**6)
    mine.validate()
    after = all_scores(uri)
    assert [set(found) - set(range(300, 350)) for found in after] == [set(found) - {5} for found in expected]
