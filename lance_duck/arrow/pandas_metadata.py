"""The schema metadata "pandas", JSON from which pyarrow restores the dtypes and labels of a DataFrame.

    index_columns     columns with row labels, by name, or {"kind": "range", "start": …, "stop": …, "step": …}
    columns           one entry per column; the entries of index_columns come last, in the same order
      field_name      name of the column
      name            its label in the frame; null for row labels without a name
      numpy_type      dtype: "int64", "Int64", "string", "int64[pyarrow]", …
      pandas_type     kind of the values: "int64", "unicode", "datetimetz", …
    column_indexes    one entry per level of the column labels, with its type

pyarrow converts each column to the dtype of its entry. Entries follow their columns through renames and casts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa

from lance_duck.arrow.types import is_text

PANDAS: Final = "pandas"
"""Key of the metadata."""

_MASKED: Final = re.compile(r"(U?Int|Float)(8|16|32|64)|boolean")
_OF_ARROW: Final = "[pyarrow]"
_TEXT_LABELS: Final = frozenset({"unicode", "string", "empty", "mixed", "mixed-integer"})


class LabelledColumn(NamedTuple):
    """A column of a result or of a new schema.

    Attributes:
        source: Name of the column whose entry describes this one. None if the column is new or computed.
        name: Its name.
        type: Its Arrow type, or None if unknown.
        is_cast: Whether it was cast to that type.
    """

    source: str | None
    name: str
    type: pa.DataType | None
    is_cast: bool = False


def fitted(text: str, columns: Iterable[LabelledColumn], *, labels: bool = True, moves: bool = False) -> str | None:
    """Return the metadata for the given columns, without entries that do not apply to them.

    Args:
        text: The metadata.
        columns: All columns.
        labels: Whether the metadata was written for exactly these rows, in this order. If not, a range of row labels is
            dropped unless it is the default.
        moves: Whether a renamed column of row labels remains a column of row labels.

    Returns: The metadata, or None if nothing remains.
    """
    metadata = _parsed(text)
    if metadata is None:
        return None
    entries = {entry["field_name"]: entry for entry in metadata["columns"]}
    index = [descriptor for descriptor in metadata["index_columns"] if isinstance(descriptor, str)]
    plain, label_entries, is_changed = [], {}, False
    for column in columns:
        entry = entries.get(column.source) if column.source is not None else None
        is_changed = is_changed or entry is None or column.name != column.source
        if entry is None:
            continue
        if column.type is not None and (column.is_cast or not _suits(entry, column.type)):
            entry = {**entry, **_retyped(entry, column.type)}
        name = column.name if entry["name"] == column.source else entry["name"]
        if column.source in index and (moves or column.name == column.source):
            label_entries[column.source] = {**entry, "name": name, "field_name": column.name}
        else:
            plain.append({**entry, "name": column.name if column.source in index else name, "field_name": column.name})
    kept = [label_entries[source] for source in index if source in label_entries]
    ranges = [r for r in metadata["index_columns"] if isinstance(r, dict) and (labels or _is_default(r))]
    if not plain and not kept:
        return None
    metadata |= {"index_columns": [*(entry["field_name"] for entry in kept), *ranges], "columns": [*plain, *kept]}
    if is_changed and not _are_texts(metadata["column_indexes"]):
        metadata["column_indexes"] = []
    return json.dumps(metadata)


def joined_pandas(old: str | None, new: str | None, names: Iterable[str]) -> str | None:
    """Return a table's metadata, with the entries of additional columns.

    Args:
        old: Metadata of the table.
        new: Metadata of the data that contains the new columns.
        names: The new columns.
    """
    added = None if new is None else _parsed(new)
    if added is None:
        return old
    metadata = None if old is None else _parsed(old)
    if metadata is None:
        metadata = {**added, "index_columns": [], "columns": [], "column_indexes": []}
    wanted = set(names)
    entries = [entry for entry in added["columns"] if entry["field_name"] in wanted]
    metadata["columns"] = [*entries, *metadata["columns"]]
    if not _are_texts(metadata["column_indexes"]):
        metadata["column_indexes"] = []
    return json.dumps(metadata) if metadata["columns"] else old


def without_row_labels(text: str) -> str:
    """Return the metadata without a range of row labels, unless the range is pandas' default.

    A range only applies to the first rows of a table.
    """
    metadata = _parsed(text)
    if metadata is None or all(isinstance(d, str) or _is_default(d) for d in metadata["index_columns"]):
        return text
    metadata["index_columns"] = [d for d in metadata["index_columns"] if isinstance(d, str)]
    return json.dumps(metadata)


def _parsed(text: str) -> dict[str, Any] | None:
    """Return the parsed metadata, or None if it lacks entries that pyarrow requires."""
    try:
        metadata = json.loads(text)
        entries = [{**e, "field_name": e.get("field_name", e["name"])} for e in metadata["columns"]]
        index, labels = metadata["index_columns"], metadata.get("column_indexes", [])
        shaped = all("numpy_type" in e and "pandas_type" in e and isinstance(e["field_name"], str) for e in entries)
        shaped = shaped and all(isinstance(d, str) or d["kind"] == "range" for d in index) and isinstance(labels, list)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return {**metadata, "columns": entries, "index_columns": index, "column_indexes": labels} if shaped else None


def _is_default(range_: Mapping[str, Any]) -> bool:
    """Return whether a range of row labels is pandas' default."""
    return range_.get("name") is None and range_.get("start") == 0 and range_.get("step") == 1


