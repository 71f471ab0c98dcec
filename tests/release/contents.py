"""The contents of release files: metadata, licence, and the package's files."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODULES = ("lance_duck_command.py", "pyspark_lance_duck.py")
OF_SOURCES = (
    *("LICENSE", "README.md", "CHANGELOG.md", "ARCHITECTURE.md"),
    *("pyproject.toml", "hatch_build.py", ".gitignore"),
)
PACKS = "lance_duck/kernels/packs/"


def check_contents(sources: Path, wheel: Path, *, with_packs: bool) -> None:
    """Check both files of a release against the files that git knows; the first difference ends the process."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    package, statements, protos = (tracked(folder) for folder in ("lance_duck", "sql", "protos"))
    folder = f"{project['name'].replace('-', '_')}-{project['version']}"
    with tarfile.open(sources) as archive:
        held = {member.name for member in archive.getmembers() if member.isfile()}
        about = archive.extractfile(f"{folder}/PKG-INFO")
        assert about is not None
        check_metadata(message_from_bytes(about.read()), project)
    expected = {*package, *statements, *protos, *MODULES, *OF_SOURCES, "PKG-INFO"}
    compare(sources, held, {f"{folder}/{name}" for name in expected})
    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
        check_metadata(message_from_bytes(content.read(f"{folder}.dist-info/METADATA")), project)
        same = content.read(f"{folder}.dist-info/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    if not same:
        sys.exit(f"{wheel.name} has another licence")
    packs = {name for name in names if name.startswith(PACKS)}
    if bool(packs) is not with_packs:
        sys.exit(f"{wheel.name} has {len(packs)} packs of kernels")
    infos = {f"{folder}.dist-info/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")}
    infos.add(f"{folder}.dist-info/licenses/LICENSE")
    compare(wheel, names - packs, {*package, *(f"lance_duck/duck/{name}" for name in statements), *MODULES, *infos})


def check_metadata(found: Message, project: dict[str, object]) -> None:
    """Check that metadata names the version, the licence, the extras and a description in Markdown."""
    extras = project["optional-dependencies"]
    assert isinstance(extras, dict)
    expected = {
        "Name": [project["name"]],
        "Version": [project["version"]],
        "Requires-Python": [project["requires-python"]],
        "License-Expression": [project["license"]],
        "License-File": project["license-files"],
        "Provides-Extra": sorted(extras),
        "Description-Content-Type": ["text/markdown"],
    }
    given = {name: sorted(found.get_all(name, [])) for name in expected}
    if given != expected:
        sys.exit(f"metadata are {given}, expected {expected}")
    if found.get_payload(decode=True) != (ROOT / "README.md").read_bytes():
        sys.exit("the description is not README.md")


def tracked(folder: str) -> set[str]:
    """Return the files of a folder that git knows."""
    listed = subprocess.run(["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(listed.stdout.splitlines())


def compare(archive: Path, held: set[str], expected: set[str]) -> None:
    """End the process if an archive lacks a file or has an unexpected one."""
    if held != expected:
        sys.exit(f"{archive.name} lacks {sorted(expected - held)}, and has {sorted(held - expected)}")
    print(f"{archive.name}: {len(held)} files, as expected")
