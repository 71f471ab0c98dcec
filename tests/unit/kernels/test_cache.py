"""Compiled kernels on disk: reused, also by other users, and ignored if damaged."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lance_duck.kernels import cache
from lance_duck.kernels.cache import KernelCache, cache_folders
from lance_duck.kernels.jit import kernel


def add_one(numbers: Any) -> Any:
    return numbers[0] + 1


def compiled(*folders: Path) -> Any:
    """A kernel that no process has compiled before, as far as these folders know."""
    made: Any = kernel(add_one)
    made._cache = KernelCache(add_one, folders)
    return made


def calls(made: Any) -> tuple[int, int]:
    """Return a kernel's result and its number of loads from disk."""
    result = made(np.array([41], np.int16))
    return int(result), sum(made.stats.cache_hits.values())


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """The file of a kernel that was compiled."""
    assert calls(compiled(tmp_path)) == (42, 0)
    (path,) = tmp_path.iterdir()
    return path


def test_a_kernel_is_compiled_once_and_then_loaded_from_disk(kept: Path) -> None:
    assert kept.name.endswith(".nbc")
    assert calls(compiled(kept.parent)) == (42, 1)


def test_loading_a_kernel_from_disk_does_not_import_the_compiler(tmp_path: Path) -> None:
    script = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from test_cache import calls, compiled
print(*calls(compiled(Path({str(tmp_path)!r}))), "numba.typed.typeddict" in sys.modules)
"""
    runs = [subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True) for _ in "12"]
    assert [run.stdout.strip() for run in runs] == ["42 0 True", "42 1 False"]


def test_each_argument_type_has_a_cache_file(kept: Path) -> None:
    made = compiled(kept.parent)
    made(np.array([1], np.int32))
    made(np.array([1], np.float32))
    assert len(list(kept.parent.iterdir())) == 3


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:20],
        lambda data: data[:-1],
        lambda data: data[:5000] + bytes([data[5000] ^ 1]) + data[5001:],
        lambda data: bytes([data[0] ^ 1]) + data[1:],
        lambda data: b"\0" * len(data),
    ],
    ids=["empty", "cut in the digest", "cut at the end", "a bit of the code", "a bit of the digest", "zeros"],
)
def test_a_damaged_file_is_compiled_again_and_mended(kept: Path, damage: Callable[[bytes], bytes]) -> None:
    kept.write_bytes(damage(kept.read_bytes()))
    assert calls(compiled(kept.parent)) == (42, 0)
    assert calls(compiled(kept.parent)) == (42, 1)


def test_an_unreadable_cache_file_is_compiled_again(kept: Path) -> None:
    kept.unlink()
    kept.mkdir()
    assert calls(compiled(kept.parent)) == (42, 0)


def test_a_missing_cache_folder_is_harmless(tmp_path: Path) -> None:
    assert calls(compiled(tmp_path / "gone")) == (42, 0)


def test_a_kernel_is_stored_in_the_next_writable_folder(tmp_path: Path) -> None:
    assert calls(compiled(tmp_path / "gone", tmp_path)) == (42, 0)
    assert calls(compiled(tmp_path / "gone", tmp_path)) == (42, 1)


def test_a_kernel_in_a_read_only_folder_is_loaded(kept: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    assert calls(compiled(own, kept.parent)) == (42, 1)
    assert list(own.iterdir()) == []


def test_a_full_disk_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.os, "replace", full)
    assert calls(compiled(tmp_path)) == (42, 0)
    assert list(tmp_path.iterdir()) == []


def test_concurrent_compilations_leave_one_file(tmp_path: Path) -> None:
    script = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from test_cache import calls, compiled
sys.stdin.readline()
print(*calls(compiled(Path({str(tmp_path)!r}))))
"""
    run = [sys.executable, "-c", script]
    children = [subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for child in children:
        assert child.communicate("\n", timeout=120)[0].split()[0] == "42"
    assert [path.suffix for path in tmp_path.iterdir()] == [".nbc"]
    again = subprocess.run(run, input="\n", capture_output=True, text=True, timeout=120, check=True)
    assert again.stdout.split() == ["42", "1"]


def folders(monkeypatch: pytest.MonkeyPatch, **environment: str) -> tuple[Path, ...]:
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return cache_folders.__wrapped__()


def test_kernels_are_cached_next_to_the_code_by_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = Path(cache.__file__).parent / "__pycache__"
    assert folders(monkeypatch, XDG_CACHE_HOME=str(tmp_path))[0] == own
    assert folders(monkeypatch, NUMBA_CACHE_DIR=str(tmp_path)) == (tmp_path / "lance_duck", own)


def test_kernels_in_a_read_only_package_are_still_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = Path(cache.__file__).parent / "__pycache__"
    takes_files = cache._takes_files
    monkeypatch.setattr(cache, "_takes_files", lambda folder: folder != own and takes_files(folder))
    assert folders(monkeypatch, XDG_CACHE_HOME=str(tmp_path)) == (tmp_path / "lance_duck", own)
