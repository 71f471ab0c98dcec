"""Packs: compiled kernels of an installation, used if and only if they are of this source and for this processor."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lance_duck.kernels import cache, pack
from lance_duck.kernels.cache import KernelCache
from lance_duck.kernels.jit import kernel
from lance_duck.kernels.pack import (
    LEVELS,
    KernelPack,
    installed_pack,
    machine_levels,
    open_pack,
    pack_entry,
    write_pack,
)

NUMBERS = np.array([41], np.int16)


def add_one(numbers: Any) -> Any:
    return numbers[0] + 1


def in_folder(folder: Path, function: Callable[..., Any] = add_one) -> Any:
    """A kernel that no process has compiled before, as far as this folder knows."""
    folder.mkdir(exist_ok=True)
    made: Any = kernel(function)
    made._cache = KernelCache(function, [folder])
    return made


def written(folder: Path, path: Path) -> KernelPack:
    """Compile `add_one`, and write a pack of it."""
    made = in_folder(folder)
    made(NUMBERS)
    entries = {}
    for types, result in made.overloads.items():
        data = made.cache.stored(types, result.target_context)
        entries[made.cache.key(types)] = pack_entry(pickle.loads(data))
    write_pack(path, "test", "sources", entries)
    return KernelPack(path)


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache folder with an installed pack."""
    found = written(tmp_path / "built", tmp_path / "a.pack")
    monkeypatch.setattr(cache, "installed_pack", lambda: found)
    empty = tmp_path / "empty"
    empty.mkdir()
    return empty


def hits(made: Any) -> int:
    return sum(made.stats.cache_hits.values())


def test_a_packed_kernel_is_not_compiled(packed: Path) -> None:
    made = in_folder(packed)
    assert (int(made(NUMBERS)), hits(made), list(packed.iterdir())) == (42, 1, [])


def test_numba_extensions_are_loaded_only_for_a_compilation(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[None] = []
    monkeypatch.setattr(cache, "_load_extensions", lambda: searches.append(None))
    made = in_folder(packed)
    assert made(NUMBERS) == 42
    assert not searches
    assert made(NUMBERS.astype(np.int32)) == 42
    assert searches


def test_the_pack_takes_precedence_over_cache_folders(packed: Path) -> None:
    damaged = in_folder(packed.parent / "built")
    for file in (packed.parent / "built").iterdir():
        file.write_bytes(b"")
    assert damaged(NUMBERS) == 42
    assert all(file.stat().st_size == 0 for file in (packed.parent / "built").iterdir())


def test_types_missing_in_the_pack_are_compiled(packed: Path) -> None:
    made = in_folder(packed)
    assert (int(made(np.array([41], np.int8))), hits(made), len(list(packed.iterdir()))) == (42, 0, 1)


def test_a_changed_kernel_is_compiled(packed: Path) -> None:
    def add_one(numbers: Any) -> Any:
        return numbers[0] + 2

    add_one.__qualname__ = "add_one"
    made = in_folder(packed, add_one)
    assert (int(made(NUMBERS)), hits(made)) == (43, 0)


def test_a_packed_kernel_is_recompiled_if_a_new_kernel_calls_it(packed: Path) -> None:
    inner = in_folder(packed)
    assert (int(inner(NUMBERS)), hits(inner)) == (42, 1)

    def twice(numbers: Any) -> Any:
        return inner(numbers) * 2

    assert int(in_folder(packed, twice)(NUMBERS)) == 84
    assert int(inner(NUMBERS)) == 42
    assert len(list(packed.iterdir())) == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:30],
        lambda data: b"x" + data[1:],
        lambda data: data[:60] + bytes([data[60] ^ 1]) + data[61:],
        lambda data: data[:8] + b"\xff\xff\xff\xff" + data[12:],
    ],
    ids=["empty", "cut in the head", "magic", "index", "size of the index"],
)
def test_a_damaged_pack_is_ignored(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    written(tmp_path / "built", tmp_path / "a.pack")
    data = (tmp_path / "a.pack").read_bytes()
    (tmp_path / "a.pack").write_bytes(damage(data))
    assert open_pack(tmp_path / "a.pack") is None


def test_a_damaged_entry_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "built", tmp_path / "a.pack")
    data = bytearray((tmp_path / "a.pack").read_bytes())
    data[-100] ^= 1
    (tmp_path / "a.pack").write_bytes(data)
    found = open_pack(tmp_path / "a.pack")
    monkeypatch.setattr(cache, "installed_pack", lambda: found)
    made = in_folder(tmp_path / "empty")
    assert (int(made(NUMBERS)), hits(made)) == (42, 0)


@pytest.mark.parametrize("fact", ["python", "numba"])
def test_a_pack_for_other_versions_is_not_used(tmp_path: Path, fact: str) -> None:
    written(tmp_path / "built", tmp_path / "a.pack")
    data = (tmp_path / "a.pack").read_bytes()
    size = int.from_bytes(data[8:12], "little")
    index = json.dumps({**json.loads(data[44 : 44 + size]), fact: "3.0"}).encode()
    head = data[:8] + len(index).to_bytes(4, "little") + hashlib.sha256(index).digest()
    (tmp_path / "a.pack").write_bytes(head + index + data[44 + size :])
    assert open_pack(tmp_path / "a.pack") is None


def test_the_pack_has_the_documented_layout(tmp_path: Path) -> None:
    written(tmp_path / "built", tmp_path / "a.pack")
    data = (tmp_path / "a.pack").read_bytes()
    size = int.from_bytes(data[8:12], "little")
    index = data[44 : 44 + size]
    assert (data[:8], data[12:44]) == (b"LDKPACK1", hashlib.sha256(index).digest())
    ((offset, length, digest),) = json.loads(index)["entries"].values()
    assert (offset, 44 + size + length) == (0, len(data))
    assert hashlib.sha256(data[44 + size :]).hexdigest() == digest


@pytest.mark.parametrize(
    ("masked", "levels"),
    [
        (set(), ["x86-64-v3", "x86-64-v2"]),
        ({"avx2"}, ["x86-64-v2"]),
        ({"lzcnt"}, ["x86-64-v2"]),
        ({"sse4.2"}, []),
    ],
)
def test_a_level_needs_all_its_features(monkeypatch: pytest.MonkeyPatch, masked: set[str], levels: list[str]) -> None:
    features = dict.fromkeys(LEVELS["x86-64-v3"], True) | dict.fromkeys(masked, False)
    monkeypatch.setattr(pack.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(pack.llvmlite.binding, "get_host_cpu_features", lambda: features)
    assert machine_levels() == levels


def test_a_setting_switches_packs_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_DUCK_KERNELS", "compile")
    assert installed_pack.__wrapped__() is None
