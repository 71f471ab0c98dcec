"""Views of tables that follow writes by `lance_duck.spark`.

A Spark view is fixed to the version of its creation and does not see later writes. Views made by `create_view` are
therefore recorded, and recreated after each write.
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
    """Recreate the views of a table on its newest version, except dropped or replaced ones. Never raises.

    A view that cannot be recreated, because the table lost one of its columns, is left unchanged with a warning.
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
    """Return whether a view still shows this frame. Connect re-analyses DataFrames, so only columns are compared."""
    current = spark.table(name)
    return current.sameSemantics(frame) if hasattr(spark, "_jsparkSession") else current.schema == frame.schema
