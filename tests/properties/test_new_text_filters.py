"""A filtered search finds the first matching rows, whether the filter runs before or after ranking."""

from __future__ import annotations

from functools import cache
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.index.inverted.partitions import random_texts

import lance_duck as ld
from lance_duck.query import FullTextOperator, MatchQuery, PhraseQuery, PrefixQuery
from lance_duck.scan.scored import candidates

ROWS = 2400
NUMBERS = count()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    texts = random_texts(ROWS, words=60, most=12)
    texts[1000:1300] = [["w1", "w2"]] * 300  # ties
    rows = pa.table(
        {
            "id": np.arange(ROWS),
            "n": pa.array([None if i % 11 == 0 else i * 7 % 100 for i in range(ROWS)]),
            "st": pa.array([{"x": i % 5, "y": "a" * (i % 3)} for i in range(ROWS)]),
            "s": [" ".join(words) for words in texts],
        }
    )
    path: Path = tmp_path_factory.mktemp("filters") / "t.lance"
    dataset = ld.write_dataset(rows.slice(0, 2000), path, max_rows_per_file=500)
    dataset.create_scalar_index("s", "INVERTED", stem=False, remove_stop_words=False, with_position=True)
    dataset = ld.write_dataset(rows.slice(2000), path, mode="append")
    dataset.delete("id % 13 = 5")
    return dataset


QUERIES = {
    "one": MatchQuery("w3", "s"),
    "any": MatchQuery("w1 w2 w40", "s"),
    "all": MatchQuery("w1 w2", "s", operator=FullTextOperator.AND),
    "boosted": MatchQuery("w1 w5", "s", boost=0.1),
    "phrase": PhraseQuery("w1 w2", "s"),
    "prefix": PrefixQuery("w4", "s"),
    "rare": MatchQuery("w59", "s"),
    "none": MatchQuery("nothing", "s"),
}
FILTERS = (
    "id >= {}",
    "n < 30 AND id != {}",
    "id % 2 = 0 AND id <> {}",
    "n IS NULL AND id <> {}",
    "st.x = 3 AND id <> {}",
    "_rowid > {}",
    "id = {}",
    "id < 0 OR id = {} + 5000",
    "NOT (n > 50) AND st.y = '' AND id <> {}",
)


@cache
def ranking_of(table: ld.LanceDataset, name: str) -> list[dict[str, Any]]:
    return table.to_table(full_text_query=QUERIES[name], columns=["id", "_score"]).to_pylist()


@given(
    st.sampled_from(list(QUERIES)),
    st.sampled_from(FILTERS),
    st.integers(1, 30),
    st.integers(0, 3),
    st.sampled_from([1, 2, 16]),
    st.sampled_from([1, 100, 4096]),
)
def test_the_first_matching_rows_are_found(table, name, text, k, skip, each, most) -> None:
    condition = text.format(next(NUMBERS))
    with mock.patch.multiple(candidates, CHECKED_FOR_EACH=each, SMALL_BATCH_ROWS=most, CHECKED_SHARE=1 << 30):
        arguments = {"full_text_query": QUERIES[name], "columns": ["id", "_score"], "filter": condition}
        found = table.to_table(**arguments, limit=k, offset=skip)
        again = table.to_table(**arguments, limit=k, offset=skip)  # cached matching rows
    passes = set(table.to_table(filter=condition, columns=["id"])["id"].to_pylist())
    assert found.to_pylist() == [row for row in ranking_of(table, name) if row["id"] in passes][skip : skip + k]
    assert again.equals(found)


def test_a_new_filter_checks_the_best_rows_and_a_repeated_one_is_cached(table) -> None:
    def log() -> str:
        return table.scanner(full_text_query=QUERIES["any"], filter="n < 61 AND id > 3", limit=2).analyze_plan()

    assert "of the best 32 rows pass the filter" in log()
    assert "rows pass the filter" in log()
    assert "of the best" not in log()


def test_a_filter_with_an_index_uses_the_index(tmp_path) -> None:
    dataset = ld.write_dataset(pa.table({"id": range(100), "s": ["duck lake"] * 100}), tmp_path / "t.lance")
    dataset.create_scalar_index("s", "INVERTED")
    dataset.create_scalar_index("id", "BTREE")
    scanner = dataset.scanner(full_text_query="duck", filter="id = 70", limit=2)
    assert "of the best" not in scanner.analyze_plan()
    assert scanner.to_table()["id"].to_pylist() == [70]


def test_a_selective_filter_is_evaluated_before_ranking(table) -> None:
    with mock.patch.multiple(candidates, CHECKED_FOR_EACH=2, SMALL_BATCH_ROWS=64, CHECKED_SHARE=1 << 30):
        scanner = table.scanner(full_text_query=QUERIES["any"], filter="id = 1001", limit=2)
        plan = scanner.analyze_plan()
    assert "0 of the best 4 rows pass the filter" in plan
    assert "1 rows pass the filter" in plan
