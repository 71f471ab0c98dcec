"""Limits on what a stream reads at once, which Spark knows from 4.2 on."""

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
            """No limit: what sessions that know of none ask for."""

        class SupportsTriggerAvailableNow:
            """Nothing to be told of; such a session reads all there is at once."""

        LIMITS_READS = False

__all__ = ["LIMITS_READS", "ReadAllAvailable", "ReadLimit", "ReadMaxFiles", "SupportsTriggerAvailableNow"]
