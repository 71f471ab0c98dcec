from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.duck.search_filters import ChosenRows, SearchFilters
from lance_duck.errors import InvalidInputError


@pytest.fixture
def dataset(tmp_path: Path) -> ld.LanceDataset:
    return ld.write_dataset(pa.table({"x": range(6)}), tmp_path / "t.lance")


def rows(dataset: ld.LanceDataset, text: str | None, filters: SearchFilters) -> list[int]:
    found: list[int] = dataset.to_table(filter=filters.filter(text, dataset))["x"].to_pylist()
    return found


def test_plain_texts_and_values_are_filters(dataset: ld.LanceDataset) -> None:
    filters = SearchFilters()
    assert rows(dataset, None, filters) == [0, 1, 2, 3, 4, 5]
    assert rows(dataset, filters.with_values("x > 3", []), filters) == [4, 5]
    text = filters.with_values("(x > ?) AND x < ?", [2, 5])
    assert rows(dataset, text, filters) == [3, 4]
    assert rows(dataset, f"(x <> 3\n) AND {text}", filters) == [4]


def test_chosen_rows_are_filters_of_their_version_only(dataset: ld.LanceDataset) -> None:
    filters = SearchFilters()
    text = filters.with_rows(ChosenRows(dataset.version, pa.array([1, 4], pa.uint64())))
    assert rows(dataset, text, filters) == [1, 4]
    assert rows(dataset, f"(x > 2\n) AND {text}", filters) == [4]
    dataset.delete("x = 4")
    with pytest.raises(InvalidInputError, match="the table has changed"):
        filters.filter(text, dataset)


@pytest.mark.parametrize("text", ["x = ? /*__lance_values_99999999*/", "__lance_rows_99999999"])
def test_unknown_values_are_an_error(dataset: ld.LanceDataset, text: str) -> None:
    with pytest.raises(InvalidInputError, match="are gone"):
        SearchFilters().filter(text, dataset)
