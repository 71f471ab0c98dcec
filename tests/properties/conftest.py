"""Sample tables, written once."""

from __future__ import annotations

import os

os.environ.setdefault("LANCE_LOG", "error")

import pytest
from properties import sample


@pytest.fixture(scope="session", params=[("2.0", False), ("2.1", True), ("2.2", True)], ids=lambda p: p[0])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> sample.Sample:
    version, deletions = request.param
    return sample.write(str(tmp_path_factory.mktemp("sample") / "t.lance"), version, deletions=deletions)
