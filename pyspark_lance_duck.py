"""What makes `spark.read.format("lance")` work without being asked: pyspark looks into modules named `pyspark_*`."""

from lance_duck.spark.io.datasource import LanceDataSource as DefaultSource

__all__ = ["DefaultSource"]
