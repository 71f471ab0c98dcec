from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from lance_duck.errors import InvalidInputError, JobError, NotFoundError
from lance_duck.spark.jobs.failures import as_ours, error_in


def test_an_error_of_ours_comes_out_of_the_text_of_sparks() -> None:
    text = "[X] failed: Traceback:\n  File\nlance_duck.errors.NotFoundError: /t: table not found; look\n SQLSTATE: 1"
    with pytest.raises(NotFoundError, match=r"^/t: table not found; look$") as raised, as_ours():
        raise PySparkException(text)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_the_last_error_is_the_one_that_was_raised() -> None:
    text = "lance_duck.errors.NotFoundError: a\n\nThe above …\n\nlance_duck.errors.InvalidInputError: b\n"
    assert isinstance(error_in(text), InvalidInputError)


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(PySparkException), as_ours():
        raise PySparkException("lance_duck.errors.Nothing: a")


def test_workers_of_another_python_are_told_how_to_run_this_one() -> None:
    for said in ("ModuleNotFoundError: No module named 'lance_duck'\n SQLSTATE", "[PYTHON_VERSION_MISMATCH] Python in"):
        with pytest.raises(JobError, match="PYSPARK_PYTHON") as raised, as_ours():
            raise PySparkException(f"[X] failed: Traceback\n  File\n{said}")
        assert isinstance(raised.value.__cause__, PySparkException)
    assert error_in("ModuleNotFoundError: No module named 'lance_of_others'") is None
