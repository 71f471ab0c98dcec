"""A server keeps the tables that requests opened last, and each request reads the newest version."""

from pathlib import Path
from shutil import rmtree

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import NotFoundError
from lance_duck.serve.gate.served_names import ServedNamespace


@pytest.fixture
def names(tmp_path: Path) -> ServedNamespace:
    table = ld.write_dataset(pa.table({"id": range(100)}), tmp_path / "t.lance")
    table.create_scalar_index("id", "BTREE")
    return ServedNamespace(str(tmp_path))


def misses() -> float:
    return sum(each.value for each in ld.metrics() if each.name == "lance_duck_cache_misses_total")


def ids(names: ServedNamespace, version: int | None = None) -> list[int]:
    found: list[int] = names.open_table("t", version).to_table(filter="id >= 99")["id"].to_pylist()
    return found


def test_the_second_request_opens_no_index_again(names: ServedNamespace) -> None:
    assert ids(names) == [99]
    before = misses()
    assert ids(names) == [99]
    assert misses() == before
    names.close_tables()
    assert ids(names) == [99]
    assert misses() > before


def test_each_request_reads_the_newest_version_or_the_one_it_names(names: ServedNamespace, tmp_path: Path) -> None:
    assert ids(names) == [99]
    ld.write_dataset(pa.table({"id": [200]}), tmp_path / "t.lance", mode="append")
    assert ids(names) == [99, 200]
    assert ids(names, 2) == [99]
    names.open_table("t").delete("id = 200")
    assert ids(names) == [99]


def test_a_table_that_replaces_another_is_read_anew(names: ServedNamespace, tmp_path: Path) -> None:
    assert ids(names) == [99]
    rmtree(tmp_path / "t.lance")
    with pytest.raises(NotFoundError):
        names.open_table("t")
    for start in (500, 700):
        ld.write_dataset(pa.table({"id": range(start, start + 2)}), tmp_path / "t.lance", mode="overwrite")
        assert ids(names) == [start, start + 1]
    rmtree(tmp_path / "t.lance")
    for start in (900, 950):  # as many versions as before
        ld.write_dataset(pa.table({"id": [start]}), tmp_path / "t.lance", mode="overwrite")
    assert ids(names) == [950]


def test_a_version_of_a_replaced_table_is_not_read(names: ServedNamespace, tmp_path: Path) -> None:
    assert ids(names) == [99]
    rmtree(tmp_path / "t.lance")
    ld.write_dataset(pa.table({"id": [900]}), tmp_path / "t.lance")
    with pytest.raises(NotFoundError):
        ids(names, 2)
    ld.write_dataset(pa.table({"id": [950]}), tmp_path / "t.lance", mode="append")
    assert ids(names, 2) == [900, 950]
