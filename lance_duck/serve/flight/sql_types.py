"""The types of DuckDB, as drivers of ODBC and JDBC list them."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

_NULLABLE: Final = 1
_SEARCHABLE: Final = 3
_REQUIRED: Final = (
    "type_name",
    "data_type",
    "nullable",
    "case_sensitive",
    "searchable",
    "fixed_prec_scale",
    "sql_data_type",
)
SCHEMA: Final = pa.schema(
    [
        pa.field(name, kind, nullable=name not in _REQUIRED)
        for name, kind in (
            ("type_name", pa.string()),
            ("data_type", pa.int32()),
            ("column_size", pa.int32()),
            ("literal_prefix", pa.string()),
            ("literal_suffix", pa.string()),
            ("create_params", pa.list_(pa.field("item", pa.string(), nullable=False))),
            ("nullable", pa.int32()),
            ("case_sensitive", pa.bool_()),
            ("searchable", pa.int32()),
            ("unsigned_attribute", pa.bool_()),
            ("fixed_prec_scale", pa.bool_()),
            ("auto_increment", pa.bool_()),
            ("local_type_name", pa.string()),
            ("minimum_scale", pa.int32()),
            ("maximum_scale", pa.int32()),
            ("sql_data_type", pa.int32()),
            ("datetime_subcode", pa.int32()),
            ("num_prec_radix", pa.int32()),
            ("interval_precision", pa.int32()),
        )
    ]
)
"""See CommandGetXdbcTypeInfo in the specification."""

_TEXT, _NUMBER, _TIME, _OTHER = range(4)
_TYPES: Final = (
    ("BOOLEAN", -7, 1, _OTHER),
    ("TINYINT", -6, 3, _NUMBER),
    ("UTINYINT", -6, 3, _NUMBER),
    ("BIGINT", -5, 19, _NUMBER),
    ("UBIGINT", -5, 20, _NUMBER),
    ("HUGEINT", 2, 39, _NUMBER),
    ("BLOB", -4, None, _TEXT),
    ("VARCHAR", 12, None, _TEXT),
    ("UUID", 12, 36, _TEXT),
    ("DECIMAL", 3, 38, _NUMBER),
    ("INTEGER", 4, 10, _NUMBER),
    ("UINTEGER", 4, 10, _NUMBER),
    ("SMALLINT", 5, 5, _NUMBER),
    ("USMALLINT", 5, 5, _NUMBER),
    ("FLOAT", 7, 24, _NUMBER),
    ("DOUBLE", 8, 53, _NUMBER),
    ("DATE", 91, 10, _TIME),
    ("TIME", 92, 15, _TIME),
    ("TIMESTAMP", 93, 26, _TIME),
    ("TIMESTAMP WITH TIME ZONE", 93, 32, _TIME),
)
"""Name, number of the type in ODBC, size, and group."""


def sql_types(wanted: int | None) -> pa.Table:
    """Return the rows of CommandGetXdbcTypeInfo, ordered by number.

    Args:
        wanted: Number of a type in ODBC, or None for all types.
    """
    rows = [
        {
            "type_name": name,
            "data_type": number,
            "column_size": size,
            "literal_prefix": "'" if group in (_TEXT, _TIME) else None,
            "literal_suffix": "'" if group in (_TEXT, _TIME) else None,
            "create_params": ["precision", "scale"] if name == "DECIMAL" else None,
            "nullable": _NULLABLE,
            "case_sensitive": name == "VARCHAR",
            "searchable": _SEARCHABLE,
            "unsigned_attribute": name.startswith("U") if group == _NUMBER else None,
            "fixed_prec_scale": False,
            "auto_increment": False,
            "local_type_name": name,
            "minimum_scale": 0 if name == "DECIMAL" else None,
            "maximum_scale": 38 if name == "DECIMAL" else None,
            "sql_data_type": 9 if group == _TIME else number,
            "datetime_subcode": number - 90 if group == _TIME else None,
            "num_prec_radix": None if group != _NUMBER else 2 if name in ("FLOAT", "DOUBLE") else 10,
            "interval_precision": None,
        }
        for name, number, size, group in sorted(_TYPES, key=lambda each: each[1])
        if wanted is None or number == wanted
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)
