from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lance_duck.errors import NotFoundError
from lance_duck.spark import java


def a_java(folder: Path, version: str) -> Path:
    """What looks like the home of a Java."""
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "java"
    program.write_text('#!/bin/sh\nfor word; do echo "$word"; done\n')
    program.chmod(0o755)
    (folder / "release").write_text(f'JAVA_RUNTIME_VERSION="x"\nJAVA_VERSION="{version}"\n')
    return program


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "path").mkdir()
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")
    monkeypatch.setattr(java.shutil, "which", lambda name: None)


def test_a_suitable_java_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = a_java(tmp_path / "home", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert java.ensure_java() == str(program)
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setattr(java.shutil, "which", lambda name: str(program))
    assert java.ensure_java() == str(program)
    assert os.environ["JAVA_HOME"] == ""


def test_the_bundled_java_replaces_an_unsuitable_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_java(tmp_path / "old", "1.8.0_352")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    packed = a_java(tmp_path / "packed 'one'", "17.0.2")
    monkeypatch.setattr(java, "_packed", lambda: packed)

    found = java.ensure_java()

    assert os.environ["JAVA_HOME"] == str(Path(found).parents[1])
    command = [found, "-cp", "a b", "--add-modules=jdk.incubator.vector", "Main", ""]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "-cp\na b\nMain\n\n"


def test_without_any_java_the_error_suggests_an_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_packed", lambda: None)
    with pytest.raises(NotFoundError, match="pip install"):
        java.ensure_java()


def test_on_windows_the_bundled_java_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_IS_WINDOWS", True)
    with pytest.raises(NotFoundError, match=r"install one$") as caught:
        java.ensure_java()
    assert "pip" not in str(caught.value)
