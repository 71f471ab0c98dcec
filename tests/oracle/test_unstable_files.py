"""Data files of version 2.3, which pylance 14 writes for the curious: each kind of column reads as pylance reads it."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from oracle.cases import Cases
from oracle.compare import assert_fields_same, assert_same
from oracle.tables import KINDS, make_table

import lance_duck as ld
from lance_duck.errors import UnsupportedError
from lance_duck.wire.fragment import LEGACY, UNSTABLE
from lance_duck.write.options import NEWEST

ROWS = 900
NOT_WRITTEN = {"fsl_struct", "fsl_struct_null_items", "fsl_string", "list_packed"}


@pytest.mark.parametrize("pattern", ["none", "nulls", "all_null"])
def test_unstable_file_versions_are_read_for_every_type(pattern: str, tmp_path: Path, cases: Cases) -> None:
    kinds = [k for k in KINDS if pattern in k.patterns() and not k.is_refused("2.2", pattern) and not k.wide]
    kinds = [k for k in kinds if k.name not in NOT_WRITTEN and not k.name.startswith("packed")]
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(make_table(kinds, pattern, ROWS), uri, data_storage_version="2.3")
    dataset, theirs = ld.dataset(uri), lance.dataset(uri)
    rows = [0, 1, 5, 300, ROWS - 1]
    found, taken = dataset.to_table(), dataset.take(rows)
    for kind in kinds:
        with cases.case(kind.name):
            expected = theirs.to_table(columns=[kind.name])
            assert_fields_same(expected.schema.field(0), found.schema.field(kind.name))
            assert_same(expected.column(0), found[kind.name])
            assert_same(expected.column(0).take(rows), taken[kind.name])


def test_lists_of_few_values_and_strings_among_many_nulls_read_correctly(tmp_path: Path) -> None:
    texts = [f"{i} " * 200 if i % 6 == 0 else None for i in range(ROWS)]
    lists = [[*range(i)] if i % 40 == 0 else [] for i in range(ROWS)]
    structs = [None if i % 9 == 0 else {"t": texts[i], "n": 7} for i in range(ROWS)]
    table = pa.table({"t": texts, "l": lists, "s": structs})
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(table, uri, data_storage_version="2.3")
    dataset = ld.dataset(uri)
    assert dataset.to_table().to_pylist() == table.to_pylist()
    assert dataset.take([0, 1, 6, 899, 120]).to_pylist() == table.take([0, 1, 6, 899, 120]).to_pylist()


def test_unstable_file_versions_are_read_and_compacted_but_not_written(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    table = pa.table({"i": range(20), "s": [f"text {i}" for i in range(20)]})
    lance.write_dataset(table, uri, data_storage_version="2.3", max_rows_per_file=10)
    with pytest.raises(UnsupportedError, match=r"compact_files\(\)"):
        ld.write_dataset(table, uri, mode="append")
    dataset = ld.dataset(uri)
    dataset.delete("i = 3")
    dataset.optimize.compact_files()
    assert lance.dataset(uri).to_table() == dataset.to_table()
    assert {file.file_minor_version for f in dataset.get_fragments() for file in f.metadata.files} == {2}
    ld.write_dataset(table, uri, mode="append")
    theirs = lance.dataset(uri)
    assert (theirs.data_storage_version, dataset.data_storage_version, theirs.count_rows()) == ("2.2", "2.2", 39)
    assert theirs.to_table() == ld.dataset(uri).to_table()


@pytest.mark.parametrize("type_", [pa.list_(pa.struct([])), pa.list_(pa.struct([]), 1)], ids=["list", "vector"])
def test_lists_of_empty_structs_are_rejected(type_: pa.DataType, tmp_path: Path) -> None:
    """pylance cannot read such lists that it wrote."""
    lance.write_dataset(pa.table({"x": pa.array([[{}]] * 9, type_)}), str(tmp_path), data_storage_version="2.3")
    with pytest.raises(UnsupportedError, match="lists of structs without fields are not supported"):
        ld.dataset(str(tmp_path)).to_table()


@pytest.mark.parametrize(("name", "version"), [("stable", NEWEST), ("next", UNSTABLE), ("legacy", LEGACY)])
def test_file_versions_have_the_same_names_as_in_pylance(name: str, version: str, tmp_path: Path) -> None:
    """A later pylance that calls this version stable fails here: it is to be written then."""
    dataset = lance.write_dataset(pa.table({"x": [1]}), str(tmp_path), data_storage_version=name)
    assert dataset.data_storage_version == version
