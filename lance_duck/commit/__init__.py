"""Every change of a table, as transactions: which there are, which go together, and how they become versions."""

from lance_duck.commit.again import run_again
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

__all__ = [
    "REWRITE_COLUMNS",
    "REWRITE_ROWS",
    "Append",
    "Clone",
    "CreateIndex",
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
]
