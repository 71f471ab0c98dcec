from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lance_duck.errors import JobError
from lance_duck.spark.workers import prepare_driver, use_this_python

LOADING = """
import gc, importlib, os, sys

import lance_duck.spark
from lance_duck.spark import workers

assert "lance_duck.spark.frames" not in sys.modules
assert (gc.get_freeze_count(), "OMP_WAIT_POLICY" in os.environ) == (0, False)

import pyspark.worker

importlib.reload(workers).load_in_worker("lance_duck.spark.io.datasource")
assert "lance_duck.spark.io.datasource" in sys.modules
assert not {"faiss", "lance_duck.spark.verbs", "lance_duck.maintenance.cleanup_plan"} & set(sys.modules)
assert gc.isenabled()
assert gc.get_freeze_count() > 50_000
assert os.environ["OMP_WAIT_POLICY"] == "passive"
"""


def session(master: str = "local[2]", python: str = "python3", settings: tuple[str, ...] = ()) -> Any:
    context = SimpleNamespace(
        master=master,
        pythonExec=python,
        getConf=lambda: SimpleNamespace(contains=lambda name: name in settings),
        _python_includes=[],
    )
    return SimpleNamespace(_jsparkSession=object(), sparkContext=context)


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)


@pytest.mark.parametrize("master", ["local", "local[4]", "local[*, 3]", "local-cluster[2,1,1024]"])
def test_workers_on_this_machine_run_the_python_of_this_process(master: str) -> None:
    spark = session(master)
    use_this_python(spark)
    assert spark.sparkContext.pythonExec == sys.executable


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host"])
def test_cluster_workers_keep_their_python(master: str) -> None:
    spark = session(master)
    use_this_python(spark)
    assert spark.sparkContext.pythonExec == "python3"


def test_a_spark_connect_session_is_unchanged() -> None:
    use_this_python(SimpleNamespace())  # type: ignore[arg-type]


def test_a_user_choice_of_python_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chosen = tmp_path / "chosen"
    monkeypatch.setenv("PYSPARK_PYTHON", str(chosen))
    chosen.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    chosen.chmod(0o755)
    spark = session(python=str(chosen))
    use_this_python(spark)
    assert spark.sparkContext.pythonExec == str(chosen)


@pytest.mark.parametrize("setting", ["spark.pyspark.python", "spark.pyspark.driver.python"])
def test_a_python_that_fails_to_start_is_named(setting: str, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    with pytest.raises(JobError, match=f"{nowhere}: does not run"):
        use_this_python(session(python=nowhere, settings=(setting,)))


def test_a_python_without_this_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(bare))
    spark = session(python=str(bare))
    with pytest.raises(JobError, match=r"bare: no module named 'lance_duck', 'pyarrow', 'pandas'"):
        use_this_python(spark)
    spark.sparkContext._python_includes = ["lance_duck.zip"]  # sent along with the tasks
    use_this_python(spark)


def test_a_worker_loads_the_source_and_freezes_it_for_garbage_collection() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    run = subprocess.run([sys.executable, "-c", LOADING], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"PATH": "/nowhere"}, sys.executable),
        ({"PATH": os.path.dirname(sys.executable)}, None),
        ({"PATH": "/nowhere", "PYSPARK_PYTHON": "/p"}, None),
        ({"PATH": "/nowhere", "PYSPARK_DRIVER_PYTHON": "/d"}, "/d"),
    ],
)
def test_spark_finds_the_data_source_with_the_current_python(
    environment: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    prepare_driver()
    assert os.environ.get("PYSPARK_DRIVER_PYTHON") == expected
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)


def test_the_hook_names_the_python_that_lacks_the_package() -> None:
    """Spark shows this error text in a warning, and continues without the format."""
    code = "import sys; sys.modules['pyarrow'] = None; import pyspark_lance_duck"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stderr.splitlines()[-1] == (
        f"ModuleNotFoundError: lance-duck: the Python {sys.executable} that Spark asks for formats lacks pyarrow; "
        "`import lance_duck.spark` before the session begins, or set PYSPARK_PYTHON to a Python with "
        "lance-duck and its extra `spark`"
    )
    assert len(run.stderr.splitlines()) < 6
