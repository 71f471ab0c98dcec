"""Makes Spark's workers use the Python of this process, if they run on the same machine.

By default, Spark starts workers with the `python3` on PATH. If the environment is not activated, this package is not
installed in that Python.
"""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql.types import StructType

from lance_duck.errors import JobError
from lance_duck.kernels.notice import first_use
from lance_duck.lazy import uncollected
from lance_duck.spark.save_modes import allow_all_modes

_VARIABLE: Final = "PYSPARK_PYTHON"
_DRIVER_VARIABLE: Final = "PYSPARK_DRIVER_PYTHON"
_SETTINGS: Final = ("spark.pyspark.python", "spark.pyspark.driver.python")
_PACKAGES: Final = ("lance_duck", "pyarrow", "pandas")
_PROBE: Final = f"import importlib.util as u; print([n for n in {_PACKAGES} if u.find_spec(n) is None])"

# pyspark warns whenever it uses pandas, but tests show that the features used here work with pandas 3.
warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning, r"pyspark\.")
_IN_WORKER: Final = any(
    name in ("pyspark.worker", "pyspark.daemon")
    or name.startswith(("pyspark.sql.worker.", "pyspark.sql.streaming.python_streaming_"))
    for name in sys.modules
)
if _IN_WORKER:
    first_use.silence()  # otherwise, each worker would print a line


def load_in_worker(module: str) -> None:
    """In a Spark worker, import a module, and exclude the imported objects from garbage collection.

    Spark collects garbage after each task and each plan step. Visiting the 170,000 objects of imported modules took 85
    ms of CPU time. Collections during the import took a fifth of the import time.
    """
    if not _IN_WORKER:
        return
    # Workers share the processors. faiss threads that spin while they wait used ten times the processor time.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    with uncollected():
        importlib.import_module(module)
        gc.freeze()


def prepare_driver() -> None:
    """Prepare this process for Spark sessions that it starts later. Does nothing in a worker.

    Spark looks for the format "lance" with the `python3` on PATH, unless PYSPARK_DRIVER_PYTHON is set. If that
    `python3` belongs to a different environment, the variable is set to the Python of this process. All save modes are
    enabled for writers.
    """
    if _IN_WORKER:
        return
    allow_all_modes(DataFrameWriter)
    if _VARIABLE in os.environ or _DRIVER_VARIABLE in os.environ or not sys.executable:
        return
    found = shutil.which("python3")
    if found is None or os.path.dirname(found) != os.path.dirname(sys.executable):
        os.environ[_DRIVER_VARIABLE] = sys.executable


def map_batches(
    frame: DataFrame, work: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], columns: str | StructType
) -> DataFrame:
    """Return a DataFrame that applies `work` to the batches of each partition. Workers must have this package.

    Raises:
        JobError: See `use_this_python`.
    """
    use_this_python(frame.sparkSession)
    return frame.mapInArrow(work, columns)


def use_this_python(spark: SparkSession) -> None:
    """Make workers on this machine run the Python of this process, unless the user has configured a Python.

    Sessions of Spark Connect and of clusters are left unchanged, because their workers run on other machines.

    Raises:
        JobError: This package is not installed in the Python that workers on this machine use.
    """
    if getattr(spark, "_jsparkSession", None) is None:
        return
    context: Any = spark.sparkContext
    if not context.master.startswith("local") or context.pythonExec == sys.executable:
        return
    settings = context.getConf()
    if _VARIABLE not in os.environ and not any(settings.contains(name) for name in _SETTINGS):
        context.pythonExec = sys.executable
        return
    missing = "" if context._python_includes else _missing(context.pythonExec)
    if missing:
        raise without_this_package(f"{context.pythonExec}: {missing}")


def without_this_package(text: str) -> JobError:
    """Return the error for workers that run a Python without this package."""
    return JobError(
        "Spark's workers run a Python without lance-duck",
        found=text,
        remedy=f"before the session starts, set {_VARIABLE} in os.environ to a Python with lance-duck, for "
        f"example {sys.executable}; on a cluster, install lance-duck on every machine",
    )


@cache
def _missing(python: str) -> str:
    """Describe why a Python is unsuitable: packages are missing, or it does not run. Empty if it is suitable."""
    try:
        run = subprocess.run([python, "-c", _PROBE], capture_output=True, text=True, timeout=60, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        return f"does not run ({type(error).__name__})"
    names = run.stdout.strip().strip("[]")
    return f"no module named {names}" if names else ""
