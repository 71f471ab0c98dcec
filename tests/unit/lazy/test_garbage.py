"""Garbage collection is paused and resumed."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import pytest

from lance_duck.lazy import uncollected


def failing() -> None:
    with uncollected():
        assert not gc.isenabled()
        with uncollected():
            pass
        assert not gc.isenabled()
        raise ZeroDivisionError


def test_garbage_collection_resumes_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        failing()
    assert gc.isenabled()


def test_disabled_garbage_collection_stays_disabled() -> None:
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


IN_A_CHILD = """
import gc, os, threading
from lance_duck.lazy import uncollected

begun, end = threading.Event(), threading.Event()

def plan():
    with uncollected():
        begun.set()
        end.wait()

thread = threading.Thread(target=plan)
thread.start()
begun.wait()
if (child := os.fork()) == 0:
    os._exit(0 if gc.isenabled() else 3)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
end.set()
thread.join()
raise SystemExit(status)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_forked_during_an_import_collects_garbage() -> None:
    assert subprocess.run([sys.executable, "-c", IN_A_CHILD], timeout=60, check=False).returncode == 0
