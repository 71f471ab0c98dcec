"""Catalogs that are asked where a table is."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import lance_duck as ld

ROWS = pa.table({"x": [1, 2]})


class Catalog:
    """A catalog that gives one answer, or raises one error."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def open_table(self) -> None:
        """Say that names are asked for as they are."""

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
        (SimpleNamespace(location="t", managed_versioning=True), ld.UnsupportedError, "keeps the versions"),
    ],
)
def test_what_a_catalog_cannot_say_is_an_error(answer: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        ld.dataset(namespace_client=Catalog(answer), table_id=["a", "t"])


@pytest.mark.parametrize("table_id", ["t", 3])
def test_a_name_is_a_list(table_id: Any) -> None:
    with pytest.raises(ld.WrongTypeError, match="table_id"):
        ld.dataset(namespace_client=Catalog(None), table_id=table_id)
