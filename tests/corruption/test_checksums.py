"""Single bits flip in written files: every flip outside padding is detected."""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path

import numpy as np
import pytest
from corruption.bits import KINDS, SIDECARS, VERSIONS, flips, padding, rows, write, write_blobs

import lance_duck as ld
from lance_duck.checksums.container import MAGIC, TRAILER
from lance_duck.checksums.digests import digest
from lance_duck.checksums.sidecars import sidecar_mark
from lance_duck.errors import CorruptError
from lance_duck.file.reader import open_file
from lance_duck.store import open_source, run
from lance_duck.wire.manifest import read_manifest

BITS = 2500 if os.environ.get("LANCE_DUCK_PROFILE") == "full" else 25


@pytest.fixture(scope="module", params=VERSIONS)
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with files of every kind."""
    path = tmp_path_factory.mktemp(request.param) / "t.lance"
    write(path, request.param)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_every_flipped_bit_is_detected(kind: str, table: Path) -> None:
    missed = [(file, bit) for file, bit, seen in flips(table, kind, BITS, random.Random(kind)) if not seen]
    assert missed == []
    assert {check.checksums for check in ld.dataset(table).check_files()} == {"sound"}


def test_every_flipped_bit_of_a_blob_sidecar_is_detected(tmp_path: Path) -> None:
    write_blobs(tmp_path / "t.lance")
    seen = [is_seen for _, _, is_seen in flips(tmp_path / "t.lance", SIDECARS, BITS, random.Random(5))]
    assert seen == [True] * BITS
    checks = ld.dataset(tmp_path / "t.lance").check_files()
    assert [check.checksums for check in checks if check.kind == "blobs"] == ["sound"] * 3


def test_reading_a_damaged_blob_fails_and_repair_drops_its_row(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    blobs = write_blobs(path)
    packed = next(file for file in path.glob(SIDECARS) if file.stat().st_size == 90_300)
    data = bytearray(packed.read_bytes())
    data[200] ^= 1
    packed.write_bytes(data)
    dataset = ld.dataset(path)
    assert dataset.to_table().num_rows == len(blobs)  # which reads descriptions
    for read in (
        lambda: dataset.to_table(blob_handling="all_binary"),
        lambda: [file.read() for file in dataset.take_blobs("b", indices=[2])],
        dataset.validate,
    ):
        with pytest.raises(CorruptError, match=packed.name):
            read()
    whole = ld.dataset(path, storage_options={"checksums": "false"})
    assert whole.to_table(blob_handling="all_binary").num_rows == len(blobs)
    assert ld.dataset(path).take_blobs("b", indices=[5])[0].read() == blobs[5]
    assert dataset.repair().rows[0].tolist() == [2, 3, 4]  # which share the block of 64 KiB
    assert dataset.repair().num_rows == 0
    assert [row["a"] for row in dataset.to_table(["a"]).to_pylist()] == [0, 1, 5, 6]


@pytest.mark.parametrize("what", ["longer", "shorter", "missing"])
def test_a_sidecar_with_the_wrong_size_is_reported_as_damaged(what: str, tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    write_blobs(path)
    file = max(path.glob(SIDECARS), key=lambda each: each.stat().st_size)
    data = file.read_bytes()
    file.write_bytes(data + b"x" if what == "longer" else data[:-1]) if what != "missing" else file.unlink()
    (check,) = [check for check in ld.dataset(path).check_files() if check.checksums == "damaged"]
    assert (check.kind, check.file.rsplit("/", 1)[-1]) == ("blobs", file.name)
    with pytest.raises(CorruptError, match=file.name):
        ld.dataset(path).validate()
    assert ld.dataset(path).repair(dry_run=True).num_rows > 0


@pytest.mark.parametrize("version", VERSIONS)
def test_a_flipped_bit_in_file_metadata_is_damage_and_not_an_unknown_version(version: str, tmp_path: Path) -> None:
    ld.write_dataset(rows(20).select(["a", "s"]), tmp_path / "t.lance", data_storage_version=version)
    (file,) = (tmp_path / "t.lance" / "data").glob("*.lance")
    data = file.read_bytes()
    start = data.index(b"LDCKSUM1") - 40
    for bit in range(8 * start, 8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        file.write_bytes(damaged)
        with pytest.raises(CorruptError):
            run(open_file(open_source(str(file)))).source.checksums()  # type: ignore[attr-defined]


def test_every_flipped_bit_of_a_manifest_is_detected(tmp_path: Path) -> None:
    ld.write_dataset(rows(20).select(["a", "s"]), tmp_path / "t.lance")
    (file,) = (tmp_path / "t.lance" / "_versions").glob("*.manifest")
    data = file.read_bytes()
    assert read_manifest(data, "m").is_sealed
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptError):
            read_manifest(bytes(damaged), "m")


def test_damaged_values_of_small_files_that_are_read_together_are_an_error(tmp_path: Path) -> None:
    dataset = ld.write_dataset(rows(100), tmp_path / "t.lance", max_rows_per_file=10)
    file = sorted((tmp_path / "t.lance" / "data").glob("*.lance"))[3]
    data = bytearray(file.read_bytes())
    data[np.flatnonzero(~padding(file))[0]] ^= 1
    file.write_bytes(data)
    with pytest.raises(CorruptError, match=f"{file.name}: checksum does not match"):
        ld.dataset(dataset.uri).to_table()


def test_scanning_damaged_values_raises_an_error_with_file_and_byte_range(table: Path) -> None:
    file = next(iter(sorted((table / "data").glob("*.lance"))))
    data = file.read_bytes()
    damaged = bytearray(data)
    damaged[100] ^= 1
    file.write_bytes(damaged)
    try:
        with pytest.raises(CorruptError, match=rf"{file.name}: checksum does not match: [\d,]+ bytes at \d+"):
            ld.dataset(table).to_table()
        unchecked = ld.dataset(table, storage_options={"checksums": "false"})
        assert unchecked.to_table().num_rows == ld.dataset(table).count_rows()
    finally:
        file.write_bytes(data)


@pytest.mark.parametrize("place", [(1 << 63, 8), ((1 << 64) - 8, 16), (0, 1 << 40), (0, 8), (8, 1 << 63)])
def test_a_hostile_offset_of_sidecar_digests_is_an_error(place: tuple[int, int], tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    write_blobs(path)
    (file,) = path.glob("data/*.lance")
    data = bytearray(file.read_bytes())
    at = data.rindex(sidecar_mark(0, 0)[:4]) + 4
    data[at : at + 16] = struct.pack("<QQ", *place)
    end = data.rindex(MAGIC) + len(MAGIC)
    trailer = list(TRAILER.unpack(data[end - TRAILER.size : end]))
    trailer[1] = digest(bytes(data[end:]))
    data[end - TRAILER.size : end] = TRAILER.pack(*trailer)
    file.write_bytes(data)
    with pytest.raises(CorruptError):
        ld.dataset(path).to_table(blob_handling="all_binary")
    assert ld.dataset(path).repair(dry_run=True).num_rows > 0
