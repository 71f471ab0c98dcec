from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from concurrency import forking

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on this system")


@pytest.mark.parametrize(
    "scenario",
    [
        *("opened_anew", "inherited", "threads_of_children", "cannot_go_on", "object_stores"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("while_threads_work", "pools")),
    ],
)
def test_forked_children_work_or_fail_immediately(scenario: str, tmp_path: Path) -> None:
    """A scenario is a function in `forking` that runs in a separate process.

    A hanging process is killed with its children.
    """
    python = [sys.executable, "-W", "ignore::DeprecationWarning"]
    path = os.pathsep.join([str(Path(forking.__file__).parents[1]), *sys.path])
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "OPENBLAS_"))}
    process = subprocess.Popen(
        [*python, forking.__file__, scenario, str(tmp_path / "tables")],
        env={**environment, "PYTHONPATH": path},  # threads as users have them
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=4 * forking.SECONDS)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode == 0, output
