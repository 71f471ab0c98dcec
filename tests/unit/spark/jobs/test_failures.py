from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from lance_duck.errors import InvalidInputError, JobError, NotFoundError
from lance_duck.spark.jobs.failures import as_ours, error_in


def test_a_lance_duck_error_is_extracted_from_a_spark_error() -> None:
    text = "[X] failed: Traceback:\n  File\nlance_duck.errors.NotFoundError: /t: table not found; look\n SQLSTATE: 1"
    with pytest.raises(NotFoundError, match=r"^/t: table not found; look$") as raised, as_ours():
        raise PySparkException(text)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_the_last_error_in_the_text_is_raised() -> None:
    text = "lance_duck.errors.NotFoundError: a\n\nThe above …\n\nlance_duck.errors.InvalidInputError: b\n"
    assert isinstance(error_in(text), InvalidInputError)


def test_other_errors_are_unchanged() -> None:
    with pytest.raises(PySparkException), as_ours():
        raise PySparkException("lance_duck.errors.Nothing: a")


def test_a_worker_with_another_python_gets_a_remedy() -> None:
    for said in ("ModuleNotFoundError: No module named 'lance_duck'\n SQLSTATE", "[PYTHON_VERSION_MISMATCH] Python in"):
        with pytest.raises(JobError, match="PYSPARK_PYTHON") as raised, as_ours():
            raise PySparkException(f"[X] failed: Traceback\n  File\n{said}")
        assert isinstance(raised.value.__cause__, PySparkException)
    assert error_in("ModuleNotFoundError: No module named 'lance_of_others'") is None
