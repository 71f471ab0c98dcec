"""Errors as clients see them."""

import duckdb

from lance_duck.serve.problems import HttpProblem


def test_a_long_error_is_cut_and_has_no_part_of_a_secret() -> None:
    uri = "s3://user:password@bucket/t.lance"
    for before in range(3960, 4000):
        text = HttpProblem.of(duckdb.Error("x" * before + f" {uri} " + "y" * 100_000), "id").text
        assert len(text) == 4000
        assert "user" not in text
        assert "pass" not in text
