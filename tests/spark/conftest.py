"""One Spark session for all tests of a process; tests use separate tables.

The first query takes about 10 s, a later one on a small table 0.2 s. These tests run before all others, see
`tests/conftest.py`, so only one worker of `pytest -n 2 --dist worksteal` starts a session.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from lance_duck.spark.java import ensure_java

Conf = Callable[..., AbstractContextManager[None]]

PRELOAD = Path(__file__).with_name("preload")

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with two cores and three attempts per task."""
    ensure_java()
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.master("local[2,3]").appName("lance_duck")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    warehouse = tmp_path_factory.mktemp("warehouse")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(PRELOAD), prepend=os.pathsep)
        session = builder.config("spark.sql.warehouse.dir", str(warehouse)).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def conf(spark: SparkSession) -> Conf:
    """`with conf(**{key: value})`: settings of the session for a while."""

    @contextmanager
    def use(**settings: Any) -> Iterator[None]:
        before = {key: spark.conf.get(key, None) for key in settings}
        for key, value in settings.items():
            spark.conf.set(key, str(value))
        try:
            yield
        finally:
            for key, old in before.items():
                if old is None:
                    spark.conf.unset(key)
                else:
                    spark.conf.set(key, old)

    return use
