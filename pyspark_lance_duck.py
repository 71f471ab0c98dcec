"""Hook for `spark.read.format("lance")`: PySpark imports modules named `pyspark_*` to find data sources."""

from lance_duck.spark.io.datasource import LanceDataSource as DefaultSource

__all__ = ["DefaultSource"]
