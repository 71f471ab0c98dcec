"""String columns read as dictionaries, which DuckDB groups and compares faster.

A column is read so if all its pages are dictionary-encoded, and its texts are short.
"""

from __future__ import annotations

from lance_duck.errors import LanceDuckError
from lance_duck.scan.costs import FRAGMENTS_AT_ONCE, LARGEST_REPEATED_TEXT
from lance_duck.scan.projection import Read
from lance_duck.scan.read.fragment_reader import ColumnCache, FragmentReader
from lance_duck.snapshot import Snapshot


def repeats(snapshot: Snapshot, columns: ColumnCache, read: Read) -> bool:
    """Return whether to read a string column as dictionary(int32, string).

    Args:
        snapshot: The version of the table.
        columns: Column readers to use again.
        read: A top-level column of strings.
    """
    fragments = snapshot.fragments
    if not len(fragments) or len(fragments) > FRAGMENTS_AT_ONCE:
        return False
    readers = [FragmentReader(snapshot, fragment, columns) for fragment in fragments]
    try:
        if any(reader.stored_bytes(read) > LARGEST_REPEATED_TEXT * reader.num_rows for reader in readers):
            return False
        return all(reader.is_dictionary(read) for reader in readers)
    except LanceDuckError:
        return False  # the scan will raise the error
