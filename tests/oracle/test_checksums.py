"""Files with checksums compared with pylance, which reads, changes and rewrites them without checksums."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld

ROWS = pa.table({"a": np.arange(4000), "s": [f"text {i % 91}" for i in range(4000)]})


def states(path: Path) -> set[tuple[str, str]]:
    return {(file.kind, file.checksums) for file in ld.dataset(path).check_files()}


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_pylance_reads_changes_and_rewrites_a_table_with_checksums(version: str, tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    ours = ld.write_dataset(ROWS, path, data_storage_version=version, max_rows_per_file=1500)
    ours.create_scalar_index("a", "BTREE")
    ours.delete("a < 10 OR a = 2000")
    kinds = ("manifest", "transaction", "data", "index", "deletions")
    assert states(path) == {(kind, "sound") for kind in kinds}

    theirs = lance.dataset(str(path))
    assert theirs.to_table().num_rows == 3989
    assert theirs.to_table(filter="a = 77").num_rows == 1
    theirs.delete("a = 77")
    theirs.insert(ROWS.slice(0, 5))
    theirs.optimize.optimize_indices()
    assert ("manifest", "none") in states(path)
    assert ("data", "sound") in states(path)
    assert ("data", "none") in states(path)
    assert ld.dataset(path).count_rows("a = 77") == 0
    assert ld.dataset(path).find_problems() == []

    theirs.optimize.compact_files(target_rows_per_fragment=10_000)
    theirs.validate()
    assert states(path) == {(kind, "none") for kind in ("manifest", "transaction", "data", "index")}
    ours = ld.dataset(path)
    ours.delete("a = 78")
    assert ("manifest", "sound") in states(path)
    assert ("deletions", "sound") in states(path)
    assert lance.dataset(str(path)).count_rows() == 3992


def test_pylance_reads_and_moves_sealed_tags_and_reads_sealed_branches_and_transactions(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    ours = ld.write_dataset(ROWS, path)
    ours.insert(ROWS)
    ours.tags.create("one", 1)
    ours.create_branch("side", 2)
    assert {("tag", "sound"), ("branch", "sound"), ("transaction", "sound")} <= states(path)
    theirs = lance.dataset(str(path))
    assert theirs.checkout_version("one").count_rows() == 4000
    assert theirs.checkout_version(("side", None)).count_rows() == 8000
    assert theirs.branches.list()["side"]["parent_version"] == 2
    assert isinstance(theirs.read_transaction(2).operation, lance.LanceOperation.Append)
    theirs.tags.update("one", 2)
    assert ("tag", "none") in states(path)
    assert ld.dataset(path, "one").count_rows() == 8000
    ours.tags.update("one", 1)
    assert ("tag", "sound") in states(path)
    assert ld.dataset(path).find_problems() == []


@pytest.mark.parametrize(("rows", "most"), [(10, 450), (1_000_000, 3_000)])
def test_checksums_take_few_bytes(rows: int, most: int, tmp_path: Path) -> None:
    table = pa.table({"a": np.random.default_rng(1).random(rows), "b": np.arange(rows)})
    sizes = []
    for choice in ("true", "false"):
        path = tmp_path / f"{choice}.lance"
        ld.write_dataset(table, path, storage_options={"checksums": choice})
        (file,) = (path / "data").iterdir()
        sizes.append(file.stat().st_size)
    assert 0 < sizes[0] - sizes[1] < most


def test_checksums_can_be_disabled(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    ours = ld.write_dataset(ROWS, path, storage_options={"checksums": "false"})
    ours.create_scalar_index("a", "BTREE")
    ours.delete("a = 5")
    assert {state for _, state in states(path)} == {"none"}
    assert lance.dataset(str(path)).count_rows() == 3999
