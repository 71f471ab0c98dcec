"""What the server tells drivers about itself and its SQL.

Rows of CommandGetSqlInfo   {info_name: uint32, value: dense union of text, bool, int64, int32, texts, map}
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import duckdb
import pyarrow as pa

from lance_duck.serve.flight.transactions import IDLE
from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.version import __version__

_TEXT, _FLAG, _LONG, _INT, _TEXTS, _MAP = range(6)
_FIELDS: Final = (
    pa.field("string_value", pa.string()),
    pa.field("bool_value", pa.bool_()),
    pa.field("bigint_value", pa.int64()),
    pa.field("int32_bitmask", pa.int32()),
    pa.field("string_list", pa.list_(pa.string())),
    pa.field("int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.int32()))),
)
SCHEMA: Final = pa.schema(
    [pa.field("info_name", pa.uint32(), nullable=False), pa.field("value", pa.dense_union(_FIELDS), nullable=False)]
)

_TRANSACTIONS: Final = 1
_CASE_INSENSITIVE: Final = 1
_NULLS_LAST: Final = 3
_ALL_OUTER_JOINS: Final = 2
_GROUP_BY: Final = 3
_GRAMMAR: Final = 3
_UNIONS: Final = 3
_SUBQUERIES: Final = 15


def _infos(settings: ServeSettings, keywords: list[str]) -> dict[int, tuple[int, Any]]:
    """Return the kind and the value of each information, by its number in the specification."""
    return {
        0: (_TEXT, "lance_duck"),
        1: (_TEXT, __version__),
        2: (_TEXT, pa.__version__),
        3: (_FLAG, not settings.write),
        4: (_FLAG, settings.sql),
        5: (_FLAG, False),
        8: (_INT, _TRANSACTIONS),
        9: (_FLAG, True),
        10: (_FLAG, settings.write),
        11: (_FLAG, settings.write),
        100: (_INT, 0),
        101: (_INT, int(IDLE * 1000)),
        500: (_FLAG, False),
        501: (_FLAG, settings.write),
        502: (_FLAG, settings.write),
        503: (_INT, _CASE_INSENSITIVE),
        504: (_TEXT, '"'),
        505: (_INT, _CASE_INSENSITIVE),
        506: (_FLAG, True),
        507: (_INT, _NULLS_LAST),
        508: (_TEXTS, keywords),
        513: (_TEXT, "\\"),
        515: (_FLAG, True),
        516: (_FLAG, True),
        518: (_FLAG, True),
        519: (_FLAG, False),
        520: (_FLAG, True),
        521: (_FLAG, True),
        522: (_INT, _GROUP_BY),
        523: (_FLAG, True),
        524: (_FLAG, True),
        525: (_INT, _GRAMMAR),
        528: (_INT, _ALL_OUTER_JOINS),
        529: (_TEXT, "schema"),
        531: (_TEXT, "catalog"),
        532: (_FLAG, True),
        538: (_INT, _SUBQUERIES),
        539: (_FLAG, True),
        540: (_INT, _UNIONS),
    }


def sql_info(settings: ServeSettings, wanted: Iterable[int]) -> pa.Table:
    """Return the rows of CommandGetSqlInfo.

    Args:
        settings: Settings of the server.
        wanted: Numbers of the specification. Empty for all. Unknown numbers have no row.
    """
    with duckdb.connect() as connection:
        query = "SELECT upper(keyword_name) FROM duckdb_keywords() WHERE keyword_category = 'reserved' ORDER BY ALL"
        keywords = [word for (word,) in connection.execute(query).fetchall()]
    infos = _infos(settings, keywords)
    chosen = [number for number in dict.fromkeys(wanted) if number in infos] or ([] if wanted else [*infos])
    values: list[list[Any]] = [[] for _ in _FIELDS]
    kinds, offsets = [], []
    for kind, value in (infos[number] for number in chosen):
        kinds.append(kind)
        offsets.append(len(values[kind]))
        values[kind].append(value)
    children = [pa.array(each, field.type) for each, field in zip(values, _FIELDS, strict=True)]
    union = pa.UnionArray.from_dense(
        pa.array(kinds, pa.int8()), pa.array(offsets, pa.int32()), children, [field.name for field in _FIELDS]
    )
    return pa.Table.from_arrays([pa.array(chosen, pa.uint32()), union], schema=SCHEMA)
