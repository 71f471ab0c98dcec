"""What is released, as a stranger gets it: `make release-check`.

A source distribution is made, and a wheel of it; the wheel is installed in environments of their own, with the newest
and the oldest libraries, and used there by `stranger.py`, with the repository out of reach. Type checkers look at that
file, too: they take the types of this package from the installed one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
STRANGER = ROOT / "tests" / "release" / "stranger.py"
TOUR = ROOT / "tests" / "release" / "tour.py"
CHECKERS = ("mypy", "pyright[nodejs]")


def main() -> None:
    """Build, install and use; the first step that fails ends it."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if f"## [{version}]" not in changes:
        sys.exit(f"CHANGELOG.md has no section for {version}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        wheel = built(folder)
        for name, constraints in (("newest", []), ("lowest", ["-c", str(ROOT / "tests" / "lowest.txt")])):
            python = environment(folder / name, f"{wheel}[cli]", *constraints)
            run(folder, str(python), str(STRANGER), version, str(ROOT))
            print(f"the wheel of {version} works with the {name} libraries")
            if name == "newest":  # the pack is for the numba that the wheel was built with
                check_pack(folder, python)
        python = environment(folder / "types", str(wheel), *CHECKERS)
        for checker in (["mypy", "--strict"], ["pyright", "--pythonpath", str(python)]):
            run(folder, str(python), "-m", *checker, str(STRANGER))
            print(f"{checker[0]} finds the types of the wheel")


def built(folder: Path) -> Path:
    """Return a wheel that was made of the source distribution, as pip makes it."""
    python = environment(folder / "build", "build")
    run(folder, str(python), "-m", "build", "--outdir", str(folder / "dist"), str(ROOT))
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


def environment(home: Path, *packages: str) -> Path:
    """Make an environment with packages; return its interpreter."""
    run(home.parent, sys.executable, "-m", "venv", "--without-pip", str(home))
    python = home / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--disable-pip-version-check"]
    run(home.parent, *pip, *packages)
    return python


def check_pack(folder: Path, python: Path) -> None:
    """Check that the wheel's pack has every kernel of the tour."""
    tour = [str(python), str(TOUR), str(ROOT / "README.md"), str(ROOT / "docs" / "index.md")]
    said = run(folder, *tour, NUMBA_CACHE_DIR=str(folder / "kernels"))
    if not said.endswith("compiled kernels: 0\n"):
        sys.exit(f"the pack of the wheel lacks kernels of the tour: {said}")
    print("the wheel compiles nothing for the tour")


def run(folder: Path, *command: str, **variables: str) -> str:
    """Run a command with the repository out of reach; return its output."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | variables
    done = subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, timeout=1200, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
