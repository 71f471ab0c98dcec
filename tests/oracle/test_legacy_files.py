"""Data files of version 0.1, written by pylance: read as it reads them, changed, compacted, never mixed with others."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from oracle.cases import Cases
from oracle.compare import assert_fields_same, assert_same, assert_tables_same
from oracle.tables import ID, KINDS, make_table

import lance_duck as ld
from lance_duck.errors import RetryableError, UnsupportedError
from lance_duck.store.request import watched

ROWS, GROUP = 300, 47
NOT_TAKEN = {"fsl_bool_3"}  # pylance 14.0.2 cannot take single rows of it
NOT_WRITTEN = {("struct_deep", "sliced")}


@pytest.fixture(scope="module", params=["none", "nulls", "all_null", "sliced"])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    pattern = request.param
    kinds = [k for k in KINDS if pattern in k.patterns() and not k.is_refused("legacy", pattern)]
    kinds = [k for k in kinds if (k.name, pattern) not in NOT_WRITTEN and not k.wide]
    uri = str(tmp_path_factory.mktemp("legacy") / "t.lance")
    table = make_table(kinds, pattern, ROWS)
    lance.write_dataset(table, uri, data_storage_version="legacy", max_rows_per_group=GROUP)
    return uri


def columns_of(uri: str) -> pa.Table:
    """Read a table with pylance that was not the writer: that one still knows the dictionaries that it was given."""
    return lance.dataset(uri).to_table()


def test_legacy_columns_of_every_type_are_read_like_pylance(written: str, cases: Cases) -> None:
    expected, dataset = columns_of(written), ld.dataset(written)
    found = dataset.to_table()
    rows = [0, 1, GROUP - 1, GROUP, 3 * GROUP, ROWS - 2, ROWS - 1]
    taken = dataset.take(rows)
    for field in expected.schema:
        with cases.case(field.name):
            assert_fields_same(field, found.schema.field(field.name))
            assert_same(expected[field.name], found[field.name])
            assert_same(expected[field.name].take(rows), taken[field.name])


def test_legacy_filters_limits_and_offsets_equal_those_of_pylance(written: str) -> None:
    columns = [ID, "string_few", "bool_random", "list_string", "struct_list"]
    expected, dataset = columns_of(written).select(columns), ld.dataset(written)
    found = dataset.to_table(columns, filter=f"{ID} % 7 = 3 OR {ID} BETWEEN 50 AND 90")
    ids = expected[ID].to_numpy()
    assert_tables_same(expected.take(np.flatnonzero((ids % 7 == 3) | ((ids >= 50) & (ids <= 90)))), found)
    assert_tables_same(expected.slice(40, 20), dataset.to_table(columns, offset=40, limit=20))


def test_a_legacy_take_reads_only_its_rows(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    texts = [f"{i:0100}" for i in range(4000)]
    lance.write_dataset(pa.table({"i": range(4000), "s": texts}), uri, data_storage_version="legacy")
    dataset = ld.dataset(uri)
    dataset.take([0])
    with watched() as read:
        assert dataset.take([5, 3999, 2000])["s"].to_pylist() == [texts[5], texts[3999], texts[2000]]
    assert read.size < 1000


@pytest.fixture
def evolved(tmp_path: Path) -> str:
    """A table of several files a fragment, of several batches and fragments, with deleted and updated rows."""
    uri = str(tmp_path / "evolved.lance")
    options: dict[str, Any] = {"data_storage_version": "legacy", "max_rows_per_group": 16}

    def rows(start: int, stop: int) -> pa.Table:
        values = range(start, stop)
        return pa.table(
            {
                "id": pa.array(values, pa.int64()),
                "s": [None if i % 7 == 0 else "s" * (i % 5) for i in values],
                "l": [[i] * (i % 3) for i in values],
                "st": [{"p": i, "q": {"r": str(i)}} for i in values],
            }
        )

    lance.write_dataset(rows(0, 50), uri, max_rows_per_file=40, **options)
    dataset = lance.write_dataset(rows(50, 90), uri, mode="append", **options)
    dataset.delete("id IN (3, 4, 5, 60, 61)")
    dataset.add_columns({"twice": "id * 2"})
    dataset.update({"s": "'new'"}, where="id = 10")
    dataset.alter_columns({"path": "twice", "name": "double"})
    dataset.drop_columns(["l"])
    dataset.merge(pa.table({"id": range(90), "extra": [f"e{i}" for i in range(90)]}), "id")
    return uri


def test_every_version_of_an_evolved_legacy_table_is_readable(evolved: str) -> None:
    for version in range(1, lance.dataset(evolved).version + 1):
        theirs, ours = lance.dataset(evolved, version=version), ld.dataset(evolved, version=version)
        assert ours.count_rows() == theirs.count_rows()
        assert_tables_same(theirs.to_table(with_row_id=True), ours.to_table(with_row_id=True))
    ours.validate()
    assert {file.checksums for file in ours.check_files()} == {"none"}


def test_compaction_rewrites_a_legacy_table_as_2_2(evolved: str) -> None:
    expected = lance.dataset(evolved).to_table()
    dataset = ld.dataset(evolved)
    dataset.create_scalar_index("id", "BTREE")
    dataset.optimize.compact_files(target_rows_per_fragment=40)
    assert dataset.data_storage_version == "2.2"
    assert dataset.to_table(filter="id = 77") == expected.slice(expected["id"].to_pylist().index(77), 1)
    more = expected.slice(0, 2)
    dataset = ld.write_dataset(more, evolved, mode="append")
    dataset.validate()
    theirs = lance.dataset(evolved)
    theirs.validate()
    assert theirs.data_storage_version == "2.2"
    assert_tables_same(pa.concat_tables([expected, more]), theirs.to_table())
    assert theirs.to_table(filter="id = 77")["extra"].to_pylist() == ["e77"]
    assert_tables_same(pa.concat_tables([expected, more]), dataset.to_table())


def test_pylance_sees_rows_deleted_from_a_legacy_table(evolved: str) -> None:
    ld.dataset(evolved).delete("id BETWEEN 70 AND 79")
    theirs = lance.dataset(evolved)
    assert theirs.count_rows() == 75
    assert_tables_same(theirs.to_table(), ld.dataset(evolved).to_table())


def test_changes_that_would_mix_file_versions_are_rejected_with_a_remedy(evolved: str) -> None:
    before = lance.dataset(evolved).to_table()
    files = {*Path(evolved).rglob("*.lance")}
    with pytest.raises(UnsupportedError, match=r"compact_files\(\)"):
        ld.write_dataset(before, evolved, mode="append", data_storage_version="2.2")
    assert {*Path(evolved).rglob("*.lance")} == files
    assert_tables_same(before, lance.dataset(evolved).to_table())


def test_changes_write_files_of_version_0_1(evolved: str) -> None:
    before = lance.dataset(evolved).to_table()
    dataset = ld.write_dataset(before, evolved, mode="append")
    dataset.update({"extra": "'other'"}, where="id = 1")
    dataset.add_columns({"more": "id"})
    dataset.merge_insert("id").when_matched_update_all().execute(dataset.to_table(filter="id = 3 OR id = 7").slice(1))
    theirs = lance.dataset(evolved)
    assert theirs.data_storage_version == dataset.data_storage_version == "0.1"
    assert theirs.count_rows() == 2 * before.num_rows
    assert_tables_same(theirs.to_table(), dataset.to_table())


def test_manifest_dictionaries_are_read_kept_and_compacted(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    words = pa.array([["x", "", "z"][i % 3] for i in range(40)]).dictionary_encode()
    numbers = pa.DictionaryArray.from_arrays(pa.array([i % 3 for i in range(40)], pa.int8()), pa.array([10, 20, 30]))
    options: dict[str, Any] = {"data_storage_version": "legacy", "max_rows_per_group": 16}
    lance.write_dataset(pa.table({"i": range(40), "w": words, "n": numbers}), uri, **options)
    expected, dataset = lance.dataset(uri).to_table(), ld.dataset(uri)
    assert_tables_same(expected, dataset.to_table())
    dataset.delete("i = 3")
    left = [row for row in expected.to_pylist() if row["i"] != 3]
    assert lance.dataset(uri).to_table().to_pylist() == dataset.to_table().to_pylist() == left
    dataset.update({"n": "20"}, where="i = 3")
    for version, options in {"0.1": {"data_storage_version": "legacy"}, "2.2": {}}.items():
        dataset.optimize.compact_files(**options)
        assert lance.dataset(uri).to_table().to_pylist() == dataset.to_table().to_pylist() == left
        assert lance.dataset(uri).data_storage_version == dataset.data_storage_version == version


def test_partial_compaction_into_another_file_version_is_rejected(evolved: str) -> None:
    dataset, before = ld.dataset(evolved), lance.dataset(evolved).to_table()
    with pytest.raises(UnsupportedError, match="excluded"):
        dataset.optimize.compact_files(excluded_fragment_ids=[0])
    plan = ld.optimize.Compaction.plan(dataset, {"target_rows_per_fragment": 30})
    assert plan.num_tasks() > 1
    done = [task.execute(dataset) for task in plan.tasks]
    with pytest.raises(RetryableError, match="all fragments"):
        ld.optimize.Compaction.commit(dataset, done[:1])
    assert_tables_same(before, lance.dataset(evolved).to_table())
    ld.optimize.Compaction.commit(dataset, done)
    assert_tables_same(before, lance.dataset(evolved).to_table())


def test_partial_compaction_keeps_the_file_version(evolved: str) -> None:
    expected, dataset = lance.dataset(evolved).to_table(), ld.dataset(evolved)
    ids = [fragment.fragment_id for fragment in dataset.get_fragments()]
    dataset.optimize.compact_files(excluded_fragment_ids=ids[:1], data_storage_version="0.1")
    assert lance.dataset(evolved).get_fragments()[0].fragment_id == ids[0]
    assert len(lance.dataset(evolved).get_fragments()) < len(ids)
    assert lance.dataset(evolved).data_storage_version == dataset.data_storage_version == "0.1"
    assert_tables_same(expected, lance.dataset(evolved).to_table())
    assert_tables_same(expected, dataset.to_table())
    dataset.optimize.compact_files(max_source_fragments=1)
    assert {f.data_files()[0].file_major_version for f in lance.dataset(evolved).get_fragments()} == {2}
    assert_tables_same(expected, lance.dataset(evolved).to_table())


def test_rows_appended_by_pylance_during_compaction_are_kept(evolved: str) -> None:
    dataset = ld.dataset(evolved)
    plan = ld.optimize.Compaction.plan(dataset, {})
    done = [task.execute(dataset) for task in plan.tasks]
    row = lance.dataset(evolved).to_table().slice(0, 1)
    lance.write_dataset(row, evolved, mode="append")
    with pytest.raises(RetryableError, match="compact all fragments"):
        ld.optimize.Compaction.commit(dataset, done)
    ld.dataset(evolved).optimize.compact_files()
    assert ld.dataset(evolved).count_rows() == lance.dataset(evolved).count_rows() == 86


def test_a_manifest_that_counts_less_bytes_than_a_file_has(tmp_path: Path) -> None:
    """pylance 1.0.4 to 4.0.2 write such counts."""
    table = pa.table({"a": range(9)})
    source = lance.write_dataset(table, str(tmp_path / "s.lance"), data_storage_version="legacy")
    fragment = source.get_fragment(0).metadata.to_json()
    fragment["files"][0]["file_size_bytes"] -= 100
    operation = lance.LanceOperation.Overwrite(source.schema, [lance.FragmentMetadata.from_json(json.dumps(fragment))])
    shutil.copytree(tmp_path / "s.lance" / "data", tmp_path / "t.lance" / "data")
    lance.LanceDataset.commit(str(tmp_path / "t.lance"), operation)
    dataset = ld.dataset(str(tmp_path / "t.lance"))
    assert dataset.to_table() == table
    dataset.validate()


def test_the_first_column_of_a_legacy_file_can_be_updated(tmp_path: Path) -> None:
    """The field id is the lowest in both the old and the new file. pylance 14 can no longer read such a table."""
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"a": range(9), "b": range(9), "c": range(9)}), uri, data_storage_version="legacy")
    dataset = lance.dataset(uri)
    fragment = dataset.get_fragment(0)
    new, fields = fragment.update_columns(
        pa.table({"_rowid": pa.array(range(9), pa.uint64()), "a": pa.array([10 * i for i in range(9)])}),
        left_on="_rowid",
        right_on="_rowid",
    )
    lance.LanceDataset.commit(
        uri, lance.LanceOperation.Update(updated_fragments=[new], fields_modified=fields), read_version=dataset.version
    )
    found = ld.dataset(uri).to_table()
    assert found.to_pydict() == {"a": [10 * i for i in range(9)], "b": [*range(9)], "c": [*range(9)]}


def test_a_legacy_file_can_be_opened_directly(evolved: str) -> None:
    path = next(p for p in sorted(Path(evolved, "data").iterdir()) if ld.file.LanceFileReader(str(p)).num_rows() == 40)
    reader = ld.file.LanceFileReader(str(path))
    table = reader.read_all().to_table()
    assert reader.take_rows([1, 39]).to_table() == table.take([1, 39])
    facts = reader.metadata()
    assert (facts.num_rows, facts.minor_version, facts.num_global_buffer_bytes) == (40, 2, 0)
    assert 0 < facts.num_data_bytes < os.path.getsize(path)
    assert sum(column.size_bytes for column in reader.file_statistics().columns) == facts.num_data_bytes
