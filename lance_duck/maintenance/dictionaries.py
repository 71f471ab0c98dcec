"""Fragments that a compaction must not join, because their combined dictionary would overflow its index type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lance_duck.encoding.arrow.dictionary_union import DictionaryUnion, has_narrow_dictionary, with_used_entries
from lance_duck.errors import ArrayLimitError
from lance_duck.maintenance.plan import Candidate
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot


def has_narrow_dictionaries(snapshot: Snapshot) -> bool:
    """Return whether a table has dictionaries of 8-bit or 16-bit indices."""
    return any(has_narrow_dictionary(field.storage_type) for field in snapshot.schema.fields)


def divided_by_dictionaries(snapshot: Snapshot, group: Sequence[Candidate]) -> Iterator[list[Candidate]]:
    """Split a group of consecutive fragments into groups whose dictionaries fit one data file, in order.

    A single fragment with too many entries becomes a group that is marked for rewriting.
    """
    columns = [field.name for field in snapshot.schema.fields if has_narrow_dictionary(field.storage_type)]
    part: list[Candidate] = []
    entries = DictionaryUnion()
    for candidate in group:
        own = _entries(snapshot, candidate.id, columns)
        try:
            entries.join(own or DictionaryUnion())
        except ArrayLimitError:
            is_joined = False
        else:
            is_joined = own is not None
        if part and not is_joined:
            yield part
            part, entries = [], own or DictionaryUnion()
        if own is None:
            yield [replace(candidate, is_outgrown=True)]
        else:
            part.append(candidate)
    if part:
        yield part


def _entries(snapshot: Snapshot, fragment_id: int, columns: Sequence[str]) -> DictionaryUnion | None:
    """Return the dictionary entries that live rows of a fragment use, or None if there are too many."""
    table = TableScan(snapshot)
    entries = DictionaryUnion()
    try:
        for batch in table.reader(table.plan(ScanOptions(columns=columns, fragments=[fragment_id]))):
            entries.add(with_used_entries(batch))
    except ArrayLimitError:
        return None
    return entries
