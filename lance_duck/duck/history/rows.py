"""Arrow tables from Python values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa

TIME: Final = pa.timestamp("us", tz="UTC")
TEXTS: Final = pa.list_(pa.string())
MAP: Final = pa.map_(pa.string(), pa.string())


def table_of(schema: pa.Schema, rows: Iterable[Sequence[Any]]) -> pa.Table:
    """Return rows as a table. Each row has a value for every column."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(values, field.type) for field, values in zip(schema, columns, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
