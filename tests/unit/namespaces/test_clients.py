"""Catalogs that supply table locations."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck import fragment

ROWS = pa.table({"x": [1, 2]})


class Catalog:
    """A catalog that gives one answer, or raises one error."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def open_table(self) -> None:
        """Make describe_table receive the table id as a list."""

    def describe_table(self, name: list[str]) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class TableNotFoundError(Exception):
    pass


def test_settings_of_the_catalog_win(tmp_path: Path) -> None:
    ld.write_dataset(ROWS, tmp_path / "t.lance")
    answer = SimpleNamespace(location=str(tmp_path / "t.lance"), storage_options={"checksums": "false"})
    options = {"checksums": "true", "fsync": "false"}
    table = ld.dataset(namespace_client=Catalog(answer), table_id=["t"], storage_options=options)
    assert table.handle.snapshot.location.storage_options == {"checksums": "false", "fsync": "false"}


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (TableNotFoundError("gone"), ld.NotFoundError, "a\\$t: the catalog refuses describe_table: found gone"),
        (ConnectionError("away"), ld.StoreError, "found away"),
        (SimpleNamespace(location=None), ld.StoreError, "expected a location"),
        (SimpleNamespace(location="t", managed_versioning=True), ld.UnsupportedError, "manage table versions"),
    ],
)
def test_invalid_catalog_responses_raise_errors(answer: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        ld.dataset(namespace_client=Catalog(answer), table_id=["a", "t"])


@pytest.mark.parametrize("table_id", ["t", 3])
def test_a_name_is_a_list(table_id: Any) -> None:
    with pytest.raises(ld.WrongTypeError, match="table_id"):
        ld.dataset(namespace_client=Catalog(None), table_id=table_id)


def test_fragments_and_commits_use_storage_options_of_a_catalog(tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    ld.write_dataset(ROWS, uri)
    catalog = Catalog(SimpleNamespace(location=str(uri), storage_options={"checksums": "false"}))
    lent: dict[str, Any] = {"namespace_client": catalog, "table_id": ["t"]}
    fragments = [*fragment.write_fragments(ROWS, uri, **lent), ld.LanceFragment.create(uri, ROWS, **lent)]
    table = ld.LanceDataset.commit(uri, ld.LanceOperation.Append(fragments), read_version=1, **lent)
    assert table.count_rows() == 6
    assert table.handle.snapshot.location.storage_options == {"checksums": "false"}
    with pytest.raises(ld.InvalidInputError, match="namespace_client and table_id: expected both"):
        fragment.write_fragments(ROWS, uri, table_id=["t"])


def test_base_path_settings_apply_only_to_that_base_path(tmp_path: Path) -> None:
    base = ld.DatasetBasePath(str(tmp_path / "other"), "other", id=3)
    ld.write_dataset(ROWS, tmp_path / "t.lance", initial_bases=[base], target_bases=["other"])
    params = {str(tmp_path / "other"): {"checksums": "false"}}
    table = ld.dataset(tmp_path / "t.lance", base_store_params=params)
    assert table.handle.snapshot.location.storage_options == {"base_3.checksums": "false"}
    assert table.count_rows() == 2
    with pytest.raises(ld.InvalidInputError):
        ld.dataset(tmp_path / "t.lance", base_store_params={"nowhere": {"checksums": "false"}})
