"""Each cell of the documented type table matches pylance."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_duck as ld

_PLACE = Path(__file__).parents[2] / "docs" / "generated.py"


def pages() -> Any:
    spec = importlib.util.spec_from_file_location("documentation_pages", _PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = pages()


def of_pylance(column: pa.Array, version: str, uri: str) -> str:
    """Return the table cell for pylance, which cannot read everything that it writes."""
    try:
        lance.write_dataset(pa.table({"c": column}), uri, data_storage_version=version)
        found = lance.dataset(uri).to_table().schema.field("c").type
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        return "no"
    return "yes" if found == column.type else f"as {found}"


ONLY_HERE = {"list_view": "as list<item: int32>"}
"""Types that pylance refuses, and the cells that they have."""


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_each_type_is_accepted_rejected_and_changed_like_in_pylance(version: str, tmp_path: Path) -> None:
    cells, theirs = {}, {}
    for place, (name, (type_, value)) in enumerate(PAGES.TYPES.items()):
        column = PAGES.column_of(type_, value)
        uri, other = str(tmp_path / f"{place}a"), str(tmp_path / f"{place}b")
        cells[name] = PAGES.stored_as(type_, value, version, uri)
        theirs[name] = of_pylance(column, version, other)
        if theirs[name] != "no":
            assert lance.dataset(uri).to_table() == ld.dataset(uri).to_table(), name
            assert ld.dataset(other).to_table() == lance.dataset(other).to_table(), name
    assert cells == {**theirs, **ONLY_HERE}
