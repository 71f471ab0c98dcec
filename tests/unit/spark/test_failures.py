from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from lance_duck.errors import InvalidInputError, NotFoundError
from lance_duck.spark.failures import as_ours, error_in


def test_an_error_of_ours_comes_out_of_the_text_of_sparks() -> None:
    text = "[X] failed: Traceback:\n  File\nlance_duck.errors.NotFoundError: /t: not a dataset; look\n SQLSTATE: 38000"
    with pytest.raises(NotFoundError, match=r"^/t: not a dataset; look$") as raised, as_ours():
        raise PySparkException(text)
    assert isinstance(raised.value.__cause__, PySparkException)


def test_the_last_error_is_the_one_that_was_raised() -> None:
    text = "lance_duck.errors.NotFoundError: a\n\nThe above …\n\nlance_duck.errors.InvalidInputError: b\n"
    assert isinstance(error_in(text), InvalidInputError)


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(PySparkException), as_ours():
        raise PySparkException("lance_duck.errors.Nothing: a")
