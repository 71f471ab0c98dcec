"""Environments with other pylance versions and their dependencies, without this package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
VERSIONS = tuple((HERE / "pylance.txt").read_text(encoding="utf-8").split())
"""Oldest first; `make versions` makes them all, `make test` the first and the last."""
QUICK = (VERSIONS[0], VERSIONS[-1])
FIRST_WITH_22 = (4, 0)
"""The first pylance that writes the current 2.2 format."""
HOME = Path(os.environ.get("LANCE_DUCK_VERSIONS") or Path(sys.prefix) / "versions")
LONGEST = 900
"""Seconds that a side of a meeting may take, on a machine with other work."""


def file_versions(version: str) -> tuple[str, ...]:
    """The file versions that a pylance writes and reads."""
    numbers = tuple(int(part) for part in version.split(".")[:2])
    return ("0.1", "2.0", "2.1", "2.2") if numbers >= FIRST_WITH_22 else ("0.1", "2.0", "2.1")


def python_of(version: str) -> Path:
    """Return the interpreter of a version's environment, which is created if missing."""
    home = HOME / version
    python, ready = home / "bin" / "python", home / ".ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(home)], check=True)
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
        subprocess.run([*pip, "--disable-pip-version-check", f"pylance=={version}"], check=True)
        ready.touch()
    return python


def at_work(python: Path | str, library: str, what: str, folder: Path, versions: tuple[str, ...]) -> dict[str, str]:
    """Run one side of a meeting in a separate process; return the output of `meeting.py`.

    Raises:
        RuntimeError: The process failed; with the end of its output.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    environment |= {"LANCE_LOG": "error", "RUST_BACKTRACE": "0"}
    if library == "lance":
        environment.pop("PYTHONPATH", None)
    else:
        environment["PYTHONPATH"] = str(HERE.parents[1])
    command = [str(python), str(HERE / "meeting.py"), library, what, str(folder), *versions]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=LONGEST, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr[-2000:]}")
    found: dict[str, str] = json.loads(done.stdout)
    return found
