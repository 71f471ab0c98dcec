"""Lance tables in Spark, without a jar: what PySpark users call."""

from lance_duck.spark.change_jobs import delete, update
from lance_duck.spark.merge_jobs import SparkMerge, merge_insert

__all__ = ["SparkMerge", "delete", "merge_insert", "update"]
