"""How long do installation and first steps take, in processor seconds?

Each revision is cloned and installed into a new environment. One process without compiled kernels then takes the first
steps. The second table compares a later process with pylance, up to the first row. The third one lists installed sizes.

`--here` prints only the second table, for this checkout and interpreter. Run `lance-duck build-kernels` first.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]

STEPS = """
import json, os, sys, time
spent = {}
def step(name, work):
    start = time.process_time()
    result = work()
    spent[name] = spent.get(name, 0.0) + time.process_time() - start
    return result
def load():
    import lance_duck
    return lance_duck
folder = sys.argv[1]
ld = step("import", load)
import pyarrow as pa
rows = range(300)
table = pa.table({"id": rows, "name": [f"name {i % 7}" for i in rows], "x": [i / 7 for i in rows],
                  "text": [f"a ship {i} in the bay of words {i % 13}" for i in rows]})
ds = step("first write", lambda: ld.write_dataset(table, f"{folder}/t.lance"))
step("first read, first filter", lambda: (ds.to_table(), ds.to_table(filter="x > 5")))
con = step("first SQL", lambda: ld.connect(folder))
step("first SQL", lambda: con.execute("SELECT name, count(*) FROM t WHERE x > 3 GROUP BY name").fetchall())
step("first update", lambda: con.execute("UPDATE t SET x = 0 WHERE id = 7"))
ds = ld.dataset(f"{folder}/t.lance")
step("B-tree, first lookup", lambda: (ds.create_scalar_index("id", "BTREE"), ds.to_table(filter="id = 7")))
step("first text index", lambda: ds.create_scalar_index("text", "INVERTED"))
step("first text search", lambda: ds.search("ship bay", k=3))
from lance_duck.kernels.notice import first_use
print(json.dumps({**spent, "kernels compiled": first_use.compiled}))
"""
WRITE = """
import {module}, pyarrow
rows = range(300)
table = pyarrow.table({{"id": rows, "name": [f"name {{i % 7}}" for i in rows], "x": [i / 7 for i in rows]}})
{module}.write_dataset(table, {path!r})
"""
FIRST_ROW = "import {module} as m; m.dataset({path!r}).to_table(limit=1)"


def installed(revision: str, folder: Path) -> tuple[Path, dict[str, float]]:
    """Clone and install a revision; return its interpreter, and the seconds of it."""
    clone, home = folder / "clone", folder / "venv"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    subprocess.run(["git", "-C", str(clone), "checkout", "--quiet", revision], check=True)
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    python = home / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    start, clock = _spent(), time.monotonic()
    subprocess.run([*pip, f"{clone}[cli]"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds = {"pip install .[cli]": _spent() - start, "… by the clock": time.monotonic() - clock}
    subprocess.run([*pip, "pylance"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return python, seconds


def _spent() -> float:
    """Processor seconds of ended children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def first_steps(python: Path, folder: Path) -> dict[str, float]:
    """Processor seconds of each first step, in one process with an empty folder of kernels."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "kernels"), "LANCE_DUCK_QUIET": "1"}
    environment.pop("PYTHONPATH", None)
    command = [str(python), "-c", STEPS, str(folder)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def first_rows(python: Path, table: Path, rounds: int, root: Path | None = None) -> tuple[float, float, float]:
    """Return median processor seconds until a first row, ours and pylance's, and the median ratio."""
    environment = _environment(root)
    spent: dict[str, list[float]] = {"lance_duck": [], "lance": []}
    for _ in range(rounds + 1):
        for module, seconds in spent.items():
            start = _spent()
            code = FIRST_ROW.format(module=module, path=str(table))
            subprocess.run([str(python), "-c", code], cwd=table.parent, env=environment, check=True)
            seconds.append(_spent() - start)
    ours, theirs = (seconds[1:] for seconds in spent.values())  # the first one may compile bytecode
    return median(ours), median(theirs), median(our / their for our, their in zip(ours, theirs, strict=True))


def _environment(root: Path | None) -> dict[str, str]:
    """Return the environment of a process that imports the package from a root, or the installed one."""
    left_out = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "NUMBA_CACHE_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    return environment if root is None else {**environment, "PYTHONPATH": str(root)}


def print_first_rows(rows: dict[str, tuple[float, float, float]]) -> None:
    """Print the second table."""
    print(f"\n{'first row of a process':28}{'ours':>14}{'pylance':>14}{'ratio':>14}")
    for name, (ours, theirs, ratio) in rows.items():
        print(f"{name:28}{ours:14.3f}{theirs:14.3f}{ratio:14.2f}")


def of_checkout(rounds: int) -> None:
    """Print the second table for this checkout."""
    python = Path(sys.executable)
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for module, name in (("lance_duck", "lance_duck's table"), ("lance", "pylance's table")):
            table = Path(folder, f"{module}.lance")
            code = WRITE.format(module=module, path=str(table))
            subprocess.run([str(python), "-c", code], cwd=folder, env=_environment(ROOT), check=True)
            rows[name] = first_rows(python, table, rounds, ROOT)
    print_first_rows(rows)


def sizes(python: Path) -> dict[str, float]:
    """Megabytes of the largest packages."""
    (packages,) = python.parents[1].glob("lib/python*/site-packages")
    found: dict[str, float] = {}
    for entry in packages.iterdir():
        files = entry.rglob("*") if entry.is_dir() else [entry]
        size = sum(file.stat().st_size for file in files if file.is_file() and not file.is_symlink())
        found[entry.name.split(".")[0]] = found.get(entry.name.split(".")[0], 0.0) + size / 1e6
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--revisions", nargs="+", default=["HEAD"], help="revisions to compare (default: HEAD)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of the second table (default: 7)")
    parser.add_argument("--here", action="store_true", help="measure the first row of this checkout alone")
    arguments = parser.parse_args()
    if arguments.here:
        of_checkout(arguments.rounds)
        return
    columns: dict[str, dict[str, float]] = {}
    rows: dict[str, tuple[float, float, float]] = {}
    with tempfile.TemporaryDirectory() as place:
        for revision in arguments.revisions:
            folder = Path(place, revision)
            (folder / "data").mkdir(parents=True)
            python, seconds = installed(revision, folder)
            columns[revision] = seconds | first_steps(python, folder / "data")
            rows[revision] = first_rows(python, folder / "data" / "t.lance", arguments.rounds)
        largest = list(sizes(python).items())
    print(f"{'processor seconds':28}" + "".join(f"{revision:>14}" for revision in columns))
    for name in next(iter(columns.values())):
        print(f"{name:28}" + "".join(f"{column[name]:14.2f}" for column in columns.values()))
    print_first_rows(rows)
    print(f"\ninstalled: {sum(size for _, size in largest):.0f} MB, of these")
    for name, size in largest[:10]:
        print(f"{name:28}{size:14.0f}")


if __name__ == "__main__":
    main()
