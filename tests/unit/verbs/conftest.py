from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def hasty() -> dict[str, str]:
    """Settings of a store that does not wait for the disk."""
    return {"fsync": "false"}


@pytest.fixture
def place(tmp_path: Path) -> str:
    """Where a table may be."""
    return str(tmp_path / "t")
