"""Full-text indexes through many changes: built by one library, maintained by the other, searched by pylance."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from oracle.cases import Cases
from oracle.full_text import OPTIONS, QUERIES, all_scores, contents, ours, rows, scores
from oracle.test_index_upkeep import rewrite_column

import lance_duck as ld
from lance_duck.errors import IndexWarning, InvalidInputError, UnsupportedError
from lance_duck.query import MatchQuery

CASE_KIND = "life cycle"
PLAIN: dict[str, Any] = {"stem": False, "remove_stop_words": False, "ascii_folding": False, "max_token_length": None}
ASKED = ("lake", "lakes", "the", "straße", "42", "renewed")
MERGES: dict[str, dict[str, Any]] = {
    "default": {},
    "none": {"num_indices_to_merge": 0},
    "one": {"num_indices_to_merge": 1},
    "all": {"num_indices_to_merge": 100},
    "retrain": {"retrain": True},
}
OPEN: dict[str, Any] = {"ours": ours, "theirs": lance.dataset}
Change = Callable[[str], Any]
CHANGES: dict[str, Change] = {
    "append": lambda uri: ours(uri).insert(rows(2, 240, 60)),
    "append more": lambda uri: ours(uri).insert(rows(3, 300, 40)),
    "delete": lambda uri: ours(uri).delete("id % 5 = 0"),
    "delete a fragment": lambda uri: ours(uri).delete("id < 80"),
    "update": lambda uri: ours(uri).update({"s": "'renewed lake'"}, where="id % 7 = 0"),
    "rewrite": lambda uri: rewrite_column(uri, "s", 1),
    "segment": lambda uri: ours(uri).optimize.optimize_indices(num_indices_to_merge=0),
    "compact": lambda uri: ours(uri).optimize.compact_files(target_rows_per_fragment=10_000),
    "compact, remap later": lambda uri: ours(uri).optimize.compact_files(
        target_rows_per_fragment=10_000, defer_index_remap=True
    ),
}
LIVES: dict[str, tuple[str, ...]] = {
    "delete, append": ("delete", "append"),
    "update": ("update",),
    "rewrite": ("rewrite", "delete", "append"),
    "compact": ("delete", "compact", "append", "delete"),
    "compact, remap later": ("delete", "compact, remap later", "append", "segment", "update"),
    "two segments": ("append", "segment", "delete"),
    "two segments, append": ("append", "segment", "delete", "append more"),
    "two segments, update": ("append", "segment", "update", "delete"),
    "two segments, no fragment": ("append", "segment", "delete a fragment", "delete", "append more"),
    "two segments, compact": ("append", "segment", "delete", "compact", "append more", "update"),
}
FOUND_TWICE = {
    *(("update", "stable ids", 0), ("rewrite", "addresses", 0), ("rewrite", "stable ids", 0)),
    *(("two segments, update", "stable ids", 0), ("two segments, compact", "stable ids", 0)),
}
"""Where pylance finds rows by their old text and by their new one: it leaves the old entries."""


def table_of(uri: str, *, stable: bool, settings: dict[str, Any], maker: str) -> None:
    """Write a table of three fragments with an index from `maker`, and change its rows in every way."""
    options: dict[str, Any] = {"enable_stable_row_ids": True} if stable else {}
    ld.write_dataset(rows(1, 0, 240), uri, max_rows_per_file=80, storage_options=OPTIONS, **options)
    OPEN[maker](uri).create_scalar_index("s", "INVERTED", **settings)
    ours(uri).insert(rows(2, 240, 60))
    ours(uri).update({"s": "'renewed lake'"}, where="id % 7 = 0")
    rewrite_column(uri, "s", 1)
    ours(uri).delete("id % 5 = 0")


def found(uri: str, word: str) -> set[int]:
    """Return the rows that have a word, by a plain scan."""
    table = ours(uri).to_table(columns=["id", "s"])
    pairs = zip(table["id"].to_pylist(), table["s"].to_pylist(), strict=True)
    return {i for i, text in pairs if text and word in re.findall(r"\w+", text.lower())}


def our_scores(uri: str) -> list[dict[int, float]]:
    """Return what we answer to some queries."""
    tables = [ours(uri).to_table(columns=["id", "_score"], full_text_query=query) for query in QUERIES]
    return [dict(zip(t["id"].to_pylist(), t["_score"].to_pylist(), strict=True)) for t in tables]


def check(uri: str, cases: Cases) -> None:
    """Check that pylance finds the same rows by index and by scan, and that the index matches the rows."""
    for word in ASKED:
        assert set(scores(uri, word)) == found(uri, word), word
        cases.count += 1
    ours(uri).validate()


def twin(uri: str, settings: dict[str, Any]) -> str:
    """Return a new table of the same rows with an index built by pylance."""
    copy = uri.replace(".lance", "-twin.lance")
    ld.write_dataset(ours(uri).to_table(), copy, mode="overwrite", storage_options=OPTIONS)
    lance.dataset(copy).create_scalar_index("s", "INVERTED", num_workers=1, **settings)
    return copy


@pytest.mark.parametrize("merge", list(MERGES))
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("maker", ["theirs", pytest.param("ours", marks=pytest.mark.slow)])
def test_pylance_searches_full_text_indexes_maintained_by_lance_duck(
    tmp_path: Path, cases: Cases, maker: str, stable: bool, merge: str
) -> None:
    uri = str(tmp_path / "t.lance")
    table_of(uri, stable=stable, settings=PLAIN, maker=maker)
    ours(uri).optimize.optimize_indices(**MERGES[merge])
    assert ours(uri).index_statistics("s_idx")["num_unindexed_rows"] == 0
    check(uri, cases)
    ours(uri).optimize.compact_files(target_rows_per_fragment=10_000)
    check(uri, cases)
    ours(uri).insert(rows(3, 300, 20))
    lance.dataset(uri).optimize.optimize_indices()
    check(uri, cases)
    lance.dataset(uri).optimize.compact_files(target_rows_per_fragment=10_000)
    check(uri, cases)
    ours(uri).optimize.optimize_indices(num_indices_to_merge=100)
    if merge != "none":
        assert len(ours(uri).list_indices()) == 1


@pytest.mark.parametrize("life", list(LIVES))
@pytest.mark.parametrize("named_by", ["addresses", "stable ids"])
def test_a_merge_counts_the_documents_that_pylance_counts(
    tmp_path: Path, cases: Cases, named_by: str, life: str
) -> None:
    if named_by == "stable ids" and "compact, remap later" in LIVES[life]:
        pytest.skip("no remap is put off where row ids are stable")
    uri, maker = str(tmp_path / "t.lance"), "theirs" if len(life) % 2 else "ours"
    options: dict[str, Any] = {"enable_stable_row_ids": True} if named_by == "stable ids" else {}
    ld.write_dataset(rows(1, 0, 240), uri, max_rows_per_file=80, storage_options=OPTIONS, **options)
    OPEN[maker](uri).create_scalar_index("s", "INVERTED", **PLAIN)
    for change in LIVES[life]:
        CHANGES[change](uri)
    answers = [our_scores(uri)]
    for count in (0, 1, 2, 100):
        kept = {keeper: str(tmp_path / f"{keeper}-{count}.lance") for keeper in OPEN}
        for keeper, copy in kept.items():
            shutil.copytree(uri, copy)
            OPEN[keeper](copy).optimize.optimize_indices(num_indices_to_merge=count)
            answers.append(our_scores(copy))
        if (life, named_by, count) not in FOUND_TWICE:
            expected = all_scores(kept["theirs"])
            assert all_scores(kept["ours"]) == expected, count
            cases.count += len(QUERIES)
    assert all(answer == expected for answer in answers)  # before and after every merge


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_merged_and_compacted_indexes_score_like_new_ones(
    tmp_path: Path, cases: Cases, stable: bool, format_version: int
) -> None:
    uri, settings = str(tmp_path / "t.lance"), {"format_version": format_version, "with_position": True}
    table_of(uri, stable=stable, settings=settings, maker="theirs")
    ours(uri).optimize.optimize_indices(num_indices_to_merge=0)
    ours(uri).insert(rows(3, 300, 20))
    ours(uri).optimize.optimize_indices(num_indices_to_merge=100)
    copy = twin(uri, settings)
    expected = all_scores(copy, phrases=True)
    if not stable:  # deleted rows count until a compaction
        ours(uri).optimize.compact_files(target_rows_per_fragment=10_000)
    for _ in range(2):
        assert all_scores(uri, phrases=True) == expected
        (figures,) = contents(uri)
        assert figures == contents(copy)[0]
        (segment,) = ours(uri).handle.snapshot.indices
        assert segment.version == format_version
        ours(uri).optimize.compact_files(target_rows_per_fragment=10_000)
        cases.count += len(QUERIES)


@pytest.mark.parametrize("maker", ["ours", "theirs"])
@pytest.mark.parametrize("compactor", ["ours", "theirs"])
def test_a_deferred_remap_loses_no_rows(tmp_path: Path, cases: Cases, maker: str, compactor: str) -> None:
    uri = str(tmp_path / "t.lance")
    ld.write_dataset(rows(1, 0, 240), uri, max_rows_per_file=40, storage_options=OPTIONS)
    OPEN[maker](uri).create_scalar_index("s", "INVERTED", **PLAIN)
    ours(uri).delete("id % 5 = 0")
    OPEN[compactor](uri).optimize.compact_files(target_rows_per_fragment=120, defer_index_remap=True)
    check(uri, cases)
    ours(uri).insert(rows(2, 240, 60))
    ours(uri).optimize.optimize_indices(num_indices_to_merge=1)
    check(uri, cases)
    ours(uri).optimize.compact_files(target_rows_per_fragment=10_000)
    check(uri, cases)


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("merge", ["none", "one", "all"])
def test_lance_duck_maintains_full_text_indexes_updated_by_pylance(
    tmp_path: Path, cases: Cases, stable: bool, merge: str
) -> None:
    uri = str(tmp_path / "t.lance")
    table_of(uri, stable=stable, settings=PLAIN, maker="ours")
    lance.dataset(uri).optimize.optimize_indices(**MERGES[merge])
    ours(uri).validate()
    ours(uri).insert(rows(3, 300, 20))
    ours(uri).optimize.optimize_indices(num_indices_to_merge=100)
    check(uri, cases)
    if not stable:  # deleted rows count until a compaction
        ours(uri).optimize.compact_files(target_rows_per_fragment=10_000)
    assert all_scores(uri) == all_scores(twin(uri, PLAIN))


@pytest.mark.parametrize("maker", ["ours", "theirs"])
def test_segments_built_separately_commit_together(tmp_path: Path, cases: Cases, maker: str) -> None:
    uri = str(tmp_path / "t.lance")
    ld.write_dataset(rows(1, 0, 240), uri, max_rows_per_file=40, storage_options=OPTIONS)
    other = "theirs" if maker == "ours" else "ours"
    segments = [
        OPEN[maker](uri).create_index_uncommitted("s", "INVERTED", "s_idx", fragment_ids=ids, **PLAIN)
        for ids in ([0, 1], [2, 3], [4])
    ]
    OPEN[maker](uri).commit_existing_index_segments("s_idx", "s", segments)
    assert [sorted(s["fragment_ids"]) for s in ours(uri).list_indices()] == [[0, 1], [2, 3], [4]]
    check(uri, cases)
    OPEN[other](uri).optimize.optimize_indices(num_indices_to_merge=2)
    check(uri, cases)
    ours(uri).optimize.optimize_indices(num_indices_to_merge=100)
    assert all_scores(uri) == all_scores(twin(uri, PLAIN))


def test_uncommitted_segments_of_pylance_are_merged(tmp_path: Path, cases: Cases) -> None:
    uri = str(tmp_path / "t.lance")
    ld.write_dataset(rows(1, 0, 160), uri, max_rows_per_file=40, storage_options=OPTIONS)
    dataset = ours(uri)
    segments = [
        dataset.create_index_uncommitted("s", "INVERTED", "s_idx", fragment_ids=ids, with_position=True)
        for ids in ([0, 1], [3])
    ]
    merged = dataset.merge_existing_index_segments(segments)
    dataset.commit_existing_index_segments("s_idx", "s", [merged])
    dataset.optimize.optimize_indices(num_indices_to_merge=1)
    expected = twin(uri, {"with_position": True})
    assert all_scores(uri, phrases=True) == all_scores(expected, phrases=True)
    cases.count += 1


def test_segments_with_different_settings_are_not_committed_as_one_index(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    ld.write_dataset(rows(1, 0, 80), uri, max_rows_per_file=40, storage_options=OPTIONS)
    dataset = ours(uri)
    segments = [
        dataset.create_index_uncommitted("s", "INVERTED", "s_idx", fragment_ids=[i], with_position=bool(i))
        for i in range(2)
    ]
    with pytest.raises(InvalidInputError, match="different parameters"):
        dataset.commit_existing_index_segments("s_idx", "s", segments)
    with pytest.raises(UnsupportedError, match="different full-text parameters"):
        dataset.merge_existing_index_segments(segments)
    assert dataset.list_indices() == []


def test_merging_rebuilds_segments_with_different_stop_words(tmp_path: Path, cases: Cases) -> None:
    uri = str(tmp_path / "t.lance")
    ld.write_dataset(rows(1, 0, 120), uri, max_rows_per_file=40, storage_options=OPTIONS)
    dataset = ours(uri)
    segments = [
        dataset.create_index_uncommitted("s", "INVERTED", "s_idx", fragment_ids=[i], custom_stop_words=[word])
        for i, word in enumerate(("lake", "duck", "the"))
    ]
    dataset.commit_existing_index_segments("s_idx", "s", segments)
    dataset.insert(rows(2, 120, 40))
    dataset.optimize.optimize_indices(num_indices_to_merge=2)
    assert sorted(sorted(s["fragment_ids"]) for s in dataset.list_indices()) == [[0], [1, 2, 3]]
    dataset.validate()
    dataset.optimize.optimize_indices(num_indices_to_merge=2)
    assert all_scores(uri) == all_scores(twin(uri, {"custom_stop_words": ["the"]}))
    dataset.validate()
    cases.count += 1


def test_an_index_is_dropped_and_replaced(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    ld.write_dataset(rows(1, 0, 60), uri, storage_options=OPTIONS)
    dataset = ours(uri)
    dataset.create_scalar_index("s", "INVERTED", language="German")
    dataset.create_scalar_index("s", "INVERTED", stem=False)
    (index,) = lance.dataset(uri).describe_indices()
    assert index.details["stem"] is False
    assert index.details["language"] == "English"
    dataset.drop_index("s_idx")
    assert lance.dataset(uri).describe_indices() == []


def test_an_empty_table_gets_its_index_and_its_rows(tmp_path: Path, cases: Cases) -> None:
    uri = str(tmp_path / "t.lance")
    ld.write_dataset(rows(1, 0, 0), uri, storage_options=OPTIONS)
    ours(uri).create_scalar_index("s", "INVERTED", **PLAIN)
    ours(uri).insert(rows(1, 0, 60))
    ours(uri).optimize.optimize_indices()
    check(uri, cases)
    ours(uri).delete("true")
    ours(uri).optimize.compact_files()
    assert all(scores(uri, word) == {} for word in ASKED)
    assert isinstance(ours(uri).to_table(), pa.Table)


def test_rows_whose_old_and_new_text_pylance_merged_are_scanned(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    rows = pa.table({"id": range(40), "s": [f"old {i}" for i in range(40)]})
    table = lance.write_dataset(rows, uri, max_rows_per_file=20, enable_stable_row_ids=True)
    table.create_scalar_index("s", "INVERTED", stem=False)
    table.update({"s": "'new'"}, where="id % 5 = 0")
    table.optimize.optimize_indices(num_indices_to_merge=0)
    assert ours(uri).count_rows(MatchQuery("old", "s")) == 32
    table.optimize.optimize_indices(num_indices_to_merge=2)
    assert table.to_table(full_text_query="old").num_rows == 40
    with pytest.warns(IndexWarning, match="the index contains two entries for updated rows"):
        assert ours(uri).count_rows(MatchQuery("old", "s")) == 32
