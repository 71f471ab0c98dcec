"""JSON log lines name the token of the request in a field of its own."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from lance_duck.serve.gate.tokens import AccessToken, Role
from lance_duck.serve.run import JsonLines, Server

SECRET = "secret"


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """A function that returns the log lines. Every statement is slow."""
    monkeypatch.setenv("LANCE_DUCK_SLOW_STATEMENT_MS", "0")
    written, logger = io.StringIO(), logging.getLogger("lance_duck")
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonLines())
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.DEBUG)
    yield lambda: [json.loads(line) for line in written.getvalue().splitlines()]
    logger.removeHandler(handler)
    logger.setLevel(level)


def ask(server: Server, query: str, accept: str, token: str = SECRET) -> int:
    headers = {"Authorization": f"Bearer {token}", "Accept": accept}
    try:
        with urlopen(Request(f"{server.url}/sql", json.dumps({"query": query}).encode(), headers)) as answer:
            answer.read()
            return answer.status
    except HTTPError as problem:
        return problem.code


@pytest.mark.parametrize("accept", ["application/json", "text/csv", "text/html"])
def test_lines_of_requests_and_slow_statements_name_the_token(
    start: Callable[..., Server], tmp_path: Path, lines: Callable[[], list[dict[str, Any]]], accept: str
) -> None:
    server = start(tmp_path, tokens=(AccessToken.of("ana", Role.READ, SECRET), AccessToken.of("bo", Role.READ, "b")))
    assert ask(server, "SELECT 42 AS first", accept) == 200
    assert ask(server, "SELECT 42 AS second", accept, "b") == 200
    assert ask(server, "SELECT nothing", accept) == 400
    server.__exit__()
    slow = [line for line in lines() if line["logger"] == "lance_duck.slow"]
    assert [(line["user.name"], "first" in line["message"]) for line in slow] == [
        ("ana", True),
        ("bo", False),
        ("ana", False),
    ]
    requests = [line for line in lines() if line["message"].startswith("POST /sql ")]
    assert [line["user.name"] for line in requests] == ["ana", "bo", "ana"]
    failures = [line for line in lines() if " failed" in line["message"]]
    assert {line["user.name"] for line in failures} <= {"ana"}


def test_a_line_of_a_caller_without_a_token_names_nobody(
    start: Callable[..., Server], tmp_path: Path, lines: Callable[[], list[dict[str, Any]]]
) -> None:
    server = start(tmp_path, tokens=(AccessToken.of("ana", Role.READ, SECRET),))
    assert ask(server, "SELECT 42", "application/json", "wrong") == 401
    server.__exit__()
    (line,) = (line for line in lines() if line["message"].startswith("POST /sql 401"))
    assert line["user.name"] == "-"


def test_a_line_outside_requests_has_no_name(lines: Callable[[], list[dict[str, Any]]]) -> None:
    logging.getLogger("lance_duck.cache").warning("full")
    (line,) = lines()
    assert (line["message"], "user.name" in line) == ("full", False)
