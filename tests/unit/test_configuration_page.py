"""The page `docs/reference/configuration.md` lists the options, settings, variables and limits of the code."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Final

import pytest

import lance_duck as ld
from lance_duck.duck.run.search_settings import SearchSettings
from lance_duck.encoding.write import options
from lance_duck.index.kind import BuildOptions
from lance_duck.maintenance import auto_cleanup
from lance_duck.snapshot.costs import CACHED_FILES, SHARED_BYTES
from lance_duck.store import client
from lance_duck.store.hub import OPTIONS

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8")
SECTIONS: Final = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")[1:]}


def listed(section: str) -> set[str]:
    """Return the names in backquotes in the first column of a section's tables."""
    rows = re.findall(r"^\| (`[^|]+) \|", SECTIONS[section], re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_environment_variables_of_the_package_are_listed() -> None:
    files = [*(ROOT / "lance_duck").rglob("*.py"), ROOT / "lance_duck_command.py", ROOT / "hatch_build.py"]
    source = "\n".join(file.read_text(encoding="utf-8") for file in files)
    read = set(re.findall(r'"(LANCE_[A-Z_]+)"', source)) | set(re.findall(r'environ\.get\("(\w+)"', source))
    found = listed("Environment variables")
    assert read >= {"LANCE_DUCK_QUIET", "LANCE_DUCK_KERNELS", "LANCE_DUCK_BUILD_KERNELS", "HF_TOKEN"}
    assert not read - found - {"TERM", "PYTHONPATH"}
    assert not {name for name in found if name.startswith("LANCE_")} - read


def test_storage_options_of_the_package_are_listed() -> None:
    assert {*client.OWN_OPTIONS, *OPTIONS} <= listed("Storage options")


def test_search_settings_are_listed() -> None:
    assert {f"lance_{field.name}" for field in fields(SearchSettings)} == listed("Connection settings")


def test_table_settings_are_listed() -> None:
    assert {auto_cleanup.INTERVAL, auto_cleanup.OLDER_THAN, auto_cleanup.RETAIN} == listed("Table settings")


def test_column_settings_exist() -> None:
    described = set(re.findall(r"lance-encoding:[a-z-]+", options.__doc__ or ""))
    assert listed("Column settings") <= described


@pytest.mark.parametrize(
    ("row", "limit"),
    [
        ("Open indexes of a table", f"{SHARED_BYTES >> 30} GiB"),
        ("Metadata of data files", f"{CACHED_FILES} files"),
        ("Index builds", f"{BuildOptions().memory_limit >> 30} GiB"),
    ],
)
def test_limits_are_those_of_the_code(row: str, limit: str) -> None:
    (line,) = re.findall(rf"^\| {row}.*$", SECTIONS["Memory and caches"], re.MULTILINE)
    assert f"| {limit}" in line


def test_warnings_are_listed() -> None:
    names = {f"ld.{name}" for name in ld.__all__ if name.endswith("Warning")}
    assert names == listed("Warnings")
