"""Rows with the same primary key. Lance does not enforce the key, and Python and other programs may repeat it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.arrow.key_text import key_text
from lance_duck.arrow.types import storage_type
from lance_duck.errors import LanceDuckError
from lance_duck.maintenance.validation.problems import Problem
from lance_duck.scan.identifiers import quoted
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.predicate.ordering import one_zero_one_nan
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.wire.schema_write import primary_key

_KEY = "k{}"
_FIRST, _COUNT = "first", "count"


def key_problems(snapshot: Snapshot) -> Iterator[Problem]:
    """Yield a problem with the number of repeated keys, and the key with the most rows."""
    fields = primary_key(snapshot.schema)
    if not fields or any(field.parent_id >= 0 or field.blob_version for field in fields):
        return
    try:
        table = TableScan(snapshot)
        keys = table.reader(table.plan(ScanOptions(columns=[field.name for field in fields]))).read_all()
        repeated = _repeated(keys)
    except (LanceDuckError, pa.ArrowException):
        return  # reported with the fragment, or a type without equality
    if repeated.num_rows:
        most = repeated.sort_by([(_COUNT, "descending"), (_FIRST, "ascending")]).slice(0, 1).to_pylist()[0]
        total = pc.sum(repeated.column(_COUNT)).as_py()
        some = f'"{key_text(keys, most[_FIRST])}" in {most[_COUNT]:,} rows'
        noun = "key occurs" if repeated.num_rows == 1 else "keys occur"
        what = f"{repeated.num_rows:,} {noun} in several rows ({total:,} rows), such as {some}"
        on = ", ".join(quoted(field.name) for field in fields)
        remedy = f"delete the extra rows, which a repair keeps: find them with GROUP BY {on} HAVING count(*) > 1"
        yield Problem("primary key", what, remedy=remedy)


def _repeated(keys: pa.Table) -> pa.Table:
    """Return the first row and the row count of each key that occurs more than once."""
    columns = {}
    for i, column in enumerate(keys.columns):
        values = column.cast(storage_type(column.type)) if isinstance(column.type, pa.BaseExtensionType) else column
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if pa.types.is_float16(values.type):
            values = values.cast(pa.float32())
        columns[_KEY.format(i)] = one_zero_one_nan(values) if pa.types.is_floating(values.type) else values
    names = list(columns)
    rows = pa.table({**columns, _FIRST: np.arange(keys.num_rows)}).drop_null()
    grouped = rows.group_by(names).aggregate([(_FIRST, "min"), (_FIRST, "count")])
    grouped = grouped.select([f"{_FIRST}_min", f"{_FIRST}_count"]).rename_columns([_FIRST, _COUNT])
    return grouped.filter(pc.field(_COUNT) > 1)
