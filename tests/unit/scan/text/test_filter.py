"""Full-text queries as filters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.query import MatchQuery, PhraseQuery

ORIGIN = [0.0, 0.0]
TEXTS = ["a puppy", "a kitten", "puppy dog", "the dog", "one bird", None]
DOG = MatchQuery("Dogs", "Text")


def write(folder: Path, *, indexed: bool, stable: bool) -> ld.LanceDataset:
    """Six rows at distances 0, 2, 8, 18, 32, 50; rows 3 and 4 contain the word, the index covers only row 3."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([float(i // 2) for i in range(12)], pa.float32()), 2)
    table = pa.table({"id": range(1, 7), "Vec": vectors, "Text": pa.array(TEXTS)})
    dataset = ld.write_dataset(table[:3], folder / "t.lance", enable_stable_row_ids=stable)
    if indexed:
        dataset.create_scalar_index("Text", "INVERTED", with_position=True)
    return ld.write_dataset(table[3:], dataset, mode="append", max_rows_per_file=2)


@pytest.fixture(params=["flat", "index", "index and stable row ids"])
def pets(request: pytest.FixtureRequest, tmp_path: Path) -> ld.LanceDataset:
    return write(tmp_path, indexed="index" in request.param, stable="stable" in request.param)


def ids(found: pa.Table) -> list[int]:
    return found.column("id").to_pylist()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"filter": DOG}, [3, 4]),
        ({"filter": MatchQuery("nothing", "Text")}, []),
        ({"filter": DOG, "limit": 1, "offset": 1}, [4]),
        ({"filter": DOG, "use_scalar_index": False}, [3, 4]),
        ({"filter": DOG, "fragments": [1]}, [4]),
        ({"filter": DOG, "order_by": [ld.ColumnOrdering("id", ascending=False)]}, [4, 3]),
        ({"filter": DOG, "nearest": {"column": "Vec", "q": ORIGIN, "k": 1}}, [3]),
        ({"filter": DOG, "nearest": {"column": "Vec", "q": ORIGIN, "k": 3}, "prefilter": False}, [3]),
        ({"filter": PhraseQuery("puppy dog", "Text"), "nearest": {"column": "Vec", "q": ORIGIN}}, [3]),
        ({"filter": DOG | MatchQuery("bird", "Text"), "nearest": {"column": "Vec", "q": ORIGIN, "k": 3}}, [3, 4, 5]),
        ({"filter": DOG, "full_text_query": "puppy"}, [3]),
        ({"filter": MatchQuery("puppy", "Text"), "full_text_query": DOG, "prefilter": False}, [3]),
    ],
)
def test_a_match_query_filters_rows(pets: ld.LanceDataset, options: dict[str, Any], expected: list[int]) -> None:
    assert ids(pets.to_table(columns=["id"], **options)) == expected
    scanner = pets.scanner(columns=["id"], **options)
    assert ids(scanner.to_table()) == expected
    assert scanner.count_rows() == len(expected)
    assert pets.count_rows(**{"nearest": None, **options}) == len(expected)


def test_python_searches_accept_a_query_as_filter(pets: ld.LanceDataset) -> None:
    assert ids(pets.search(ORIGIN, k=1, filter=DOG)) == [3]
    assert ids(pets.search(ORIGIN, full_text_query="bird", filter=DOG)) == [3, 4]
    fragment = pets.get_fragment(1)
    assert fragment is not None
    assert ids(fragment.to_table(filter=DOG)) == [4]


def test_rows_that_match_are_deleted_and_updated(pets: ld.LanceDataset) -> None:
    assert pets.delete(PhraseQuery("puppy dog", "Text")) == {"num_deleted_rows": 1}
    assert pets.update({"Text": "'the cat'"}, MatchQuery("dog bird", "Text")) == {"num_rows_updated": 2}
    assert sorted(ids(pets.to_table(filter=MatchQuery("cat", "Text")))) == [4, 5]
    assert pets.count_rows(DOG) == 0


def test_a_plan_names_the_query(pets: ld.LanceDataset) -> None:
    plan = pets.scanner(columns=["id"], filter=DOG & MatchQuery("puppy", "Text")).explain_plan()
    text = "BooleanQuery (MUST MatchQuery 'Dogs' in Text, MUST MatchQuery 'puppy' in Text)"
    assert f"filter: {text} (by full-text search)" in plan


@pytest.mark.parametrize("name", ["text", "TEXT", "Text", "`Text`", "`text`"])
def test_columns_are_found_in_any_case(pets: ld.LanceDataset, name: str) -> None:
    assert ids(pets.to_table(filter=MatchQuery("dog", name))) == [3, 4]
    assert sorted(ids(pets.search("dog", column=name))) == [3, 4]


def test_an_ambiguous_column_name_is_rejected(tmp_path: Path) -> None:
    table = pa.table({"Text": ["dog"], "TEXT": ["cat"], "s": [{"A": "dog"}]})
    dataset = ld.write_dataset(table, tmp_path / "t.lance")
    assert dataset.count_rows(MatchQuery("dog", "Text")) == 1
    assert dataset.count_rows(MatchQuery("dog", "S.a")) == 1
    with pytest.raises(ld.LanceDuckError, match="FTS field path 'text' does not exist"):
        dataset.count_rows(MatchQuery("dog", "text"))


def test_methods_without_query_filters_reject_them(pets: ld.LanceDataset) -> None:
    with pytest.raises(ld.LanceDuckError, match="parameters need an SQL string"):
        pets.to_table(filter=DOG, parameters=[1])
    with pytest.raises(ld.LanceDuckError, match="found MatchQuery"):
        pets.filter(DOG)
    with pytest.raises(ld.LanceDuckError, match="must contain strings"):
        pets.scanner(filter=MatchQuery("dog", "id"))
