"""Write results of benchmarks as JSON, with the machine, the versions and the command."""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import platform
import shlex
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks._harness import OURS, Case

FOLDER = Path(__file__).parent / "results"
LIBRARIES = {
    "pylance": "lance",
    "lancedb": "lancedb",
    "duckdb": "duckdb",
    "pyarrow": "pyarrow",
    "pyspark": "pyspark",
    "faiss-cpu": "faiss",
    "numpy": "numpy",
    "numba": "numba",
}
"""Distributions, and the modules that they install."""

ALWAYS = ("pylance", "duckdb")
"""Libraries that child processes use even if this process does not."""


def write(question: str, note: str, cases: Sequence[Case], arguments: argparse.Namespace) -> None:
    """Write the results to the file or into the folder that `--json` names."""
    name = Path(sys.argv[0]).stem
    result = {
        "question": question,
        "note": note,
        "command": command(name, sys.argv[1:]),
        "date": datetime.date.today().isoformat(),
        "clock": "processor" if getattr(arguments, "processor", False) else "wall",
        "rounds": max(len(values) for case in cases for values in case.seconds.values()),
        "machine": machine(),
        "versions": versions(),
        "cases": {case.name: _measured(case) for case in cases},
    }
    target = arguments.json / f"{name}.json" if arguments.json.is_dir() else arguments.json
    target.write_text(json.dumps(result, indent=1, allow_nan=False, ensure_ascii=False) + "\n", encoding="utf-8")


def _measured(case: Case) -> dict[str, Any]:
    ratios = {peer: case.ratio(peer) for peer in case.seconds if peer != OURS}
    measured: dict[str, Any] = {"unit": case.unit or "s", "note": case.note}
    measured["median"] = {name: _digits(case.median(name)) for name in case.seconds}
    measured["ratio"] = {peer: _digits(ratio) if math.isfinite(ratio) else None for peer, ratio in ratios.items()}
    return measured


def _digits(value: float) -> float:
    """Return a value with four significant digits."""
    return float(f"{value:.4g}")


def command(name: str, words: Sequence[str]) -> str:
    """Return the command that repeats a measurement, without `--json`. Absolute paths become names: `PYTHON`."""
    kept = list(words)
    if "--json" in kept:
        at = kept.index("--json")
        del kept[at : at + 2]
    return shlex.join(
        [
            "python",
            "-m",
            f"benchmarks.{name}",
            *(Path(each).name.upper() if each.startswith("/") else each for each in kept),
        ]
    )


def machine() -> dict[str, Any]:
    """Return the cores, the processor, the memory and the system."""
    gibibytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "memory": f"{gibibytes:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def versions() -> dict[str, str]:
    """Return the versions of lance-duck, Python and the libraries used."""
    used = {name: version(name) for name, module in LIBRARIES.items() if name in ALWAYS or module in sys.modules}
    return {OURS: version(OURS), "python": platform.python_version(), **used}
