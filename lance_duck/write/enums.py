"""polars enums: dictionaries whose field metadata lists all allowed values.

    _PL_ENUM_VALUES2    for each value, its length in bytes, ";" and the value
    _PL_ENUM_VALUES     the same, in data from older polars versions

Values outside the enum are rejected, because polars would read them as null.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.encoding.arrow.dictionaries import used_entries
from lance_duck.errors import InvalidInputError
from lance_duck.wire.schema import Field
from lance_duck.write.plain_casts import Cast

ENUM_KEYS: Final = ("_PL_ENUM_VALUES2", "_PL_ENUM_VALUES")


def has_enum(field: Field) -> bool:
    """Return whether a field is a polars enum, or contains one at any depth."""
    return any(enum_values(each) is not None for each in field.walk())


def enum_values(field: Field) -> list[str] | None:
    """Return the values of a polars enum, or None for any other field."""
    text = next((field.metadata[key] for key in ENUM_KEYS if key in field.metadata), None)
    if text is None or not pa.types.is_dictionary(field.storage_type):
        return None
    rest, values = text.encode(), []
    while rest:
        length, separator, rest = rest.partition(b";")
        if not separator or not length.isdigit():
            return None
        values.append(rest[: int(length)].decode(errors="replace"))
        rest = rest[int(length) :]
    return values


def checked_enum(cast: Cast, field: Field, where: str) -> Cast:
    """Return a cast to a dictionary that rejects values outside a polars enum."""
    values = enum_values(field)
    if values is None:
        return cast
    known = pa.array(values, pa.large_string())

    def check(array: pa.Array) -> pa.Array:
        result = cast(array)
        entries = used_entries(result).dictionary
        others = entries.filter(pc.invert(pc.is_in(entries.cast(known.type), known)))
        if len(others):
            row = pc.index(result.dictionary_decode(), others[0]).as_py()
            raise InvalidInputError(
                "the polars Enum does not contain this value",
                where=f"{where}, row {row}",
                expected=", ".join(values),
                found=others[0].as_py(),
                remedy="cast the column to string with alter_columns first; polars would read null",
            )
        return result

    return check
