"""Runs probes over many damaged copies of one file and collects what must not happen."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MOST_CRASHES = 5


def assert_survives(
    table: Path,
    target: Path,
    damaged: Iterable[tuple[str, bytes]],
    scratch: Path,
    indexed: tuple[Sequence[str], Sequence[str]] | None = None,
    *,
    searched: bool = False,
) -> int:
    """Write each damaged content to `target` and read the table; return the number of contents.

    If columns and filters are given, the table is read through the indexes of these columns. With `searched`, it is
    read through its vector or full-text indexes.

    Fails if a content causes an error other than a LanceDuckError, or if the process dies, hangs, or allocates much
    more memory than the file's size. The message names these contents.
    """
    copy = scratch / "copy"
    shutil.copytree(table, copy, symlinks=True)
    names = []
    for i, (name, data) in enumerate(damaged):
        (scratch / str(i)).write_bytes(data)
        names.append(name)
    job = {
        "sound": str(table),
        "table": str(copy),
        "target": str(copy / target.relative_to(table)),
        "count": len(names),
        "indexed": indexed,
        "searched": searched,
    }
    problems = _run(job, scratch, names)
    assert not problems, f"{len(problems)} of {len(names)} damaged copies of {target.name}\n" + "\n".join(problems[:12])
    return len(names)


def _run(job: dict[str, object], scratch: Path, names: list[str]) -> list[str]:
    problems: list[str] = []
    start, crashes = 0, 0
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    while start < len(names) and crashes < MOST_CRASHES:
        (scratch / "job.json").write_text(json.dumps({**job, "start": start}))
        (scratch / "at").unlink(missing_ok=True)
        command = [sys.executable, str(HERE / "probe.py"), str(scratch)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        problems += [f"{names[p['at']]}: {p['error']}" for p in map(json.loads, done.stdout.splitlines())]
        if done.returncode == 0:
            break
        at = scratch / "at"
        assert at.exists(), f"the sound table cannot be read: {done.stderr[-3000:]}"
        crashes += 1
        start = int(at.read_text()) + 1
        problems.append(f"{names[start - 1]}: the process ended with {done.returncode}\n{done.stderr[-2500:]}")
    return problems
