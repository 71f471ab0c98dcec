"""Tables that change under pylance: every version of them reads the same in both."""

from __future__ import annotations

import datetime
import json
import time
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from oracle import life
from oracle.cases import Cases
from oracle.kinds import VERSIONS
from support.matrix import pairwise

import lance_duck as ld

CASE_KIND = "life cycle"
SEED = 11
ROUNDING = datetime.timedelta(microseconds=1)  # pylance turns nanoseconds into a float of seconds


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(SEED)


def compare_all(cases: Cases, uri: str, *, stable: bool = False) -> None:
    """Compare every version, and their list."""
    theirs, ours = lance.dataset(uri), ld.dataset(uri)
    with cases.case("versions"):
        assert [v["version"] for v in ours.versions()] == [v["version"] for v in theirs.versions()]
        for left, right in zip(ours.versions(), theirs.versions(), strict=True):
            assert abs(left["timestamp"] - right["timestamp"]) <= ROUNDING
        assert ours.latest_version == theirs.latest_version
    for version in theirs.versions():
        life.compare(cases, uri, version["version"], stable=stable)


@pytest.mark.parametrize(
    ("change", "version", "stable"),
    pairwise(
        life.CHANGES,
        VERSIONS,
        [False, True],
        ids=[[change.__name__ for change in life.CHANGES], VERSIONS, ["addresses", "stable_ids"]],
    ),
)
def test_each_change_reads_the_same_in_both_libraries(
    change: life.Change, version: str, stable: bool, tmp_path: Path, cases: Cases, rng: np.random.Generator
) -> None:
    uri = str(tmp_path / "t.lance")
    dataset = life.create(uri, rng, data_storage_version=version, enable_stable_row_ids=stable)
    life.delete_few(dataset, rng)
    change(dataset, rng)
    life.compare(cases, uri, stable=stable)
    life.compare(cases, uri, 1, stable=stable)


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable_ids"])
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(s, marks=pytest.mark.slow) for s in range(4, 60))])
def test_random_changes_read_the_same_in_both_libraries(seed: int, stable: bool, tmp_path: Path, cases: Cases) -> None:
    rng = np.random.default_rng([SEED, seed])
    uri = str(tmp_path / "t.lance")
    version = VERSIONS[seed % 3]
    dataset = life.create(uri, rng, data_storage_version=version, enable_stable_row_ids=stable)
    for i in rng.integers(0, len(life.CHANGES), 12):
        life.CHANGES[i](dataset, rng)
    compare_all(cases, uri, stable=stable)


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable_ids"])
def test_both_deletion_file_formats_read_the_same(stable: bool, tmp_path: Path, cases: Cases) -> None:
    uri = str(tmp_path / "t.lance")
    table = pa.table({"key": np.arange(40_000), "text": pa.array(["t"] * 40_000)})
    dataset = lance.write_dataset(table, uri, max_rows_per_file=20_000, enable_stable_row_ids=stable)
    dataset.delete("key % 1000 = 3")
    life.compare(cases, uri, stable=stable)
    dataset.delete("key % 3 = 1")
    life.compare(cases, uri, stable=stable)
    assert {f.suffix for f in (tmp_path / "t.lance/_deletions").iterdir()} == {".arrow", ".bin"}
    dataset.optimize.compact_files()
    life.compare(cases, uri, stable=stable)
    dataset.delete("key BETWEEN 100 AND 30000")
    life.compare(cases, uri, stable=stable)


def test_a_table_with_all_rows_deleted_reads_the_same(tmp_path: Path, cases: Cases, rng: np.random.Generator) -> None:
    uri = str(tmp_path / "t.lance")
    life.create(uri, rng).delete("true")
    compare_all(cases, uri)


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable_ids"])
def test_tags_and_branches_read_the_same(stable: bool, tmp_path: Path, cases: Cases, rng: np.random.Generator) -> None:
    uri = str(tmp_path / "t.lance")
    dataset = life.create(uri, rng, enable_stable_row_ids=stable)
    life.delete_few(dataset, rng)
    dataset.tags.create("first", 1)
    branch = dataset.create_branch("team/exp-1", 1)
    life.append(branch, rng)
    life.delete_many(branch, rng)
    grandchild = branch.create_branch("deeper", ("team/exp-1", branch.version))
    life.update(grandchild, rng)
    life.append(dataset, rng)
    branch.tags.create("on-branch", ("team/exp-1", branch.version))
    references: list[life.Version] = ["first", "on-branch", ("team/exp-1", 1), ("team/exp-1", branch.version)]
    references += [("deeper", grandchild.version), ("main", 2), ("team/exp-1", None), (None, 1)]
    for reference in references:
        life.compare(cases, uri, reference, stable=stable)
    with cases.case("lists", 2):
        ours = ld.dataset(uri)
        assert ours.tags.list() == dataset.tags.list()
        assert ours.tags.list_ordered() == dataset.tags.list_ordered()
        assert ours.branches.list_ordered("asc") == dataset.branches.list_ordered("asc")
        left, right = ours.get_version(), dataset.get_version()
        assert abs(left.pop("timestamp") - right.pop("timestamp")) <= ROUNDING
        assert (left, ours.version_refs()) == (right, dataset.version_refs())
        assert ours.branches.list() == dataset.branches.list()
    with cases.case("checkout"):
        assert ld.dataset(uri).checkout_version(("deeper", None)).count_rows() == grandchild.count_rows()
        assert ld.dataset(uri).checkout_version("first").version == 1


