"""Segments that list fragments without an entry for every row, found in the simplest way."""

from __future__ import annotations

import pyarrow as pa

import lance_duck as ld
from lance_duck.index.btree.layout import DATA, IDS
from lance_duck.index.opened import segment_files
from lance_duck.rows import roaring_values


def over_listed(dataset: ld.LanceDataset) -> dict[str, list[int]]:
    """Return fragments that address-based B-trees list without an entry for each live row, by index name.

    Only for tables with stable row ids.
    """
    snapshot = dataset.handle.snapshot
    if not snapshot.has_stable_row_ids:
        return {}
    living: dict[int, set[int]] = {i: set() for i in snapshot.fragments.ids()}
    for address in dataset.to_table(columns=["_rowaddr"], use_scalar_index=False)["_rowaddr"].to_pylist():
        living[address >> 32].add(address)
    found: dict[str, list[int]] = {}
    for segment in snapshot.indices:
        if not (segment.details_type or "").endswith("BTreeIndexDetails") or segment.version == 0:
            continue
        (rows,) = segment_files(snapshot, segment).open(DATA).read([IDS])
        named = set(rows.cast(pa.uint64()).to_pylist())
        listed = roaring_values(segment.fragment_bitmap or b"", "here", 1 << 24).tolist()
        lost = [i for i in listed if i in living and not living[i] <= named]
        if lost:
            found.setdefault(segment.name, []).extend(lost)
    return found
