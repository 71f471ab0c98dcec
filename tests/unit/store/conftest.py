from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.servers import s3_server


@pytest.fixture(scope="session")
def options() -> Iterator[dict[str, str]]:
    """An S3 service of this machine, and how to reach it."""
    with s3_server() as options:
        yield options
