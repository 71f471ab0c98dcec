"""lance_duck, pylance and LanceDB behind one interface: what each can do to one table."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import lancedb
import pyarrow as pa
from lancedb.index import Bitmap, BTree, IvfFlat, IvfSq, LabelList

import lance_duck as ld

NOTHING_IS_OLD = timedelta(days=1)
LANCEDB_KINDS = {"BTREE": BTree, "BITMAP": Bitmap, "LABEL_LIST": LabelList, "IVF_FLAT": IvfFlat, "IVF_SQ": IvfSq}


class DatasetWriter:
    """lance_duck or pylance, whose names are the same."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.scalar_kinds = frozenset({"BTREE", "BITMAP", "LABEL_LIST", "ZONEMAP", "BLOOMFILTER"})
        self.vector_kinds = frozenset({"IVF_FLAT", "IVF_SQ"})

    def __repr__(self) -> str:
        name: str = self.library.__name__
        return name

    def create(self, path: str, table: pa.Table, *, stable: bool, **options: Any) -> None:
        self.library.write_dataset(table, path, enable_stable_row_ids=stable, **options)

    def append(self, path: str, table: pa.Table) -> None:
        self.library.write_dataset(table, path, mode="append")

    def delete(self, path: str, where: str) -> None:
        self.library.dataset(path).delete(where)

    def update(self, path: str, values: Mapping[str, str], where: str) -> None:
        self.library.dataset(path).update(dict(values), where=where)

    def upsert(self, path: str, table: pa.Table) -> None:
        merge = self.library.dataset(path).merge_insert("key")
        merge.when_matched_update_all().when_not_matched_insert_all().execute(table)

    def compact(self, path: str, size: int) -> None:
        self.library.dataset(path).optimize.compact_files(target_rows_per_fragment=size)

    def optimize_indices(self, path: str, **options: Any) -> None:
        self.library.dataset(path).optimize.optimize_indices(**options)

    def optimize(self, path: str) -> None:
        """Compact, and bring the indexes up to date."""
        self.compact(path, 1 << 20)
        self.optimize_indices(path)

    def create_index(self, path: str, column: str, kind: str) -> None:
        dataset = self.library.dataset(path)
        if kind in self.scalar_kinds:
            dataset.create_scalar_index(column, kind, replace=True)
        else:
            dataset.create_index(column, kind, num_partitions=1, replace=True)

    def keys(self, path: str, *conditions: str) -> list[list[int]]:
        """Keys of the rows that satisfy each of some conditions, ascending."""
        dataset = self.library.dataset(path)
        return [sorted(dataset.to_table(columns=["key"], filter=where)["key"].to_pylist()) for where in conditions]

    def nearest(self, path: str, column: str, query: list[float], count: int) -> list[int]:
        """Keys of the nearest rows, ascending."""
        nearest = {"column": column, "q": query, "k": count, "nprobes": 10}
        found = self.library.dataset(path).to_table(columns=["key"], nearest=nearest)
        return sorted(found["key"].to_pylist())


class LanceDbWriter:
    """LanceDB, which contains the core of an older pylance."""

    scalar_kinds = frozenset({"BTREE", "BITMAP", "LABEL_LIST"})
    vector_kinds = frozenset({"IVF_FLAT", "IVF_SQ"})

    def __repr__(self) -> str:
        return "lancedb"

    def table(self, path: str) -> Any:
        place = Path(path)
        return lancedb.connect(place.parent).open_table(place.stem)

    def create(self, path: str, table: pa.Table, *, stable: bool, data_storage_version: str, **_: Any) -> None:
        place = Path(path)
        options = {
            "new_table_enable_stable_row_ids": str(stable).lower(),
            "new_table_data_storage_version": data_storage_version,
        }
        lancedb.connect(place.parent).create_table(place.stem, table, storage_options=options)

    def append(self, path: str, table: pa.Table) -> None:
        self.table(path).add(table)

    def delete(self, path: str, where: str) -> None:
        self.table(path).delete(where)

    def update(self, path: str, values: Mapping[str, str], where: str) -> None:
        self.table(path).update(where=where, values_sql=dict(values))

    def upsert(self, path: str, table: pa.Table) -> None:
        merge = self.table(path).merge_insert("key")
        merge.when_matched_update_all().when_not_matched_insert_all().execute(table)

    def optimize(self, path: str) -> None:
        """Compact, and bring the indexes up to date."""
        self.table(path).optimize(cleanup_older_than=NOTHING_IS_OLD)

    def compact(self, path: str, size: int) -> None:
        """As `optimize`: LanceDB does not offer them apart, nor a size."""
        self.optimize(path)

    def optimize_indices(self, path: str, **_: Any) -> None:
        self.optimize(path)

    def create_index(self, path: str, column: str, kind: str) -> None:
        vectors = {"num_partitions": 1, "distance_type": "l2"} if kind in self.vector_kinds else {}
        self.table(path).create_index(column, config=LANCEDB_KINDS[kind](**vectors), replace=True)

    def keys(self, path: str, *conditions: str) -> list[list[int]]:
        """Keys of the rows that satisfy each of some conditions, ascending."""
        table = self.table(path)
        found = [table.search().where(w).select(["key"]).limit(1 << 20).to_arrow() for w in conditions]
        return [sorted(each["key"].to_pylist()) for each in found]

    def nearest(self, path: str, column: str, query: list[float], count: int) -> list[int]:
        """Keys of the nearest rows, ascending."""
        search = self.table(path).search(query, vector_column_name=column).nprobes(10).limit(count)
        return sorted(search.select(["key", "_distance"]).to_arrow()["key"].to_pylist())


Writer = DatasetWriter | LanceDbWriter

OURS = DatasetWriter(ld)
PYLANCE = DatasetWriter(lance)
LANCEDB = LanceDbWriter()
WRITERS: tuple[Writer, ...] = (OURS, PYLANCE, LANCEDB)
