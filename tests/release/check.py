"""Check a release as a new user would receive it: `make release-check`, and `make release`, which keeps the files.

A source distribution and a wheel are built, and `contents.py` checks their contents. The wheel is installed in separate
environments with the newest and the oldest libraries. `stranger.py` uses it there without access to the repository.
Type checkers check the same file against the types of the installed package.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from tests.release.contents import check_contents

ROOT = Path(__file__).parents[2]
STRANGER = ROOT / "tests" / "release" / "stranger.py"
TOUR = ROOT / "tests" / "release" / "tour.py"
CHECKERS = ("mypy", "pyright[nodejs]")


def main() -> None:
    """Build, install and use; the first step that fails ends it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="folder that the checked files are moved to, to be published")
    keep: Path | None = parser.parse_args().keep
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = project["version"]
    check_changes(version, is_release=keep is not None)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        sources, wheel = built(folder)
        check_contents(sources, wheel, with_packs=os.environ.get("LANCE_DUCK_BUILD_KERNELS") != "0")
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
        if keep is not None:
            keep.mkdir(exist_ok=True)
            kept = [shutil.copy(file, keep) for file in (sources, wheel)]
            if "urls" not in project:
                print("pyproject.toml has no [project.urls]: links of the README lead nowhere on an index")
            print(f'publish: twine upload --repository-url "$INDEX" {" ".join(map(str, kept))}')


def check_changes(version: str, *, is_release: bool) -> None:
    """Check that CHANGELOG.md has a section of the version, with a date if it is released now."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = next((line for line in changes.splitlines() if line.startswith(f"## [{version}]")), None)
    if heading is None:
        sys.exit(f"CHANGELOG.md has no section for {version}")
    if is_release and not re.fullmatch(rf"## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d", heading):
        print(f"CHANGELOG.md: {heading!r} has no date yet")


def built(folder: Path) -> tuple[Path, Path]:
    """Return a source distribution, and a wheel built from it by pip."""
    python = environment(folder / "build", "build", "twine")
    run(folder, str(python), "-m", "build", "--outdir", str(folder / "dist"), str(ROOT))
    (sources,) = (folder / "dist").glob("*.tar.gz")
    (wheel,) = (folder / "dist").glob("*.whl")
    run(folder, str(python), "-m", "twine", "check", "--strict", str(sources), str(wheel))
    return sources, wheel


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
    done = subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, timeout=3600, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
