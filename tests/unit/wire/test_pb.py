"""The generated code: the supported protobuf versions, without warnings about older code."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
GENERATED = sorted((ROOT / "lance_duck" / "wire" / "pb").glob("*_pb2.py"))


def version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def lower_bounds() -> dict[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    required = [*project["dependencies"], *extras["cli"], *extras["spark"]]
    return dict(match.groups() for text in required if (match := re.fullmatch(r"([\w-]+)>=([\d.]+)", text)))


def test_generated_code_supports_the_oldest_allowed_protobuf() -> None:
    oldest = version(lower_bounds()["protobuf"])
    for path in GENERATED:
        generated = re.search(r"# Protobuf Python Version: ([\d.]+)", path.read_text(encoding="utf-8"))
        assert generated is not None
        assert version(generated[1]) <= oldest, path.name


def test_the_oldest_libraries_of_the_tests_are_the_lower_bounds() -> None:
    pins = dict(re.findall(r"^([\w-]+)==([\d.]+)$", (ROOT / "tests" / "lowest.txt").read_text(encoding="utf-8"), re.M))
    bounds = lower_bounds()
    assert {"duckdb", "protobuf", "numba", "typer", "pyspark"} <= bounds.keys()
    for name, bound in bounds.items():
        # A pin may name a patch release of a bound.
        assert version(pins[name])[: len(version(bound))] == version(bound), name


@pytest.mark.parametrize("module", ["table_pb2", "encodings21_pb2"])
def test_protobuf_warnings_about_older_code_are_suppressed(module: str) -> None:
    script = f"""
import warnings
from google.protobuf import runtime_version

def validate(domain, major, minor, patch, suffix, location):
    if location.startswith("lance_duck/"):
        calls.append(location)
    warnings.warn(f"Protobuf gencode version {{major}}.{{minor}}.{{patch}} is exactly one major version older than ...")

calls = []
runtime_version.ValidateProtobufRuntimeVersion = validate
from lance_duck.wire.pb import {module}
assert len(calls) == {len(GENERATED)}, calls
try:
    warnings.warn("Protobuf gencode version of another package")
except UserWarning:
    print("heard")
"""
    run = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.strip()) == (0, "heard"), run.stderr
