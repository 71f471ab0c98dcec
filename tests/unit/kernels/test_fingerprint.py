"""Fingerprints change with all dependencies of compiled code, and only with these."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from itertools import permutations
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from lance_duck.kernels.fingerprint import fingerprint
from lance_duck.kernels.jit import kernels

SOURCE = """
import numpy as np
from lance_duck.kernels.jit import kernel, subroutine

LIMIT = 7
TABLE = np.array([1, 2, 3])

def helper(x):
    return x + LIMIT

called = subroutine(helper)

@kernel
def caller(x):
    return called(x) + TABLE[0]

@kernel
def alone(x):
    return x * 2
"""


def prints(source: str) -> dict[str, str]:
    """Fingerprints of the functions of a module by name."""
    scope: dict[str, Any] = {"__name__": "lance_duck.kernels.made_up"}
    exec(compile(textwrap.dedent(source), "made_up.py", "exec"), scope)
    return {name: fingerprint(scope[name].py_func) for name in ("called", "caller", "alone")}


def test_fingerprints_ignore_location_comments_and_docstrings() -> None:
    moved = "# a comment\n\n\n" + SOURCE.replace("def alone(x):", 'def alone(x):\n    """Double."""')
    assert prints(SOURCE) == prints(moved)


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ("return x + LIMIT", "return x - LIMIT", {"called", "caller"}),
        ("LIMIT = 7", "LIMIT = 8", {"called", "caller"}),
        ("np.array([1, 2, 3])", "np.array([1, 2, 4])", {"caller"}),
        ("np.array([1, 2, 3])", "np.array([1, 2, 3], np.int8)", {"caller"}),
        ("return x * 2", "return x * 2.0", {"alone"}),
        ("called = subroutine(helper)", "called = kernel(helper)", {"caller"}),
    ],
)
def test_a_change_reaches_a_function_and_its_callers(before: str, after: str, changed: set[str]) -> None:
    old, new = prints(SOURCE), prints(SOURCE.replace(before, after))
    assert {name for name in old if old[name] != new[name]} == changed


def test_functions_with_different_closures_have_different_fingerprints() -> None:
    def adder(number: int) -> FunctionType:
        def add(x: int) -> int:
            return x + number

        return add  # type: ignore[return-value]

    assert fingerprint(adder(1)) == fingerprint(adder(1)) != fingerprint(adder(2))


def test_recursive_functions_have_fingerprints() -> None:
    def down(x: int) -> int:
        return down(x - 1) if x else 0

    assert len(fingerprint(down)) == 64


def test_fingerprints_do_not_depend_on_hash_order() -> None:
    script = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parents[3])!r})
import lance_duck.kernels.postings.search.best_of_any, lance_duck.kernels.vectors
from lance_duck.kernels.jit import kernels
from lance_duck.kernels.fingerprint import fingerprint
print(*sorted(fingerprint(each.py_func) for each in kernels()))
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in "12"
    }
    assert len(outputs) == 1


def test_every_kernel_of_the_package_has_a_fingerprint() -> None:
    found = kernels()
    assert len(found) > 10
    assert all(len(fingerprint(each.py_func)) == 64 for each in found)


NESTED = """
def countdown(x):
    return x == 0 or countdown(x - 1)

def middle(x):
    return countdown(x) + 1

def caller(x):
    return middle(x) + countdown(x)
"""


def test_fingerprints_do_not_depend_on_the_computation_order() -> None:
    found = []
    for order in permutations(("countdown", "middle", "caller")):
        scope: dict[str, Any] = {"__name__": "lance_duck.kernels.made_up"}
        exec(compile(NESTED, "made_up.py", "exec"), scope)
        by_name = {name: fingerprint(scope[name]) for name in order}
        found.append(sorted(by_name.items()))
    assert all(each == found[0] for each in found)
    assert len({digest for _, digest in found[0]}) == 3
