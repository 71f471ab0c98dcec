"""Full-text indexes, as users make them and hear of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import IndexExistsError, InvalidInputError, UnsupportedError, WrongTypeError
from lance_duck.index.catalog import catalog
from lance_duck.index.search import open_index
from lance_duck.indices import IndexConfig
from lance_duck.text.filters import STEMMER


@pytest.fixture
def dataset(tmp_path: Path) -> ld.LanceDataset:
    texts = ["the lake", None, "ducks swim", "", "a duck"]
    return ld.write_dataset(pa.table({"id": range(5), "s": texts}), tmp_path / "t.lance", max_rows_per_file=3)


@pytest.mark.parametrize("kind", ["INVERTED", "fts", "Inverted", IndexConfig("FTS", {"stem": False})])
def test_a_full_text_index_can_be_created_under_both_names(dataset: ld.LanceDataset, kind: Any) -> None:
    dataset.create_scalar_index("s", kind)
    (index,) = dataset.describe_indices()
    assert (index.name, index.index_type, index.num_rows_indexed) == ("s_idx", "Inverted", 5)
    assert index.details["stem"] is (kind != IndexConfig("FTS", {"stem": False}))


def test_its_figures_are_documents_terms_parameters_and_the_stemmer(dataset: ld.LanceDataset) -> None:
    dataset.create_scalar_index("s", "FTS", remove_stop_words=False)
    said = dataset.index_statistics("s_idx")
    (segment,) = said["segments"]
    assert (segment["num_docs"], segment["num_tokens"], segment["stemmer"]) == (3, 5, STEMMER)
    assert segment["params"]["remove_stop_words"] is False
    assert (said["index_type"], said["num_indexed_rows"], said["num_unindexed_rows"]) == ("Inverted", 5, 0)


def test_progress_reports_indexed_rows(dataset: ld.LanceDataset) -> None:
    told: list[tuple[int, int]] = []
    dataset.create_scalar_index("s", "FTS", progress=lambda done, total: told.append((done, total)))
    assert told[0] == (0, 5)
    assert told[-1] == (5, 5)


def test_an_existing_name_is_rejected_without_replace(dataset: ld.LanceDataset) -> None:
    dataset.create_scalar_index("s", "FTS")
    with pytest.raises(IndexExistsError):
        dataset.create_scalar_index("s", "FTS", "s_idx", replace=False)


def test_an_unknown_parameter_suggests_the_nearest(dataset: ld.LanceDataset) -> None:
    with pytest.raises(WrongTypeError, match="did you mean 'base_tokenizer'"):
        dataset.create_scalar_index("s", "FTS", base_tokeniser="raw")


def test_prewarm_loads_words_and_optionally_positions(dataset: ld.LanceDataset) -> None:
    dataset.create_scalar_index("s", "FTS")
    dataset.create_scalar_index("s", "FTS", "placed", with_position=True)
    dataset.prewarm_index("s_idx")
    dataset.prewarm_index("placed", with_position=True)
    snapshot = dataset.handle.snapshot
    (index,) = catalog(snapshot).named("placed")
    assert open_index(snapshot, index.segments[0]).nbytes > 0
    with pytest.raises(UnsupportedError, match="'s_idx' without positions"):
        dataset.prewarm_index("s_idx", with_position=True)


def test_optimize_covers_appended_fragments(dataset: ld.LanceDataset) -> None:
    dataset.create_scalar_index("s", "FTS", custom_stop_words=["duck"], format_version=1)
    dataset.insert(pa.table({"id": [5], "s": ["duck pond"]}))
    dataset.optimize.optimize_indices(num_indices_to_merge=0)
    first, second = dataset.index_statistics("s_idx")["segments"]
    assert first["params"] == second["params"]
    assert (second["num_docs"], second["num_tokens"]) == (1, 1)
    assert {segment.index_version for segment in dataset.describe_indices()[0].segments} == {1}
    dataset.optimize.optimize_indices(retrain=True)
    (whole,) = dataset.index_statistics("s_idx")["segments"]
    assert whole["params"] == first["params"]
    assert dataset.describe_indices()[0].segments[0].index_version == 1
    dataset.validate()


def test_the_memory_limit_splits_builds_and_merges(dataset: ld.LanceDataset) -> None:
    texts = [f"word{i} again" for i in range(3000)]
    dataset.create_scalar_index("s", "INVERTED", remove_stop_words=False)
    dataset.insert(pa.table({"id": range(3000), "s": texts}))

    def partitions() -> int:
        snapshot = dataset.handle.snapshot
        (index,) = catalog(snapshot).named("s_idx")
        return sum(len(open_index(snapshot, segment).partitions) for segment in index.segments)

    dataset.optimize.optimize_indices(num_indices_to_merge=1, memory_limit="100 KiB")
    assert partitions() > 1
    found = dataset.to_table(columns=["id"], full_text_query="word1234", limit=3)["id"].to_pylist()
    dataset.optimize.optimize_indices(retrain=True, memory_limit=1 << 30)
    assert partitions() == 1
    assert dataset.to_table(columns=["id"], full_text_query="word1234", limit=3)["id"].to_pylist() == found == [1234]
    with pytest.raises(InvalidInputError, match="memory_limit: not a number of bytes"):
        dataset.optimize.optimize_indices(memory_limit="much")
