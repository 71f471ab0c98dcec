"""Lean compiling: the same answers, no machine code of subroutines, and numba's own way with other numbas."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.codegen import JITCodeLibrary

from lance_duck.kernels import lean
from lance_duck.kernels.cache import KernelCache
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.lean import KernelLibrary, SubroutineLibrary, is_tested

NUMBERS = np.array([3, 1, 4, 1, 5], np.int64)


def add_squares(numbers: Any, at: Any) -> Any:
    total = 0
    for i in range(at, len(numbers)):
        total += numbers[i] * numbers[i]
    return total


def made(folder: Path | None = None) -> tuple[Any, Any]:
    """A kernel and its subroutine, which no process has compiled as far as a folder knows."""
    folders = [] if folder is None else [folder]
    inner: Any = subroutine(add_squares)
    inner._cache = KernelCache(add_squares, folders)

    def both(numbers: Any) -> Any:
        return inner(numbers, 1) * 1000 + inner(numbers, 3)

    outer: Any = kernel(both)
    outer._cache = KernelCache(both, folders)
    return outer, inner


def library(compiled: Any) -> Any:
    (result,) = compiled.overloads.values()
    return result.library


def test_this_numba_is_tested() -> None:
    assert is_tested()


def test_a_subroutine_has_no_machine_code() -> None:
    outer, inner = made()
    assert outer(NUMBERS) == 43_026
    assert (type(library(outer)), type(library(inner))) == (KernelLibrary, SubroutineLibrary)
    engine = library(outer).codegen._engine
    (result,) = inner.overloads.values()
    assert result.fndesc.llvm_func_name in library(inner).get_llvm_str()
    assert not engine.is_symbol_defined(result.fndesc.llvm_func_name)


def test_a_subroutine_is_inlined_into_its_kernel() -> None:
    outer, inner = made()
    outer(NUMBERS)
    (result,) = inner.overloads.values()
    assert f"@{result.fndesc.llvm_func_name}" not in library(outer).get_llvm_str()


def test_environments_of_subroutines_are_set() -> None:
    outer, inner = made()
    outer(NUMBERS)
    for compiled in (outer, inner):
        (result,) = compiled.overloads.values()
        address = library(outer).codegen._engine.get_global_value_address(result.environment.env_name)
        assert ctypes.c_void_p.from_address(address).value == id(result.environment)


def test_a_subroutine_from_disk_is_linked_into_a_new_kernel(tmp_path: Path) -> None:
    outer, _ = made(tmp_path)
    assert outer(NUMBERS) == 43_026
    (path,) = tmp_path.glob("*.both.*")
    path.unlink()
    again, inner = made(tmp_path)
    assert again(NUMBERS) == 43_026
    assert (sum(again.stats.cache_hits.values()), sum(inner.stats.cache_hits.values())) == (0, 1)
    assert type(library(inner)) is SubroutineLibrary


def test_a_kernel_from_disk_needs_no_subroutine(tmp_path: Path) -> None:
    assert made(tmp_path)[0](NUMBERS) == 43_026
    outer, inner = made(tmp_path)
    assert (outer(NUMBERS), sum(outer.stats.cache_hits.values()), inner.overloads) == (43_026, 1, {})


def untested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lean, "is_tested", lambda: False)


def test_an_untested_numba_uses_the_standard_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    untested(monkeypatch)
    outer, inner = made()
    assert outer(NUMBERS) == 43_026
    assert (type(library(outer)), type(library(inner))) == (JITCodeLibrary, JITCodeLibrary)


def test_an_untested_numba_links_no_bitcode_from_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path)[0](NUMBERS)
    (path,) = tmp_path.glob("*.both.*")
    path.unlink()
    untested(monkeypatch)
    outer, inner = made(tmp_path)
    assert (outer(NUMBERS), sum(inner.stats.cache_hits.values())) == (43_026, 0)


def test_subroutines_that_numba_compiled_are_linked_into_lean_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        untested(before)
        made(tmp_path)[0](NUMBERS)
    (path,) = tmp_path.glob("*.both.*")
    path.unlink()
    outer, inner = made(tmp_path)
    assert (outer(NUMBERS), sum(inner.stats.cache_hits.values())) == (43_026, 1)
    assert (type(library(outer)), type(library(inner))) == (KernelLibrary, JITCodeLibrary)


@pytest.mark.parametrize(
    "change",
    [lambda source: source + "\n", lambda source: source.replace("_optimize_final_module", "_optimize_module")],
    ids=["a line more", "another name"],
)
def test_a_numba_with_changed_sources_is_untested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[str], str]
) -> None:
    source = Path(lean.codegen.__file__).read_text()
    changed = tmp_path / "codegen.py"
    changed.write_text(source)
    monkeypatch.setattr(lean, "codegen", SimpleNamespace(__file__=str(changed)))
    assert is_tested.__wrapped__()
    changed.write_text(change(source))
    assert not is_tested.__wrapped__()


def test_a_numba_without_sources_is_untested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lean, "codegen", SimpleNamespace(__file__=str(tmp_path / "codegen.pyc")))
    assert not is_tested.__wrapped__()


def test_plain_njit_functions_compile_as_usual() -> None:
    made()[0](NUMBERS)
    inner = numba.njit(lambda x: x + 1)
    outer = numba.njit(lambda x: inner(x) * 2)
    assert outer(3) == 8
    assert (type(library(outer)), type(library(inner))) == (JITCodeLibrary, JITCodeLibrary)
    (result,) = inner.overloads.values()
    assert library(inner).codegen._engine.is_symbol_defined(result.fndesc.llvm_func_name)


def test_threads_can_compile_concurrently(tmp_path: Path) -> None:
    kernels = [made(tmp_path)[0] for _ in range(4)]
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda k=k: answers.append(k(NUMBERS))) for k in kernels]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [43_026] * 4
