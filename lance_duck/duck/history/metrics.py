"""The metrics of this process as rows."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from lance_duck.telemetry.metrics import metrics

_SCHEMA: Final = pa.schema(
    [
        ("name", pa.string()),
        ("kind", pa.string()),
        ("labels", pa.map_(pa.string(), pa.string())),
        ("value", pa.float64()),
    ]
)


def metric_rows() -> pa.Table:
    """Return a row for each value of a metric: see `telemetry.metrics.metrics`."""
    columns = list(zip(*metrics(), strict=True))
    columns[2] = tuple(list(labels.items()) for labels in columns[2])
    return pa.table([pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True)], _SCHEMA)