def test_clones_read_the_same_in_both_libraries(tmp_path: Path, cases: Cases, rng: np.random.Generator) -> None:
    dataset = life.create(str(tmp_path / "t.lance"), rng)
    life.delete_few(dataset, rng)
    dataset.tags.create("tagged", 1)
    for name, reference in (("one", 1), ("two", 2), ("three", "tagged")):
        clone = dataset.shallow_clone(str(tmp_path / f"{name}.lance"), reference)
        life.compare(cases, clone.uri)
        life.append(clone, rng)
        life.delete_many(clone, rng)
        life.compare(cases, clone.uri)
    again = clone.shallow_clone(str(tmp_path / "clone_of_clone.lance"), clone.version)
    life.compare(cases, again.uri)
    life.compare(cases, dataset.deep_clone(str(tmp_path / "deep.lance"), 2).uri)


@pytest.mark.parametrize("root", [True, False])
def test_data_in_several_base_paths_reads_the_same(
    root: bool, tmp_path: Path, cases: Cases, rng: np.random.Generator
) -> None:
    uri = str(tmp_path / "t.lance")
    bases = [lance.DatasetBasePath(str(tmp_path / name), name, is_dataset_root=root) for name in ("east", "west")]
    lance.write_dataset(life.rows(rng, 50), uri, initial_bases=bases, target_bases=["east"])
    dataset = lance.write_dataset(life.rows(rng, 50, 50), uri, mode="append", target_bases=["west"])
    life.append(dataset, rng)
    life.delete_few(dataset, rng)
    compare_all(cases, uri)


def test_manifests_with_v1_names_read_the_same(tmp_path: Path, cases: Cases, rng: np.random.Generator) -> None:
    uri = str(tmp_path / "t.lance")
    dataset = life.create(uri, rng, enable_v2_manifest_paths=False)
    for _ in range(10):
        life.delete_few(dataset, rng)
    compare_all(cases, uri)
    dataset.migrate_manifest_paths_v2()
    compare_all(cases, uri)


def test_mixed_file_versions_read_the_same(tmp_path: Path, cases: Cases, rng: np.random.Generator) -> None:
    uri = str(tmp_path / "t.lance")
    life.create(uri, rng, data_storage_version="2.1")
    for i, version in enumerate(VERSIONS):
        table = life.rows(rng, 40, 1000 * (i + 1))
        lance.write_dataset(table, uri, mode="append", data_storage_version=version)
    compare_all(cases, uri)


def test_as_of_a_time(tmp_path: Path, cases: Cases, rng: np.random.Generator) -> None:
    uri = str(tmp_path / "t.lance")
    dataset = life.create(uri, rng)
    for _ in range(3):
        time.sleep(0.01)
        life.delete_few(dataset, rng)
    for version in dataset.versions():
        asof = version["timestamp"] + datetime.timedelta(milliseconds=1)
        with cases.case(f"asof {asof}"):
            assert ld.dataset(uri, asof=asof).version == lance.dataset(uri, asof=asof).version == version["version"]
    with pytest.raises(ValueError, match=r"."):
        ld.dataset(uri, asof=dataset.versions()[0]["timestamp"] - datetime.timedelta(days=1))


@pytest.mark.parametrize("text", ["", "garbage", '{"version":1}', '{"version":99}', '{"version":-1}', "[]", None])
def test_the_hint_is_only_a_hint(text: str | None, tmp_path: Path, cases: Cases, rng: np.random.Generator) -> None:
    uri = str(tmp_path / "t.lance")
    dataset = life.create(uri, rng)
    life.append(dataset, rng)
    hint = tmp_path / "t.lance/_versions/latest_version_hint.json"
    assert json.loads(hint.read_text()) == {"version": 2}
    hint.unlink() if text is None else hint.write_text(text)
    life.compare(cases, uri)
    assert ld.dataset(uri).version == 2


def test_columns_rewritten_in_place_read_the_same(tmp_path: Path, cases: Cases, rng: np.random.Generator) -> None:
    uri = str(tmp_path / "t.lance")
    dataset = life.create(uri, rng)
    life.delete_few(dataset, rng)
    changed, fields = [], []
    for fragment in dataset.get_fragments():
        keys = fragment.to_table(columns=["key"], with_row_id=True)
        source = pa.table({"_rowid": keys["_rowid"], "number": rng.integers(0, 9, keys.num_rows)})
        metadata, fields = fragment.update_columns(source, left_on="_rowid", right_on="_rowid")
        changed.append(metadata)
    operation = lance.LanceOperation.Update(updated_fragments=changed, fields_modified=fields)
    lance.LanceDataset.commit(uri, operation, read_version=dataset.version)
    compare_all(cases, uri)


def test_metadata_of_the_table(tmp_path: Path, cases: Cases, rng: np.random.Generator) -> None:
    uri = str(tmp_path / "t.lance")
    dataset = life.create(uri, rng)
    life.configure(dataset, rng)
    dataset.update_field_metadata({"text": {"unit": "none"}})
    compare_all(cases, uri)
    with cases.case("metadata"):
        ours = ld.dataset(uri)
        assert (ours.config(), ours.metadata, ours.schema_metadata) == (
            dataset.config(),
            dataset.metadata,
            dataset.schema_metadata,
        )
