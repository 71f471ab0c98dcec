"""Errors of sources, sinks and table functions hide the frames of the raising process."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

import pytest

from lance_duck.errors import InternalError, InvalidInputError
from lance_duck.spark.brief_errors import brief_errors


@brief_errors
class Source:
    def plan(self, error: type[Exception]) -> int:
        """Plan."""
        try:
            raise KeyError("inner")
        except KeyError as cause:
            raise error("outer") from cause

    def read(self, error: type[Exception]) -> Iterator[int]:
        yield 1
        self._fail(error)

    @staticmethod
    def analyze(error: type[Exception]) -> int:
        return Source().plan(error)

    def _fail(self, error: type[Exception]) -> None:
        raise error("outer")


def lines(source: Source, error: type[Exception], method: str) -> list[str]:
    try:
        list(source.read(error)) if method == "read" else getattr(source, method)(error)
    except error:
        return traceback.format_exc().splitlines()
    pytest.fail("no error")


@pytest.mark.parametrize("method", ["plan", "read", "analyze"])
def test_user_errors_have_no_inner_frames_or_causes(method: str) -> None:
    found = lines(Source(), InvalidInputError, method)
    assert found[-1] == "lance_duck.errors.InvalidInputError: outer"
    assert not any("_fail" in line or "inner" in line for line in found)


@pytest.mark.parametrize("error", [InternalError, ZeroDivisionError])
@pytest.mark.parametrize("method", ["plan", "read"])
def test_other_errors_keep_their_frames(error: type[Exception], method: str) -> None:
    found = lines(Source(), error, method)
    assert any("_fail" in line or "inner" in line for line in found)


def test_wrapped_methods_keep_their_names_and_results() -> None:
    assert (Source.plan.__name__, Source.plan.__doc__) == ("plan", "Plan.")
    assert next(Source().read(InvalidInputError)) == 1
