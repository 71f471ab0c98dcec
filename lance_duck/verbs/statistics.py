"""Field sizes of a version, and index statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lance_duck.arguments import suggest_names
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.indexes.describe import index_statistics


@suggest_names
@dataclass(frozen=True)
class FieldStatistics:
    """Size of a field in the data files, in bytes."""

    id: int
    bytes_on_disk: int


@suggest_names
@dataclass(frozen=True)
class DataStatistics:
    """Size of each field in bytes, in schema order."""

    fields: list[FieldStatistics]


@suggest_names
class LanceStats:
    """Sizes and index statistics of a version."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def dataset_stats(self, max_rows_per_group: int = 1024) -> dict[str, int]:
        """Count fragments and deleted rows. Fragments with fewer than `max_rows_per_group` rows count as small."""
        fragments = self._snapshot.fragments
        return {
            "num_deleted_rows": sum(
                self._snapshot.physical_rows(f) - self._snapshot.num_rows(f) for f in fragments if f.deletion_file
            ),
            "num_fragments": len(fragments),
            "num_small_files": sum(self._snapshot.physical_rows(f) < max_rows_per_group for f in fragments),
        }

    def index_stats(self, index_name: str) -> dict[str, Any]:
        """Return the statistics of an index: see `verbs.indexes.describe.index_statistics`.

        Raises:
            IndexNotFoundError: The index does not exist.
        """
        return index_statistics(self._snapshot, index_name)

    def data_stats(self) -> DataStatistics:
        """Return the size of each field, from the footers of the data files."""
        sizes = {field.id: 0 for field in self._snapshot.schema.walk()}
        for fragment in self._snapshot.fragments:
            for data_file in fragment.files:
                file = self._snapshot.data_file(data_file)
                for field_id in data_file.fields:
                    column = data_file.column_of(field_id)
                    if column is not None and field_id in sizes:
                        pages = file.column(column).pages
                        sizes[field_id] += sum(size for page in pages for _, size in page.buffers)
        return DataStatistics([FieldStatistics(field_id, size) for field_id, size in sizes.items()])
