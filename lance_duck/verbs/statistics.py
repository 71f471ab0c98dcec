"""Sizes of the fields of a version, and statistics of its indexes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lance_duck.snapshot import Snapshot
from lance_duck.verbs.indexes.describe import index_statistics


@dataclass(frozen=True)
class FieldStatistics:
    """Bytes of a field in the data files."""

    id: int
    bytes_on_disk: int


@dataclass(frozen=True)
class DataStatistics:
    """Bytes of each field, in the order of the schema."""

    fields: list[FieldStatistics]


class LanceStats:
    """Sizes of a version, and statistics of its indexes."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def dataset_stats(self, max_rows_per_group: int = 1024) -> dict[str, int]:
        """Count fragments from metadata; one is small if it has fewer than `max_rows_per_group` rows."""
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
            IndexNotFoundError: There is no index of this name.
        """
        return index_statistics(self._snapshot, index_name)

    def data_stats(self) -> DataStatistics:
        """Return the bytes of each field, from the footers of the data files."""
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
