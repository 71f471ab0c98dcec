"""List elements as documents: both libraries find the same elements with equal scores in each other's indexes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import lance.query as theirs
import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
import lance_duck.query as ours

OPTIONS = {"fsync": "false"}
WORDS = [*(f"w{i}" for i in range(9)), "the", "running"]
FORMS: list[dict[str, Any]] = [
    {},
    {"with_position": True},
    {"with_position": True, "format_version": 1},
    {"with_position": True, "format_version": 3, "block_size": 256},
]
Scores = dict[tuple[int, ...], float]


def rows(seed: int, first: int, count: int) -> pa.Table:
    random = np.random.default_rng(seed)

    def text() -> str | None:
        return None if random.random() < 0.1 else " ".join(random.choice(WORDS, random.integers(0, 6)))

    lists = [None if random.random() < 0.1 else [text() for _ in range(random.integers(0, 5))] for _ in range(count)]
    return pa.table({"id": pa.array(range(first, first + count)), "l": pa.array(lists, pa.list_(pa.string()))})


def queries(q: Any, phrases: bool) -> list[Any]:
    element = q.DocumentGranularity.LIST_ELEMENT
    found = [
        q.MatchQuery("w1 w2 running", "l", document_granularity=element),
        q.MatchQuery("w3 w4", "l", operator=q.FullTextOperator.AND),
        q.BooleanQuery(
            [
                (q.Occur.MUST, q.MatchQuery("w1", "l", document_granularity=element)),
                (q.Occur.SHOULD, q.MatchQuery("w5", "l")),
                (q.Occur.MUST_NOT, q.MatchQuery("w2", "l")),
            ]
        ),
    ]
    return [*found, q.PhraseQuery("w1 w2", "l"), q.PhraseQuery("w0 the w1", "l", slop=1)] if phrases else found


def scores(dataset: Any, query: Any) -> Scores:
    table = dataset.to_table(full_text_query=query, columns=["id", "_doc_index", "_score"])
    assert table.schema.field("_doc_index") == pa.field(
        "_doc_index", pa.list_(pa.field("item", pa.uint32(), nullable=False)), nullable=False
    )
    keys = [(row["id"], *row["_doc_index"]) for row in table.to_pylist()]
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, table["_score"].to_pylist(), strict=True))


def same(uri: str, form: dict[str, Any], *, with_scores: bool = True) -> None:
    asked = zip(*(queries(q, "with_position" in form) for q in (theirs, ours)), strict=True)
    for one, other in asked:
        expected, found = scores(lance.dataset(uri), one), scores(ld.dataset(uri), other)
        assert found.keys() == expected.keys()
        assert not with_scores or found == expected


@pytest.mark.parametrize(("form", "stable"), list(zip(FORMS, [False, True, False, True], strict=True)))
def test_list_elements_have_the_same_scores_after_every_change(tmp_path: Path, form, stable) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows(1, 0, 150), uri, max_rows_per_file=60, enable_stable_row_ids=stable)
    element = theirs.DocumentGranularity.LIST_ELEMENT
    if stable:  # each library builds, optimizes and compacts an index of the other
        lance.dataset(uri).create_scalar_index("l", "INVERTED", document_granularity=element, **form)
    else:
        ld.dataset(uri, storage_options=OPTIONS).create_scalar_index(
            "l", "INVERTED", document_granularity="list_element", **form
        )
    same(uri, form)
    lance.dataset(uri).insert(rows(2, 1000, 40))
    lance.dataset(uri).delete("id % 7 = 3")
    same(uri, form, with_scores=False)  # pylance scores rows that no index covers on another scale
    mine = ld.dataset(uri, storage_options=OPTIONS)
    (mine if stable else lance.dataset(uri)).optimize.optimize_indices(num_indices_to_merge=9)
    same(uri, form)
    ld.dataset(uri).validate()
    (lance.dataset(uri) if stable else ld.dataset(uri, storage_options=OPTIONS)).optimize.compact_files()
    same(uri, form)
    ld.dataset(uri).validate()
    assert [index.name for index in lance.dataset(uri).describe_indices()] == ["l_list_element_idx"]


def test_unindexed_element_searches_return_the_same_scores(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    dataset = lance.write_dataset(rows(3, 0, 120), uri)
    query = ours.MatchQuery("w1 w2 running", "l", document_granularity="list_element")
    flat = ld.dataset(uri).to_table(full_text_query=query)
    element = theirs.DocumentGranularity.LIST_ELEMENT
    dataset.create_scalar_index("l", "INVERTED", document_granularity=element)
    assert ld.dataset(uri).to_table(full_text_query=query).equals(flat)
    best = ld.dataset(uri).to_table(full_text_query=query, limit=7, offset=2)
    assert best.equals(flat.slice(2, 7))


def test_row_and_element_indexes_can_coexist(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows(4, 0, 60), uri)
    dataset = ld.dataset(uri, storage_options=OPTIONS)
    dataset.create_scalar_index("l", "INVERTED", document_granularity="list_element")
    dataset.create_scalar_index("l", "INVERTED")
    assert {i.name for i in lance.dataset(uri).describe_indices()} == {"l_idx", "l_list_element_idx"}
    for granularity in ("ROW", "LIST_ELEMENT"):
        one, other = (
            q.MatchQuery("w1", "l", document_granularity=q.DocumentGranularity[granularity]) for q in (theirs, ours)
        )
        expected = (
            lance.dataset(uri).to_table(full_text_query=one).sort_by([("_score", "descending"), ("id", "ascending")])
        )
        found = dataset.to_table(full_text_query=other).sort_by([("_score", "descending"), ("id", "ascending")])
        assert found["id"].equals(expected["id"])
        assert found["_score"].equals(expected["_score"])
    for query, side in ((theirs.MatchQuery("w1", "l"), lance.dataset(uri)), (ours.MatchQuery("w1", "l"), dataset)):
        with pytest.raises(ValueError, match="ambiguous"):
            side.to_table(full_text_query=query)
    assert "_doc_index" not in dataset.to_table(full_text_query="w1").column_names
