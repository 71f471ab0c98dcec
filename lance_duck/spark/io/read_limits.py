"""Limits on how much a stream reads at once, known to Spark from 4.2 on.

These are names of pyspark, apart so that the source of streams need not ask which Spark it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

    LIMITS_READS: bool
else:
    try:
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable,
            ReadLimit,
            ReadMaxFiles,
            SupportsTriggerAvailableNow,
        )

        LIMITS_READS = True
    except ImportError:
        ReadLimit = ReadMaxFiles = object

        class ReadAllAvailable:
            """No limit: stands in for the class that older Spark lacks."""

        class SupportsTriggerAvailableNow:
            """Stands in for the class that older Spark lacks; such a session reads everything at once."""

        LIMITS_READS = False

__all__ = ["LIMITS_READS", "ReadAllAvailable", "ReadLimit", "ReadMaxFiles", "SupportsTriggerAvailableNow"]
