"""Programs that we are a part of, each in an environment of its own: `make test-hosts` makes them.

What is done in an environment is in `in_{host}.py`, and what is installed there, with this package, in `{host}.txt`, or
in `{host}-{what}.txt` where a host is tried with one thing and another.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
HOME = Path(os.environ.get("LANCE_DUCK_HOSTS") or Path(sys.prefix) / "hosts")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("host", sorted(path.stem for path in HERE.glob("*.txt")))
def test_the_tests_of_each_host_pass(host: str, tmp_path: Path) -> None:
    python = HOME / host / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no environment for {host}: make test-hosts makes it")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    environment |= {"PYTHONPATH": str(HERE.parents[1]), "HOME": str(tmp_path), "LANCE_DUCK_QUIET": "1"}
    # Neither our settings of pytest nor our fixtures: their libraries are not there.
    pytest_there = [str(python), "-m", "pytest", "-q", "-c", os.devnull, "--noconftest", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*pytest_there, str(HERE / f"in_{host.partition('-')[0]}.py")],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
