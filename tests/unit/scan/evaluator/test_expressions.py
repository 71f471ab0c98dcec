from __future__ import annotations

import os
import subprocess
import sys

import duckdb
import pyarrow as pa
import pytest

from lance_duck.scan.evaluator import expressions

SCRIPT = """
import os, sys, threading, warnings
import pyarrow as pa
from lance_duck.scan.evaluator.expressions import evaluate_sql

warnings.simplefilter("ignore", DeprecationWarning)

def answer():
    return evaluate_sql("a + 1 AS b", {"a": pa.array([1, 2])}, 2)["b"].to_pylist()

thread = threading.Thread(target=answer)
thread.start()
thread.join()
assert answer() == [2, 3]
if (child := os.fork()) == 0:
    os._exit(7 if answer() == [2, 3] else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert answer() == [2, 3]
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on this system")
def test_expressions_are_evaluated_after_a_fork() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], timeout=60, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Query interrupted"),
        duckdb.InvalidInputException("counting the rows of the object failed: KeyboardInterrupt: "),
    ],
)
def test_interrupts_keep_their_python_class(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def stopped(*_: object) -> pa.Table:
        raise error

    monkeypatch.setattr(expressions, "_plain", stopped)
    with pytest.raises(KeyboardInterrupt):
        expressions.evaluate_sql("a", {"a": pa.array([1])}, 1)
    with pytest.raises(KeyboardInterrupt):
        expressions.query_tables("SELECT 1", {})


def test_other_errors_are_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> pa.Table:
        raise RuntimeError("broken")

    monkeypatch.setattr(expressions, "_plain", broken)
    with pytest.raises(RuntimeError, match="broken"):
        expressions.evaluate_sql("a", {"a": pa.array([1])}, 1)
