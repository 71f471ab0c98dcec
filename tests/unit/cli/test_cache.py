"""`lance-duck cache`, and `--cache` of other commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from support.command_line import objects, run
from support.servers import BUCKET, s3_server

import lance_duck as ld
from lance_duck.cli import serve
from lance_duck.errors import InvalidInputError, NotFoundError
from lance_duck.store.client import bucket_client


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A folder with `t.lance` in a bucket that the environment describes."""
    with s3_server() as options:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", options["aws_access_key_id"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", options["aws_secret_access_key"])
        monkeypatch.setenv("AWS_ENDPOINT_URL", options["aws_endpoint"])
        monkeypatch.setenv("AWS_REGION", options["region"])
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        folder = f"s3://{BUCKET}/{uuid4()}"
        ld.write_dataset({"id": [1, 2, 3]}, f"{folder}/t.lance")
        yield folder
    bucket_client.cache_clear()


def test_sql_reads_through_a_cache_that_can_be_shown_and_emptied(bucket: str, tmp_path: Path) -> None:
    folder = str(tmp_path / "cache")
    for place, table in ((bucket, "t"), (f"{bucket}/t.lance", "t")):
        done = run("sql", place, f"SELECT sum(id) AS s FROM {table}", "--cache", folder, "--cache-size", "1GB")
        assert done.stdout == "s\n6\n"
    (found,) = objects("cache", folder)
    assert (found["blocks"], found["objects"]) == (1, 1)
    assert str(found["oldest use"]).endswith("+00:00")
    assert objects("cache", folder, "--clear") == [{"deleted": 1, "bytes": found["bytes"]}]
    assert objects("cache", folder) == [{"blocks": 0, "objects": 0, "bytes": 0, "oldest use": None}]


def test_a_folder_that_is_not_a_cache_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter").touch()
    for words in (["cache", str(tmp_path)], ["cache", str(tmp_path), "--clear"]):
        with pytest.raises(InvalidInputError, match="not a cache of lance-duck"):
            run(*words)
    with pytest.raises(NotFoundError, match="no such folder"):
        run("cache", str(tmp_path / "missing"))
    assert (tmp_path / "letter").exists()


@pytest.mark.parametrize("words", [("sql", ".", "SELECT 1"), ("serve", "."), ("mcp", ".")])
def test_a_size_needs_a_folder_also_for_local_tables(words: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError, match="--cache-size needs a folder; pass --cache"):
        run(*words, "--cache-size", "1GB")


def test_servers_read_through_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    class Served:
        url = "http://nowhere"
        flight_url = None

        def __init__(self, settings: Any) -> None:
            seen.append(settings.storage_options)

        def run(self, begun: object) -> None:
            """Serve nothing."""

    monkeypatch.setattr(serve.run, "Server", Served)
    monkeypatch.setattr(serve.process_memory, "limit_process", lambda counted: None)
    for words in (["--cache", str(tmp_path / "c"), "--cache-size", "5GB"], []):
        run("serve", str(tmp_path), *words)
    assert seen == [{"cache": str(tmp_path / "c"), "cache_size": "5GB"}, None]