def _are_texts(column_indexes: list[Any]) -> bool:
    """Return whether the column labels may be any string."""
    return not column_indexes or (
        len(column_indexes) == 1
        and isinstance(column_indexes[0], dict)
        and column_indexes[0].get("pandas_type") in _TEXT_LABELS
    )


def _suits(entry: Mapping[str, Any], type_: pa.DataType) -> bool:
    """Return whether pyarrow can convert values of an Arrow type to the dtype of an entry."""
    dtype = str(entry["numpy_type"])
    zoned = pa.types.is_timestamp(type_) and type_.tz is not None
    if entry["pandas_type"] == "datetimetz" or (dtype.startswith("datetime64[") and "," in dtype):
        return bool(zoned)
    if _MASKED.fullmatch(dtype):
        return _masked(type_) == dtype or pa.types.is_null(type_)
    if dtype in ("string", "str") or dtype.startswith("string["):
        return is_text(type_) or pa.types.is_dictionary(type_) or pa.types.is_null(type_)
    if dtype.endswith(_OF_ARROW):
        return _of_arrow(type_) == dtype
    if dtype.startswith(("period[", "interval[")):
        return isinstance(type_, pa.BaseExtensionType)
    return True


def _retyped(entry: Mapping[str, Any], type_: pa.DataType) -> dict[str, Any]:
    """Return the entry of a cast column with a dtype of the same family, or with Arrow's default dtype."""
    dtype = str(entry["numpy_type"])
    masked, of_arrow = _masked(type_), _of_arrow(type_)
    if _MASKED.fullmatch(dtype) and masked is not None:
        return {"numpy_type": masked, "pandas_type": masked.lower().replace("boolean", "bool"), "metadata": None}
    if dtype.endswith(_OF_ARROW) and not dtype.startswith("string[") and of_arrow is not None:
        return {"numpy_type": of_arrow, "pandas_type": "object", "metadata": None}
    return {"numpy_type": "object", "pandas_type": "object", "metadata": None}


def _masked(type_: pa.DataType) -> str | None:
    """Return the nullable pandas dtype of a number or boolean type, or None for other types."""
    if pa.types.is_boolean(type_):
        return "boolean"
    if pa.types.is_integer(type_):
        return f"{'' if pa.types.is_signed_integer(type_) else 'U'}Int{type_.bit_width}"
    return f"Float{type_.bit_width}" if pa.types.is_float32(type_) or pa.types.is_float64(type_) else None


def _of_arrow(type_: pa.DataType) -> str | None:
    """Return the dtype name of an Arrow type, or None if pandas cannot parse the name."""
    if pa.types.is_timestamp(type_):
        return f"{type_}{_OF_ARROW}"
    try:
        return f"{type_}{_OF_ARROW}" if pa.type_for_alias(str(type_)) == type_ else None
    except ValueError:
        return None
