"""Host programs that use this package, each in a separate environment: `make test-hosts` creates them.

`in_{host}.py` holds the tests of a host. `{host}.txt`, or `{host}-{what}.txt` for a variant, lists the packages that
are installed together with this one.
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
    # The settings and fixtures of this repository need libraries that the environment does not have.
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
