"""Views of tables that follow what `lance_duck.spark` writes; counts, histories and other facts as frames."""

from __future__ import annotations

from pyspark.sql import SparkSession

from lance_duck.spark.place import Place


def refresh_views(spark: SparkSession, place: Place) -> None:
    """Make the views of a table that were made by `create_view` anew, on its newest version."""
