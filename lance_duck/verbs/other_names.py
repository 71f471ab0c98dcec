"""Error messages for missing dataset attributes, with a suggestion.

The suggestion is the equivalent of another library's name, or the nearest public name.
This is a mixin because `dataset.py` would otherwise exceed 500 lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Final

_HERE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "add": "insert(data)",
        "append": "insert(data)",
        "checkout": "checkout_version(version)",
        "columns": "schema.names",
        **dict.fromkeys(("compact", "optimize_files"), "optimize.compact_files()"),
        "compact_files": "optimize.compact_files()",
        "create_fts_index": 'create_scalar_index(column, "INVERTED")',
        "describe": "schema, stats.dataset_stats() and describe_indices()",
        "df": "to_pandas()",
        "dtypes": "schema.types",
        "history": "versions()",
        "iloc": "take(indices)",
        **dict.fromkeys(("list_versions", "get_versions"), "versions()"),
        "merge_into": "merge_insert(on)",
        "nearest": "search(vector, k=10)",
        "num_rows": "count_rows()",
        "pl": "to_polars()",
        "query": 'to_table(filter="…"), sql("…") or search(…)',
        **dict.fromkeys(("select", "where"), 'to_table(columns=["…"], filter="…"), or filter("…")'),
        **dict.fromkeys(("rename", "rename_column"), 'alter_columns({"path": old, "name": new})'),
        "rename_columns": 'alter_columns({"path": old, "name": new})',
        "rerank": 'search(vector).text("…").rerank()',
        "rollback": "checkout_version(version).restore()",
        "session": "not needed: caches belong to a handle",
        "shape": "(count_rows(), len(schema))",
        "tail": "take(indices)",
        "to_arrow": "to_table()",
        "upsert": "merge_insert(on).when_matched_update_all().when_not_matched_insert_all().execute(data)",
        "vacuum": "cleanup_old_versions()",
        "write": "insert(data)",
    }
)


class OtherNames:
    """Mixin whose errors for missing attributes suggest the right name: see `arguments.suggest_names`."""

    OTHER_NAMES: ClassVar = _HERE
