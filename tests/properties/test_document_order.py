"""The order of documents in a full-text index never changes an answer. Searches of all rows are the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import lance_duck as ld
from lance_duck.index.catalog import catalog
from lance_duck.index.inverted import build
from lance_duck.index.inverted.contents import Documents
from lance_duck.index.search import open_index
from lance_duck.query import FullTextOperator, MatchQuery, PhraseQuery

OPTIONS = {"fsync": "false"}
WORDS = [f"w{number}" for number in range(40)]
by_length = Documents.by_length
Numbered = tuple[Documents, NDArray[np.uint32]]


def by_row(documents: Documents) -> Numbered:
    """Keep the order of rows, like indexes of older versions."""
    return documents, np.arange(len(documents), dtype=np.uint32)


def by_chance(documents: Documents) -> Numbered:
    """Number the documents at random, because other writers may use any order."""
    order = np.random.default_rng(len(documents)).permutation(len(documents))
    ids = np.argsort(order).astype(np.uint32)
    return Documents(documents.row_ids[order], documents.num_tokens[order]), ids


@contextmanager
def numbered(number: Callable[[Documents], Numbered]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Documents, "by_length", number)
        yield


def rows(random: np.random.Generator, first: int, count: int) -> pa.Table:
    ranks = np.minimum(random.exponential(7, (count, 15)), len(WORDS) - 1).astype(int)
    lengths = random.integers(0, 16, count).tolist()
    texts = [" ".join(WORDS[rank] for rank in row[:length]) for row, length in zip(ranks, lengths, strict=True)]
    return pa.table({"id": np.arange(first, first + count), "n": random.integers(0, 5, count), "s": texts})


def answers(dataset: ld.LanceDataset, seed: int, **how: Any) -> list[dict[str, list[Any]]]:
    """Return the ids and scores of several queries, best first."""
    random = np.random.default_rng(seed)
    found = []
    for number in range(6):
        text = " ".join(random.choice(WORDS[:20], random.integers(1, 4)).tolist())
        operator = FullTextOperator.AND if number % 3 == 1 else FullTextOperator.OR
        query = PhraseQuery(text, "s", slop=number % 2) if number % 3 == 2 else MatchQuery(text, "s", operator=operator)
        chosen: dict[str, Any] = {"filter": "n < 3"} if number % 4 == 3 else {}
        for limit in (5, None):
            result = dataset.to_table(["id", "_score"], full_text_query=query, limit=limit, **chosen, **how)
            found.append(result.to_pydict())
    return found


def life(uri: Path, seed: int, first: Any, later: Any, *, stable: bool) -> Iterator[ld.LanceDataset]:
    """Yield a table after each of several changes, with documents in one order at first, and in another order later."""
    random = np.random.default_rng(seed)
    dataset = ld.write_dataset(
        rows(random, 0, 150), uri, max_rows_per_file=75, enable_stable_row_ids=stable, storage_options=OPTIONS
    )
    with numbered(first):
        dataset.create_scalar_index("s", "INVERTED", with_position=True)
    yield dataset
    with numbered(later):
        dataset.insert(rows(random, 150, 60))
        dataset.optimize.optimize_indices(num_indices_to_merge=0)
        yield dataset
        dataset.delete("id % 7 = 2")
        dataset.update({"s": "'w1 w2 w0 w1'"}, where="id % 50 = 9")
        yield dataset
        dataset.optimize.compact_files(target_rows_per_fragment=1000)
        yield dataset
        dataset.optimize.optimize_indices(num_indices_to_merge=9)
        yield dataset


@pytest.mark.parametrize("stable", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_searches_find_the_same_rows_and_scores_in_any_order(tmp_path: Path, seed: int, stable: bool) -> None:
    orders = [(by_row, by_row), (by_length, by_length), (by_chance, by_length)]
    tables = [life(tmp_path / f"{number}.lance", seed, *each, stable=stable) for number, each in enumerate(orders)]
    steps = list[Any]()
    for plain, *others in zip(*tables, strict=True):
        steps.append(plain.version)
        expected = answers(plain, seed)
        assert any(len(each["id"]) > 5 for each in expected)
        for other in others:
            assert answers(other, seed) == expected
    assert len(set(steps)) == 5
    table = plain.to_table(["id", "n", "s", "_rowid"]).sort_by("_rowid").drop_columns("_rowid")
    flat = ld.write_dataset(table, tmp_path / "flat.lance", storage_options=OPTIONS)
    assert answers(others[0], seed) == answers(flat, seed)


def test_builds_and_merges_order_documents_by_length_and_row(tmp_path: Path) -> None:
    *_, dataset = life(tmp_path / "t.lance", 5, by_row, by_length, stable=False)
    snapshot = dataset.handle.snapshot
    ((segment,),) = [index.segments for index in catalog(snapshot).indexes]
    (partition,) = open_index(snapshot, segment).partitions
    documents = partition.documents
    texts = dataset.to_table(["_rowid", "s"]).to_pydict()
    lengths = {row: len(text.split()) for row, text in zip(texts["_rowid"], texts["s"], strict=True)}
    assert documents.num_tokens.tolist() == [lengths[row] for row in documents.row_ids.tolist()]
    assert (np.diff(documents.num_tokens.astype(np.int64)) >= 0).all()


def test_partitions_that_exceed_the_memory_limit_are_ordered_as_a_whole(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    dataset = ld.write_dataset(rows(random, 0, 300), tmp_path / "t.lance", storage_options=OPTIONS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "LEAST_PIECE", 4 << 10)
        dataset.create_scalar_index("s", "INVERTED", with_position=True, memory_limit="1B")
    flat = ld.write_dataset(dataset.to_table(), tmp_path / "flat.lance", storage_options=OPTIONS)
    snapshot = dataset.handle.snapshot
    ((segment,),) = [index.segments for index in catalog(snapshot).indexes]
    partitions = open_index(snapshot, segment).partitions
    assert len(partitions) > 1
    assert all((np.diff(each.documents.num_tokens.astype(np.int64)) >= 0).all() for each in partitions)
    assert answers(dataset, 3) == answers(flat, 3)
