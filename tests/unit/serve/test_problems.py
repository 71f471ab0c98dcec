"""Errors as clients see them."""

from typing import Any

import duckdb
import pytest

from lance_duck.serve.gate import refusals
from lance_duck.serve.problems import HttpProblem


@pytest.mark.parametrize(
    ("kind", "status", "code", "headers"),
    [
        (refusals.LimitError, 413, 13, {}),
        (refusals.BodyTooLargeError, 413, 13, {}),
        (refusals.TimeLimitError, 422, 13, {}),
        (refusals.SlowBodyError, 408, 13, {"connection": "close"}),
        (refusals.BusyError, 429, 21, {"retry-after": "1"}),
        (refusals.StoppingError, 503, 17, {"retry-after": "1"}),
        (duckdb.ParserException, 400, 13, {}),
    ],
)
def test_limits_have_statuses_of_their_own(kind: Any, status: int, code: int, headers: dict[str, str]) -> None:
    problem = HttpProblem.of(kind("x"), "id")
    assert (problem.status, problem.code, problem.headers) == (status, code, headers)


def test_a_long_error_is_cut_and_has_no_part_of_a_secret() -> None:
    uri = "s3://user:password@bucket/t.lance"
    for before in range(3960, 4000):
        text = HttpProblem.of(duckdb.Error("x" * before + f" {uri} " + "y" * 100_000), "id").text
        assert len(text) == 4000
        assert "user" not in text
        assert "pass" not in text
