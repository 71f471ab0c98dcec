"""A server starts, answers probes, lists tables and stops."""

import json
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import lance_duck as ld
from lance_duck.serve.run import Server


def fetch(url: str, **headers: str) -> tuple[int, object]:
    """Return the status and the JSON value of a GET request."""
    try:
        with urlopen(Request(url, headers=headers)) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        return error.code, json.load(error)


def test_a_server_is_live_and_ready(server: Server) -> None:
    assert fetch(f"{server.url}/live") == (200, {"status": "live"})
    assert fetch(f"{server.url}/ready") == (200, {"status": "ready"})


@pytest.mark.parametrize("path", ["$/table/list", "%24/table/list?delimiter=%24", "$/table/list/"])
def test_paths_may_be_encoded_and_end_with_a_slash(start: Callable[..., Server], tmp_path: Path, path: str) -> None:
    ld.write_dataset({"x": [1]}, tmp_path / "t.lance")
    server = start(tmp_path)
    assert fetch(f"{server.url}/v1/namespace/{path}")[1]["tables"] == ["t"]  # type: ignore[index]


def test_an_unknown_path_is_not_found(server: Server) -> None:
    assert fetch(f"{server.url}/nope") == (404, {"error": "/nope: unknown path", "code": 4})


def test_errors_hide_the_folder_if_locations_are_hidden(
    start: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ld.write_dataset({"x": [1]}, tmp_path / "data" / "t.lance")
    monkeypatch.chdir(tmp_path)
    for place in ("data", str(tmp_path / "data"), f"file://{tmp_path}/data"):
        server = start(place, locations=False)
        status, answer = fetch(f"{server.url}/table/t?version=9", accept="application/json")
        assert status == 404
        assert str(tmp_path) not in str(answer)
        assert "t.lance: no version 9" in str(answer)
