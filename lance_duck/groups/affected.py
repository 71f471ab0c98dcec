"""The rows and files of a staged change, for a process that did not compute the change."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from lance_duck.commit.rebase import Affected
from lance_duck.errors import NotFoundError
from lance_duck.snapshot import Snapshot
from lance_duck.wire.fragment import fragment_from_proto
from lance_duck.wire.paths import data_file
from lance_duck.wire.pb import table_pb2, transaction_pb2


def affected_rows(base: Snapshot, transaction: transaction_pb2.Transaction) -> Affected | None:
    """Return the offsets of the rows that a Delete or an Update removes, by fragment. None for other operations.

    These are the rows that `base` contains, and that the deletion files of the change contain.
    """
    match transaction.WhichOneof("operation"):
        case "delete":
            return _removed(base, transaction.delete.updated_fragments, transaction.delete.deleted_fragment_ids)
        case "update":
            return _removed(base, transaction.update.updated_fragments, transaction.update.removed_fragment_ids)
    return None


def _removed(base: Snapshot, updated: Iterable[table_pb2.DataFragment], removed: Iterable[int]) -> Affected:
    rows = {fragment_id: _live(base, fragment_id) for fragment_id in removed}
    for proto in updated:
        live = _live(base, proto.id)
        deleted = base.deletion_vector(fragment_from_proto(proto, base.uri))
        rows[proto.id] = live[:0] if deleted is None else live[deleted.contains(live)]
    return rows


def _live(snapshot: Snapshot, fragment_id: int) -> NDArray[np.uint32]:
    fragment = snapshot.fragment(fragment_id)
    rows = snapshot.physical_rows(fragment)
    deleted = snapshot.deletion_vector(fragment)
    live = np.arange(rows, dtype=np.int64) if deleted is None else deleted.live_offsets(0, rows)
    return live.astype(np.uint32)


def check_files(base: Snapshot, transaction: transaction_pb2.Transaction) -> None:
    """Check that the data files that a change adds still exist. Cleanups of other libraries may have removed them.

    Raises:
        NotFoundError: A file does not exist.
    """
    operation = getattr(transaction, str(transaction.WhichOneof("operation")))
    known = {file.path for fragment in base.fragments for file in fragment.files}
    for name in ("fragments", "new_fragments", "updated_fragments"):
        for fragment in getattr(operation, name, ()):
            for file in fragment.files:
                path = data_file(file.path)
                if not file.HasField("base_id") and file.path not in known and not base.store.exists(path):
                    raise NotFoundError("a file of a staged change was removed", where=f"{base.uri}/{path}")
