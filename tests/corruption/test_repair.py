"""Tables with damaged files continue without the lost rows; pylance and this package read the rest."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from corruption.test_checksums import padding

import lance_duck as ld
from lance_duck.errors import CorruptError, InvalidInputError, UnsupportedError
from lance_duck.snapshot import Snapshot

ROWS = 40_000


@pytest.fixture(params=["2.0", "2.1", "2.2"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    generator = np.random.default_rng(1)
    data = pa.table({"a": np.arange(ROWS), "x": generator.random(ROWS), "s": [f"text {i % 7}" for i in range(ROWS)]})
    path = tmp_path / "t.lance"
    dataset = ld.write_dataset(data, path, data_storage_version=request.param, max_rows_per_file=ROWS // 2)
    dataset.create_scalar_index("a", "BTREE")
    dataset.delete("a IN (3, 5, 30000)")
    return path


def damage(file: Path, place: int | None = None) -> None:
    """Flip a bit of a byte that matters: the given one, or the middle one."""
    data = bytearray(file.read_bytes())
    places = np.flatnonzero(~padding(file))
    data[places[len(places) // 2] if place is None else place] ^= 1
    file.write_bytes(data)


def data_files(table: Path) -> list[Path]:
    dataset = ld.dataset(table)
    return [table / "data" / file.path for fragment in dataset.get_fragments() for file in fragment.data_files()]


def test_repair_drops_rows_of_damaged_blocks_and_keeps_all_others(table: Path) -> None:
    whole = ld.dataset(table).to_table()
    damage(data_files(table)[1])
    dataset = ld.dataset(table)
    expected = dataset.repair(dry_run=True)
    assert dataset.version == 3
    lost = dataset.repair()
    assert (lost.num_rows, lost.columns) == (expected.num_rows, expected.columns)
    assert lost.columns.keys() == {1}
    assert 0 < lost.num_rows < ROWS // 2
    gone = lost.rows[1] + ROWS // 2
    kept = whole.filter(pa.array(~np.isin(whole["a"].to_numpy(), gone)))
    assert dataset.to_table() == kept
    assert lance.dataset(str(table)).to_table() == kept
    assert dataset.repair().num_rows == 0


def test_repair_drops_a_fragment_whose_metadata_is_damaged(table: Path) -> None:
    file = data_files(table)[0]
    damage(file, file.stat().st_size - 3)
    dataset = ld.dataset(table)
    assert dataset.repair().num_rows == ROWS // 2 - 2
    assert dataset.to_table(["a"])["a"].to_pylist() == [i for i in range(ROWS // 2, ROWS) if i != 30_000]
    assert lance.dataset(str(table)).count_rows() == ROWS // 2 - 1


def test_repair_drops_a_damaged_index_and_answers_stay_correct(table: Path) -> None:
    damage(next(table.glob("_indices/*/page_data.lance")))
    dataset = ld.dataset(table)
    lost = dataset.repair()
    assert [segment.name for segment in lost.segments] == ["a_idx"]
    assert lost.num_rows == 0
    assert dataset.list_indices() == []
    assert dataset.count_rows("a < 100") == 98


def test_repair_restores_deleted_rows_only_on_request(table: Path) -> None:
    for file in table.glob("_deletions/0-*"):
        damage(file)
    dataset = ld.dataset(table)
    with pytest.raises(CorruptError, match=r"fragments \[0\] cannot be read.*restore_deleted=True"):
        dataset.repair()
    assert dataset.version == 3
    assert dataset.repair(restore_deleted=True).deletions == (0,)
    assert dataset.count_rows() == lance.dataset(str(table)).count_rows() == ROWS - 1
    assert dataset.find_problems() == []


def test_repair_does_not_change_a_valid_table(table: Path) -> None:
    dataset = ld.dataset(table)
    assert not dataset.repair()
    assert dataset.version == 3


def test_repair_keeps_files_of_an_unknown_newer_version(table: Path) -> None:
    (page_data,) = table.glob("_indices/*/page_data.lance")
    for file in (page_data, data_files(table)[0]):
        data = bytearray(file.read_bytes())
        end = data.rindex(b"LDCKSUM1") + 8
        data[end - 16] ^= 2  # version of the checksums
        data[end - 40 : end - 32] = bytes(8)  # digest of what follows
        file.write_bytes(data)
    dataset = ld.dataset(table)
    with pytest.raises(UnsupportedError, match="the file has checksums of an unknown kind"):
        dataset.repair()
    assert dataset.version == ld.dataset(table).version == 3
    assert {file.checksums for file in dataset.check_files()} == {"sound", "none"}


def test_repair_does_not_count_rows_that_only_the_manifest_claims(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Snapshot, "physical_rows", lambda self, fragment: 2**40)
    dataset = ld.dataset(table)
    with pytest.raises(
        InvalidInputError, match=rf"wrong row count of fragment 0 in the manifest.*{ROWS // 2}, as in.*{2**40}"
    ):
        dataset.repair()
    for file in data_files(table):
        file.write_bytes(bytes(file.stat().st_size))
    with pytest.raises(InvalidInputError, match=rf"the row count of fragment 0 is unknown: found {2**40}"):
        ld.dataset(table).repair()


def test_repair_requires_checksum_verification(table: Path) -> None:
    with pytest.raises(InvalidInputError, match="checksum verification is disabled"):
        ld.dataset(table, storage_options={"checksums": "false"}).repair()


def test_repair_keeps_an_index_whose_recall_measurements_are_damaged(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    values = np.random.default_rng(1).random(4000 * 8).astype(np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values), 8)
    ld.write_dataset(pa.table({"v": vectors}), path).create_index("v", "IVF_FLAT", num_partitions=4)
    (file,) = path.glob("_indices/*/recall.json")
    data = bytearray(file.read_bytes())
    data[-20] ^= 1
    file.write_bytes(data)
    dataset = ld.dataset(path)
    assert {Path(check.file).name for check in dataset.check_files() if check.checksums == "damaged"} == {"recall.json"}
    assert dataset.repair().num_rows == 0
    assert len(ld.dataset(path).list_indices()) == 1
