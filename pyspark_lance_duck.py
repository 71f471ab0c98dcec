"""Hook for `spark.read.format("lance")`. PySpark imports modules named `pyspark_*` to find data sources."""

import sys

try:
    from lance_duck.spark.io.datasource import LanceDataSource as DefaultSource
except ModuleNotFoundError as error:
    # Spark shows this message and continues without the format.
    message = (
        f"lance-duck: the Python {sys.executable} that Spark asks for formats lacks {error.name}; "
        "`import lance_duck.spark` before the session begins, or set PYSPARK_PYTHON to a Python with "
        "lance-duck and its extra `spark`"
    )
    raise ModuleNotFoundError(message, name=error.name) from None

__all__ = ["DefaultSource"]
