"""Changes to tables as transactions: operations, conflicts between them, and the versions that they produce.

You hold: a snapshot and an operation. You get: the next snapshot, or a RetryableError or IncompatibleError that names
the conflicting writer. The steps of a commit: `committer` → `footprint` (what a transaction touches) and `conflicts`
(the matrix, as data) → `rebase` → `manifest_builder` (pure) → `snapshot.publish`, one put-if-absent.
A version becomes visible after all files that it names are on disk. A transaction is never committed twice: after a
lost response, the commit recognizes its own version by UUID. After a StoreError, the named files are kept, because the
version may still appear.
Never here: the choice of rows that a verb changes.
"""

from lance_duck.commit.committer import commit
from lance_duck.commit.creation import create_clone, create_table
from lance_duck.commit.key_filter import key_filter
from lance_duck.commit.messages import operation_from_proto
from lance_duck.commit.operations import (
    REWRITE_COLUMNS,
    REWRITE_ROWS,
    Append,
    Clone,
    CreateIndex,
    DataOverlay,
    DataOverlayGroup,
    DataReplacement,
    DataReplacementGroup,
    Delete,
    KeyExistenceFilter,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    RewrittenIndex,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMap,
)
from lance_duck.commit.races import REFUSALS, run_again, same_table

__all__ = [
    "REFUSALS",
    "REWRITE_COLUMNS",
    "REWRITE_ROWS",
    "Append",
    "Clone",
    "CreateIndex",
    "DataOverlay",
    "DataOverlayGroup",
    "DataReplacement",
    "DataReplacementGroup",
    "Delete",
    "KeyExistenceFilter",
    "Merge",
    "Operation",
    "Overwrite",
    "Project",
    "ReserveFragments",
    "Restore",
    "Rewrite",
    "RewriteGroup",
    "RewrittenIndex",
    "Update",
    "UpdateBases",
    "UpdateConfig",
    "UpdateMap",
    "commit",
    "create_clone",
    "create_table",
    "key_filter",
    "operation_from_proto",
    "run_again",
    "same_table",
]
