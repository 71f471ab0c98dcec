"""Validation names everything that is wrong."""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import CorruptError


@pytest.fixture
def dataset(tmp_path: Path) -> ld.LanceDataset:
    path = tmp_path / "t.lance"
    dataset = ld.write_dataset(pa.table({"id": range(100)}), path, enable_stable_row_ids=True)
    dataset.insert(pa.table({"id": range(100, 200)}))
    dataset.delete("id % 10 = 0")
    return dataset


def test_a_valid_table_has_no_problems(dataset: ld.LanceDataset) -> None:
    dataset.validate()
    assert dataset.find_problems() == []


def test_every_problem_names_its_location(dataset: ld.LanceDataset) -> None:
    path = Path(dataset.uri)
    (gone,) = dataset.get_fragments()[0].data_files()
    (path / "data" / gone.path).unlink()
    deletion = path / str(dataset.get_fragments()[1].deletion_file())
    deletion.write_bytes(deletion.read_bytes()[:100])
    problems = ld.dataset(path).find_problems()
    assert [p.where for p in problems] == [f"fragment 0: {gone.path}", "fragment 1: deletion file"]
    with pytest.raises(CorruptError, match=r"2 problem\(s\)") as raised:
        ld.dataset(path).validate()
    assert all(str(p) in str(raised.value) for p in problems)


def test_a_tag_of_a_removed_version_is_a_problem(dataset: ld.LanceDataset) -> None:
    dataset.tags.create("old", 1)
    name = sorted((Path(dataset.uri) / "_versions").glob("*.manifest"))[-1]
    name.unlink()
    assert [p.where for p in ld.dataset(dataset.uri).find_problems()] == ["tag 'old'"]


@pytest.mark.parametrize("position", [(1 << 64) - 10, 1 << 63])
def test_a_blob_whose_end_is_beyond_all_numbers_is_a_problem(position: int, tmp_path: Path) -> None:
    metadata = {
        "lance-encoding:blob": "true",
        "lance-encoding:blob-inline-size-threshold": "100",
        "lance-encoding:blob-dedicated-size-threshold": "70000",
    }
    blobs = pa.array([bytes(300), bytes(40_000), bytes(50_000)], pa.large_binary())
    table = pa.table([blobs], schema=pa.schema([pa.field("b", blobs.type, metadata=metadata)]))
    ld.write_dataset(table, tmp_path / "t.lance", storage_options={"checksums": "false"})
    (file,) = (tmp_path / "t.lance" / "data").glob("*.lance")
    place = struct.pack("<QQ", 300, 40_000)
    data = file.read_bytes()
    assert data.count(place) == 1
    file.write_bytes(data.replace(place, struct.pack("<QQ", position, 40_000)))
    problems = ld.dataset(tmp_path / "t.lance").find_problems()
    assert ["beyond the end of its file" in problem.what for problem in problems] == [True]
