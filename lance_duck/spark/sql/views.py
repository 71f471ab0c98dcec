"""Views of tables that follow what `lance_duck.spark` writes.

What a view of Spark shows is fixed when it is made: it does not see what is written later. Those that were made by
`create_view` are therefore remembered, and made again after each write.
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
    """Make a temporary view, in place of one of the same name.

    Args:
        spark: Its session.
        name: Name of the view.
        place: The table.
        make: Gives the frame that it shows.
        follows: Whether it is made again by `refresh_views`.
    """
    frame = make()
    frame.createOrReplaceTempView(name)
    with _lock:
        views = _views.setdefault(spark, {})
        views.pop(name.lower(), None)
        if follows:
            views[name.lower()] = _View(place, make, frame)


def forget(spark: SparkSession, name: str) -> None:
    """Make a view anew no more."""
    with _lock:
        _views.get(spark, {}).pop(name.lower(), None)


def refresh_views(spark: SparkSession, place: TableRef) -> None:
    """Make the views of a table anew, on its newest version; those that were dropped or replaced stay so. Never raises.

    A view that cannot be made, because the table has lost a column of it, stays what it was, with a warning.
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
    """Return whether a view shows this frame still; on Connect, which analyses frames anew, one of such columns."""
    current = spark.table(name)
    return current.sameSemantics(frame) if hasattr(spark, "_jsparkSession") else current.schema == frame.schema
