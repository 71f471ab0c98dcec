"""What a worker of Spark loads, and what a driver does not."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
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


def test_a_worker_loads_the_source_and_keeps_it_from_the_garbage_collector() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    run = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
