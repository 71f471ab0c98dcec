"""Row ids and row versions of fragments in a table with stable row ids.

If rows moved to a new fragment, they come first, and the fragment stores their ids. Its other rows are new. The ids and
versions are serialized in the fragment's message: see `rows`.
"""

from __future__ import annotations

import numpy as np

from lance_duck.arrow.distinct import distinct
from lance_duck.errors import InvalidInputError
from lance_duck.rows import RowIdSequence, VersionSequence, read_row_ids, read_versions, roaring_values, split_addresses
from lance_duck.snapshot import Snapshot
from lance_duck.wire.limits import ROW_IDS, ROW_OFFSETS
from lance_duck.wire.pb import table_pb2, transaction_pb2

_LAST_ROW_ID = ROW_IDS - 1


def number_rows(fragment: table_pb2.DataFragment, next_row_id: int, version: int) -> int:
    """Assign ids to the new rows of a new fragment, and versions to all its rows.

    Args:
        fragment: Message of the fragment. It is changed in place.
        next_row_id: First unassigned id.
        version: Version that adds the fragment.

    Returns:
        The next unassigned id.

    Raises:
        InvalidInputError: The fragment has more ids or versions than rows, or all ids are used.
    """
    rows, where = fragment.physical_rows, f"new fragment of {fragment.physical_rows} rows"
    row_ids = given_row_ids(fragment)
    num_moved = rows if row_ids is None else len(row_ids)
    if num_moved > rows:
        raise InvalidInputError("there are more row ids than rows", where=where, expected=rows, found=num_moved)
    if next_row_id + rows - num_moved > _LAST_ROW_ID:
        raise InvalidInputError(
            "the table has used all row ids", where=where, expected=f"<= {_LAST_ROW_ID}", found=next_row_id
        )
    if row_ids is not None and num_moved < rows:
        fresh = RowIdSequence.range_of(next_row_id, rows - num_moved)
        fragment.inline_row_ids = RowIdSequence.concat([row_ids, fresh]).to_bytes()
    if fragment.WhichOneof("created_at_version_sequence") != "external_created_at_versions":
        created = VersionSequence.constant(version, rows)
        if fragment.inline_created_at_versions:
            created_at = read_versions(fragment.inline_created_at_versions, where)
            if len(created_at) > rows:
                raise InvalidInputError(
                    "there are more row versions than rows", where=where, expected=rows, found=len(created_at)
                )
            created = VersionSequence.concat([created_at, VersionSequence.constant(version, rows - len(created_at))])
        fragment.inline_created_at_versions = created.to_bytes()
    touch_rows(fragment, version)
    return next_row_id + rows - num_moved


def given_row_ids(fragment: table_pb2.DataFragment) -> RowIdSequence | None:
    """Return the row ids stored in a new fragment, or None if they are in a separate file."""
    match fragment.WhichOneof("row_id_sequence"):
        case "external_row_ids":
            return None
        case "inline_row_ids":
            return read_row_ids(fragment.inline_row_ids, f"new fragment of {fragment.physical_rows} rows")
    return RowIdSequence([])


def forget_rows(fragment: table_pb2.DataFragment) -> None:
    """Remove row ids and row versions from a fragment, for a table without stable row ids."""
    for name in ("row_ids", "created_at_versions", "last_updated_at_versions"):
        fragment.ClearField(f"inline_{name}")
        fragment.ClearField(f"external_{name}")


def touch_rows(fragment: table_pb2.DataFragment, version: int) -> None:
    """Record that a version updated all rows of a fragment."""
    fragment.inline_last_updated_at_versions = VersionSequence.constant(version, fragment.physical_rows).to_bytes()


def touch_some_rows(fragment: table_pb2.DataFragment, version: int, bitmap: bytes) -> None:
    """Record that a version updated some rows of a fragment.

    Args:
        fragment: Message of the fragment. It is changed in place.
        version: The version.
        bitmap: Offsets of the updated rows, as a serialized roaring bitmap.

    Raises:
        CorruptError: The bitmap is corrupt.
        InvalidInputError: A row is not in the fragment.
    """
    where, rows = f"fragment {fragment.id}", fragment.physical_rows
    if fragment.WhichOneof("last_updated_at_version_sequence") != "inline_last_updated_at_versions":
        touch_rows(fragment, version)
        return
    offsets = roaring_values(bitmap, f"{where}: updated rows", ROW_OFFSETS)
    if len(offsets) and int(offsets[-1]) >= rows:
        raise InvalidInputError(
            "an updated row is out of range", where=where, expected=f"< {rows}", found=int(offsets[-1])
        )
    versions = read_versions(fragment.inline_last_updated_at_versions, where, rows).slice(0, rows).copy()
    versions[offsets] = version
    fragment.inline_last_updated_at_versions = VersionSequence.from_versions(versions).to_bytes()


def recall_created_at(transaction: transaction_pb2.Transaction, snapshot: Snapshot) -> None:
    """Set the creation versions of rows that an Update moved to new fragments.

    Args:
        transaction: The transaction. Fragments that have row ids, but no creation versions, are changed in place.
        snapshot: A version that contains the rows before they moved.

    Raises:
        InvalidInputError: A fragment has a row id that does not exist.
    """
    for fragment in transaction.update.new_fragments:
        if fragment.WhichOneof("created_at_version_sequence") is not None:
            continue
        row_ids = given_row_ids(fragment)
        if row_ids is not None and len(row_ids):
            fragment.inline_created_at_versions = _created_at(row_ids, snapshot).to_bytes()


def _created_at(row_ids: RowIdSequence, snapshot: Snapshot) -> VersionSequence:
    index = snapshot.row_id_index
    assert index is not None
    addresses, lives = index.addresses(row_ids.slice(0, len(row_ids)))
    if not lives.all():
        raise InvalidInputError("a moved row has a row id that no row of the table has", where=snapshot.uri)
    versions = np.zeros(len(addresses), np.uint64)
    owners, offsets = split_addresses(addresses)
    for fragment_id in distinct(owners).tolist():
        mine = owners == fragment_id
        created = snapshot.created_at(snapshot.fragment(fragment_id))
        versions[mine] = 1 if created is None else created.take(offsets[mine])
    return VersionSequence.from_versions(versions)
