"""Temporary views of tables, which are refreshed after writes by `lance_duck.spark`.

A Spark view always reads the version at the time of its creation. Views created by `create_view` are therefore
recorded, and recreated after each write.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

from lance_duck.spark.table_ref import TableRef

Make = Callable[[], DataFrame]

_lock = threading.Lock()


@dataclass(frozen=True)
class _View:
    place: TableRef
    make: Make
    frame: DataFrame


_views: WeakKeyDictionary[SparkSession, dict[str, _View]] = WeakKeyDictionary()


def show_as(spark: SparkSession, name: str, place: TableRef, make: Make, *, follows: bool) -> None:
    """Create or replace a temporary view.

    Args:
        spark: Session of the view.
        name: Name of the view.
        place: The table.
        make: Returns the frame of the view.
        follows: Whether `refresh_views` recreates it.
    """
    frame = make()
    frame.createOrReplaceTempView(name)
    with _lock:
        views = _views.setdefault(spark, {})
        views.pop(name.lower(), None)
        if follows:
            views[name.lower()] = _View(place, make, frame)


def forget(spark: SparkSession, name: str) -> None:
    """Stop refreshing a view."""
    with _lock:
        _views.get(spark, {}).pop(name.lower(), None)


def refresh_views(spark: SparkSession, place: TableRef) -> None:
    """Recreate the views of a table on its newest version, except views that were dropped or replaced. Never raises.

    If a view cannot be recreated, it is left unchanged, and a warning is issued. This happens if the table no longer
    has one of its columns.
    """
    with _lock:
        mine = {name: view for name, view in _views.get(spark, {}).items() if view.place.uri == place.uri}
    for name, view in mine.items():
        try:
            if spark.catalog.tableExists(name) and _is_shown(spark, name, view.frame):
                show_as(spark, name, view.place, view.make, follows=True)
            else:
                forget(spark, name)
        except Exception as error:
            warnings.warn(f"view {name!r} was not refreshed: {error}", stacklevel=3)


def _is_shown(spark: SparkSession, name: str, frame: DataFrame) -> bool:
    """Return whether a view still reads this frame.

    For Connect, which re-analyses DataFrames, only columns are compared.
    """
    current = spark.table(name)
    return current.sameSemantics(frame) if hasattr(spark, "_jsparkSession") else current.schema == frame.schema
