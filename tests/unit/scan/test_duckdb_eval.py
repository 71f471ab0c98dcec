from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, sys, threading, warnings
import pyarrow as pa
from lance_duck.scan.duckdb_eval import evaluate_sql

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
