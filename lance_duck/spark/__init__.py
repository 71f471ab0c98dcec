"""Lance tables in Spark, without a jar: what PySpark users call."""

from lance_duck.spark.change_jobs import delete, update

__all__ = ["delete", "update"]
