"""Searchable columns, and rejected ones."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import UnknownColumnError, WrongTypeError
from lance_duck.query import MatchQuery


@pytest.fixture
def dataset(tmp_path: Path) -> ld.LanceDataset:
    columns = {
        "texts": [["duck", None], ["lake"]],
        "s": [{"a": "duck"}, {"a": None}],
        "structs": [[{"t": "duck"}], []],
        "lists": [[["duck"]], []],
        "json": pa.array(['{"a": "duck"}', None], pa.json_()),
    }
    return ld.write_dataset(pa.table(columns), tmp_path / "t.lance")


@pytest.mark.parametrize("name", ["texts", "s.a", "structs.t", "structs.item.t"])
def test_lists_of_strings_and_struct_fields_are_searched(dataset: ld.LanceDataset, name: str) -> None:
    assert dataset.count_rows(full_text_query=MatchQuery("duck", name)) == 1


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("structs", WrongTypeError, "'structs' must contain strings or lists of strings"),
        ("lists", WrongTypeError, "'lists' must contain strings or lists of strings"),
        ("s", WrongTypeError, "'s' must contain strings or lists of strings"),
        ("structs.t.x", UnknownColumnError, "path 'structs.t.x' does not exist"),
        ("structs.x", UnknownColumnError, "path 'structs.x' does not exist"),
        ("`s", UnknownColumnError, "path '`s' does not exist"),
    ],
)
def test_other_columns_are_rejected_by_name(
    dataset: ld.LanceDataset, name: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        dataset.scanner(full_text_query=MatchQuery("duck", name))


def test_json_is_searched_by_path_and_type(dataset: ld.LanceDataset) -> None:
    assert dataset.count_rows(full_text_query=MatchQuery("a,str,duck", "json")) == 1
    assert dataset.count_rows(full_text_query=MatchQuery("b,str,duck", "json")) == 0
