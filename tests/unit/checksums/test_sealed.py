"""Seals of deletion files, manifests, transactions, tags and branches."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_duck.checksums.sealed import (
    check_json,
    manifest_seal,
    read_seal,
    seal_deletions,
    sealed_json,
    sealed_transaction,
    unsealed_deletions,
    unsealed_transaction,
)
from lance_duck.errors import CorruptError
from lance_duck.rows import DeletionVector, read_deletion_vector

OFFSETS = {"arrow": np.array([3, 5, 900], np.uint32), "bin": np.arange(0, 20_000, 3, dtype=np.uint32)}
FOOTER = b"footer of 16 b.."


@pytest.fixture(params=["arrow", "bin"])
def suffix(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_sealed_deletion_file_reads_like_an_unsealed_one(suffix: str) -> None:
    vector = DeletionVector(OFFSETS[suffix])
    assert vector.suffix == suffix
    plain = vector.to_bytes()
    sealed = seal_deletions(plain, suffix)
    assert unsealed_deletions(sealed, suffix, "d") == (plain, True)
    assert unsealed_deletions(plain, suffix, "d") == (plain, False)
    for data in (plain, sealed):
        assert read_deletion_vector(data, suffix, "d").deleted.tolist() == OFFSETS[suffix].tolist()


def test_arrow_reads_a_sealed_file() -> None:
    sealed = seal_deletions(DeletionVector(OFFSETS["arrow"]).to_bytes(), "arrow")
    with pa.ipc.open_file(pa.py_buffer(sealed)) as file:
        assert file.read_all().column(0).to_pylist() == OFFSETS["arrow"].tolist()


def test_every_flipped_bit_of_a_deletion_file_is_detected(suffix: str) -> None:
    data = seal_deletions(DeletionVector(OFFSETS[suffix][:300]).to_bytes(), suffix)
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptError):
            unsealed_deletions(bytes(flipped), suffix, "d")


@pytest.mark.parametrize("data", [b"", b"ARROW1", b"\xff" * 40])
def test_unsealed_deletion_files_are_read_unchanged(data: bytes, suffix: str) -> None:
    assert unsealed_deletions(data, suffix, "d") == (data, False)


def test_a_manifest_seal_detects_a_flipped_bit() -> None:
    before = b"all that comes before"
    whole = before + manifest_seal(7, before, FOOTER) + FOOTER
    seal = read_seal(whole, len(whole) - 16, "m")
    assert seal is not None
    assert (seal.version, seal.is_intact) == (7, True)
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            seal = read_seal(bytes(flipped), len(whole) - 16, "m")
        except CorruptError:
            continue
        assert seal is not None
        assert not seal.is_intact or seal.version != 7


def test_a_short_or_foreign_manifest_is_not_sealed() -> None:
    assert read_seal(FOOTER, 0, "m") is None
    assert read_seal(b"x" * 60 + FOOTER, 60, "m") is None


def test_a_sealed_transaction_detects_every_flipped_bit() -> None:
    data = sealed_transaction(b"a message")
    assert unsealed_transaction(data, "t") == (b"a message", True)
    assert unsealed_transaction(b"a message", "t") == (b"a message", False)
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptError):
            unsealed_transaction(bytes(flipped), "t")


@pytest.mark.parametrize(
    "layout", [{}, {"indent": 4}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": True}]
)
def test_reformatted_json_keeps_its_seal(layout: dict[str, Any]) -> None:
    members = {"version": 3, "metadata": {"ü": "ö", "more": [1, None]}}
    data = sealed_json(json.dumps(members, indent=2, ensure_ascii=False).encode())
    anew = json.dumps(json.loads(data), **layout).encode()
    for edited in (anew, anew + b"\n", data + b"\n", data.replace(b"\n", b"\r\n"), b" " + data):
        assert check_json(edited, "t")
        with pytest.raises(CorruptError):
            check_json(edited.replace(b"3", b"4", 1), "t")
    without = {name: value for name, value in json.loads(data).items() if name != "checksum"}
    assert not check_json(json.dumps(without, **layout).encode(), "t")


@pytest.mark.parametrize("members", [{"version": 3}, {"a": None, "metadata": {"checksum": "xxh3-64:", "ü": "ö"}}])
def test_sealed_json_detects_every_flipped_bit(members: dict[str, object]) -> None:
    plain = json.dumps(members, indent=2, ensure_ascii=False).encode()
    data = sealed_json(plain)
    assert not check_json(plain, "t")
    assert check_json(data, "t")
    read = json.loads(data)
    assert read.pop("checksum").startswith("xxh3-64:")
    assert read == members
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptError):
            check_json(bytes(flipped), "t")
