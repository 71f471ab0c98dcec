"""Every change of a table, as transactions: operations, their conflicts, and how they become versions.

You hold: a snapshot and an operation. You get: the next snapshot, or RetryableError or IncompatibleError, which say
who came first. The path of a commit: `committer` → `footprint` (what a transaction touches) and `conflicts` (the
matrix, as data) → `rebase` → `manifest_builder` (pure) → `snapshot.publish`, one put-if-absent.
A version becomes visible after all that it names is on disk. A transaction is never committed twice: one whose answer
was lost recognizes itself by its uuid. After a StoreError the files that a commit names stay: the version may still
appear.
Never here: which rows a verb means.
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
