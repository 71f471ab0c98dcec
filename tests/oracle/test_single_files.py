"""Single data files compared with pylance's file reader."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.file import LanceFileReader as Theirs
from lance.file import LanceFileWriter
from oracle.cases import Cases
from oracle.compare import assert_tables_same
from oracle.kinds import VERSIONS
from oracle.tables import kinds_of, make_table

from lance_duck.file import LanceFileReader

CASE_KIND = "surface"


@pytest.mark.parametrize("group", ["flat", "nested"])
@pytest.mark.parametrize("version", VERSIONS)
def test_every_type_reads_from_a_single_file(tmp_path: Path, cases: Cases, version: str, group: str) -> None:
    for kind in kinds_of(group, version, "nulls"):
        if kind.name == "json":
            continue  # pylance gives the bytes of JSONB from files, text from tables; here it is text from both
        table = make_table([kind], "nulls", 200, 3)
        path = str(tmp_path / f"{kind.name}.lance")
        try:
            with LanceFileWriter(path, version=version) as writer:
                writer.write_batch(table)
            expected = Theirs(path).read_all().to_table()
        except Exception:
            continue  # pylance writes these only in tables
        with cases.case(f"{kind.name} {version}"):
            reader = LanceFileReader(path)
            assert_tables_same(expected, reader.read_all(batch_size=70).to_table())
            assert_tables_same(expected.slice(50, 99), reader.read_range(50, 99).to_table())
            assert_tables_same(expected.take([0, 7, 199]), reader.take_rows([0, 7, 199]).to_table())
            theirs, ours = Theirs(path).metadata(), reader.metadata()
            assert ours.schema == theirs.schema
            for name in ("num_rows", "major_version", "minor_version", "num_data_bytes", "num_column_metadata_bytes"):
                assert getattr(ours, name) == getattr(theirs, name), name
            assert ours.num_global_buffer_bytes == theirs.num_global_buffer_bytes


@pytest.mark.parametrize("version", VERSIONS)
def test_files_of_a_table(tmp_path: Path, version: str) -> None:
    missing = {"x": 2, "y": {"z": None}} if version == "2.0" else None
    table = pa.table({"a": [1, 2, 3], "s": [{"x": 1, "y": {"z": "u"}}, missing, {"x": None, "y": {"z": "v"}}]})
    dataset = lance.write_dataset(table, tmp_path / "t.lance", data_storage_version=version)
    dataset.add_columns({"b": "a * 2"})
    for fragment in dataset.get_fragments():
        for file in fragment.data_files():
            path = str(tmp_path / "t.lance" / "data" / file.path)
            assert_tables_same(Theirs(path).read_all().to_table(), LanceFileReader(path).read_all().to_table())
            for columns in (["a"], ["s.y"], ["s.y.z", "a"]) if "a" in Theirs(path).metadata().schema.names else ():
                expected = Theirs(path, columns=columns).read_all().to_table()
                assert_tables_same(expected, LanceFileReader(path, columns=columns).read_all().to_table())
