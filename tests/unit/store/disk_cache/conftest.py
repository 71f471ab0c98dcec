from __future__ import annotations

from pathlib import Path

import pytest

from lance_duck.store.disk_cache.claim import claim
from lance_duck.store.disk_cache.folder import CacheFolder


@pytest.fixture
def folder(tmp_path: Path) -> CacheFolder:
    """A new cache folder."""
    claim(str(tmp_path / "cache"))
    return CacheFolder(str(tmp_path / "cache"))
