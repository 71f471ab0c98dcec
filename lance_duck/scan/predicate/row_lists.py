"""Lists of rows that a scan keeps to, or leaves out, as conditions on `_rowid`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import index
from typing import Final

import pyarrow as pa

from lance_duck.errors import CorruptError, InvalidInputError
from lance_duck.rows.row_set_bytes import read_row_address_map
from lance_duck.scan.predicate.tree import In, Not, Predicate

_PATH: Final = ("_rowid",)


def listed_rows(
    rows: bytes | Iterable[int] | None, name: str, rows_of: Callable[[int], int | None], *, excluded: bool = False
) -> Predicate | None:
    """Return the condition that a row is in a list.

    Args:
        rows: Row ids, or a row address map of them (`rows.row_set_bytes`); None for no condition.
        name: Argument that they come from, for messages.
        rows_of: From a fragment id to its physical rows, for maps that name whole fragments.
        excluded: Whether the condition is that a row is not in the list.

    Raises:
        InvalidInputError: The bytes are no such map, or an id is none.
    """
    if rows is None:
        return None
    try:
        ids = read_row_address_map(rows, name, rows_of).rows() if isinstance(rows, bytes) else list(map(index, rows))
        values = pa.array(ids, pa.uint64())
    except CorruptError as error:
        raise InvalidInputError(name, expected="a row address map, or row ids", found=error.what) from error
    except (TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise InvalidInputError(name, expected="row ids, or a row address map", found=str(error)) from error
    condition = In(_PATH, values)
    return Not(condition) if excluded else condition
