"""What other libraries call things that a dataset has by another name: an error that says so."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

_HERE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "add": "insert(data)",
        "append": "insert(data)",
        "checkout": "checkout_version(version)",
        "columns": "schema.names",
        "compact_files": "optimize.compact_files()",
        "create_fts_index": 'create_scalar_index(column, "INVERTED")',
        "describe": "schema, stats.dataset_stats() and describe_indices()",
        "dtypes": "schema.types",
        "history": "versions()",
        "iloc": "take(indices)",
        "merge_into": "merge_insert(on)",
        "nearest": "search(vector, k=10)",
        "num_rows": "count_rows()",
        "query": 'to_table(filter="…"), sql("…") or search(…)',
        "rename_columns": 'alter_columns({"path": old, "name": new})',
        "rollback": "checkout_version(version).restore()",
        "shape": "(count_rows(), len(schema))",
        "tail": "take(indices)",
        "to_arrow": "to_table()",
        "upsert": "merge_insert(on).when_matched_update_all().when_not_matched_insert_all().execute(data)",
        "vacuum": "cleanup_old_versions()",
        "write": "insert(data)",
    }
)


class OtherNames:
    """Names the method that was probably meant, for a dataset that is asked for one of another library."""

    if not TYPE_CHECKING:  # to a type checker a name that does not exist stays an error

        def __getattr__(self, name: str) -> object:
            hint = f"; here it is {_HERE[name]}" if name in _HERE else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=self)
