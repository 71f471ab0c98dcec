"""Sound tables to damage."""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("LANCE_LOG", "error")

import pytest
from corruption import sound


@pytest.fixture(scope="session")
def columns_tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("sound")
    return {version: sound.write_columns(folder, version) for version in ("legacy", "2.0", "2.1", "2.2", "2.3")}


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sound.write_history(tmp_path_factory.mktemp("sound"))


@pytest.fixture(scope="session")
def deletions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("sound")
    return {kind: sound.write_deletions(folder, many=kind == "bin") for kind in ("arrow", "bin")}


@pytest.fixture(scope="session")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sound.write_indexed(tmp_path_factory.mktemp("sound"))
