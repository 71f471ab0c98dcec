"""The conflict matrix, as data: whether a change can be committed after a concurrent change.

    REBASE        the change is applied after a rebase
    RETRY         the change may succeed if it is repeated from the newest version
    INCOMPATIBLE  the other change removed something that this change needs

A rule is a verdict, or a list of verdicts with conditions, of which the first true condition decides. The default is
REBASE, including for pairs that are not listed. Any change after an unknown operation is INCOMPATIBLE.
In the conditions, `ours` is the change to commit, and `theirs` is the change that was committed first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, TypeAlias

from lance_duck.commit.footprint import Footprint
from lance_duck.commit.key_filter import may_share_keys
from lance_duck.errors import IncompatibleError, RetryableError
from lance_duck.wire.transaction import UNKNOWN


class Verdict(Enum):
    """The outcome for a change if a concurrent change was committed first."""

    REBASE = "rebase"
    RETRY = "retry"
    INCOMPATIBLE = "incompatible"


REBASE, RETRY, INCOMPATIBLE = Verdict.REBASE, Verdict.RETRY, Verdict.INCOMPATIBLE

Condition: TypeAlias = Callable[[Footprint, Footprint], bool]
Rule: TypeAlias = Verdict | tuple[tuple[Condition, Verdict], ...]


def same_fragments(ours: Footprint, theirs: Footprint) -> bool:
    """Return whether both touch the same fragment."""
    return not ours.touched.isdisjoint(theirs.touched)


def same_fragments_unknown_rows(ours: Footprint, theirs: Footprint) -> bool:
    """Return whether both touch the same fragment, and the rows that `ours` changes are unknown.

    If these rows are known, the rebase compares them.
    """
    return not ours.has_affected_rows and same_fragments(ours, theirs)


def same_fragments_in_place(ours: Footprint, theirs: Footprint) -> bool:
    """Return whether `theirs` changed rows in place in a fragment that `ours` touches."""
    return theirs.changes_values_in_place and same_fragments(ours, theirs)


def target_gone(ours: Footprint, theirs: Footprint) -> bool:
    """Return whether `theirs` removed a fragment that `ours` touches."""
    return not ours.touched.isdisjoint(theirs.removed)


def target_moved(ours: Footprint, theirs: Footprint) -> bool:
    """Return whether `theirs` moved rows of a fragment with a file of `ours`, or changed the same fields there."""
    shared = [ours.replaced[i] for i in theirs.updated if i in ours.replaced]
    return any(theirs.moves_rows or not fields.isdisjoint(theirs.fields_modified) for fields in shared)


def same_cells(ours: Footprint, theirs: Footprint) -> bool:
    """Return whether both replace the file of the same field in the same fragment."""
    return any(not fields.isdisjoint(theirs.replaced.get(i, ())) for i, fields in ours.replaced.items())


def replaced_is_indexed(ours: Footprint, theirs: Footprint) -> bool:
    """Return whether one replaces values of a field that the other indexes."""
    fields = frozenset().union(*ours.replaced.values(), *theirs.replaced.values())
    return not fields.isdisjoint(ours.indexed_fields | theirs.indexed_fields)


def rewritten_is_indexed(ours: Footprint, theirs: Footprint) -> bool:
    """Return whether one rewrites fragments that the other indexes, or may index."""
    indexed, rewritten = (ours, theirs) if ours.kind == "CreateIndex" else (theirs, ours)
    return indexed.indexed_fragments is None or not rewritten.removed.isdisjoint(indexed.indexed_fragments)


def we_reuse_fragments(ours: Footprint, theirs: Footprint) -> bool:
    """Return whether `ours` replaces the fragment reuse index. Used if `theirs` may have extended that index."""
    return ours.reuses_fragments


def same_index(ours: Footprint, theirs: Footprint) -> bool:
    """Return whether both create an index with the same name."""
    return not ours.index_names.isdisjoint(theirs.index_names)


def they_change_nullability(ours: Footprint, theirs: Footprint) -> bool:
    """Return whether rows written before `theirs` may not fit its schema."""
    return not theirs.keeps_nullability


def we_change_nullability(ours: Footprint, theirs: Footprint) -> bool:
    """Return whether rows written before `ours` may not fit its schema."""
    return not ours.keeps_nullability


def new_rows_lose_structure(ours: Footprint, theirs: Footprint) -> bool:
    """Return whether one drops the only fields that store the structure of rows that the other adds."""
    project, other = (ours, theirs) if ours.kind == "Project" else (theirs, ours)
    return any(project.loses_structure(stored) for stored in other.new_rows)


def same_settings(ours: Footprint, theirs: Footprint) -> bool:
    """Return whether both change the same setting."""
    return ours.config.clash(theirs.config)


def same_metadata(ours: Footprint, theirs: Footprint) -> bool:
    """Return whether both change a setting or a metadata key of the table, the schema, or a field."""
    return (
        same_settings(ours, theirs)
        or ours.table_metadata.clash(theirs.table_metadata)
        or (ours.has_schema_metadata and theirs.has_schema_metadata)
        or not ours.field_metadata.isdisjoint(theirs.field_metadata)
    )


def we_change_schema_metadata(ours: Footprint, theirs: Footprint) -> bool:
    """Return whether `ours` changes metadata of the schema or of a field."""
    return ours.has_schema_metadata or bool(ours.field_metadata)


def they_change_schema_metadata(ours: Footprint, theirs: Footprint) -> bool:
    """Return whether `theirs` changes metadata of the schema or of a field."""
    return we_change_schema_metadata(theirs, ours)


def same_bases(ours: Footprint, theirs: Footprint) -> bool:
    """Return whether both add a base path with the same id, name or path."""
    return not ours.bases.isdisjoint(theirs.bases)


def inserts_by_key(ours: Footprint, theirs: Footprint) -> bool:
    """Return whether `ours` inserts keys. Used if `theirs` adds rows with unknown keys."""
    return ours.inserted_keys is not None


def same_keys(ours: Footprint, theirs: Footprint) -> bool:
    """Return whether `ours` inserts keys that `theirs` inserted, or may have inserted."""
    if ours.inserted_keys is None:
        return False
    return theirs.inserted_keys is None or may_share_keys(ours.inserted_keys, theirs.inserted_keys)


def same_shards(ours: Footprint, theirs: Footprint) -> bool:
    """Return whether both merge SSTables of the same shard of the write-ahead log."""
    return not ours.compacted_shards.isdisjoint(theirs.compacted_shards)


def we_merge_shards(ours: Footprint, theirs: Footprint) -> bool:
    """Return whether `ours` merges SSTables of the write-ahead log. Used if `theirs` may have merged the same ones."""
    return bool(ours.compacted_shards)


_SAME_FRAGMENTS: Rule = ((same_fragments, RETRY),)
_SAME_ROWS: tuple[tuple[Condition, Verdict], ...] = (
    (same_fragments_unknown_rows, RETRY),
    (same_fragments_in_place, RETRY),
)
_THEIR_SCHEMA: tuple[tuple[Condition, Verdict], ...] = ((they_change_nullability, RETRY),)
_THEIR_FIELDS: Rule = (*_THEIR_SCHEMA, (new_rows_lose_structure, RETRY))
_OUR_SCHEMA: tuple[tuple[Condition, Verdict], ...] = ((we_change_nullability, RETRY),)
_OUR_FIELDS: Rule = (*_OUR_SCHEMA, (new_rows_lose_structure, RETRY))
_REPLACED_INDEX: Rule = ((replaced_is_indexed, RETRY),)
_REWRITTEN_INDEX: Rule = ((rewritten_is_indexed, RETRY),)
_REPLACES_TABLE: Mapping[str, Rule] = {"Overwrite": INCOMPATIBLE, "Restore": INCOMPATIBLE}
_REPLACES_ALL: Mapping[str, Rule] = {**_REPLACES_TABLE, "UpdateMemWalState": INCOMPATIBLE}

MATRIX: Mapping[str, Mapping[str, Rule]] = {
    "Append": {
        **_REPLACES_ALL,
        "Merge": _THEIR_SCHEMA,
        "Project": _THEIR_FIELDS,
    },
    "Delete": {
        **_REPLACES_ALL,
        "Delete": _SAME_ROWS,
        "Update": _SAME_ROWS,
        "DataOverlay": _SAME_FRAGMENTS,
        "DataReplacement": _SAME_FRAGMENTS,
        "Rewrite": _SAME_FRAGMENTS,
        "Merge": RETRY,
    },
    "Update": {
        **_REPLACES_TABLE,
        "Append": ((inserts_by_key, RETRY),),
        "Delete": _SAME_ROWS,
        "Update": ((same_shards, INCOMPATIBLE), (same_keys, RETRY), *_SAME_ROWS),
        "UpdateMemWalState": ((we_merge_shards, INCOMPATIBLE),),
        "DataOverlay": ((inserts_by_key, RETRY), (same_fragments, RETRY)),
        "DataReplacement": _SAME_FRAGMENTS,
        "Rewrite": _SAME_FRAGMENTS,
        "Merge": RETRY,
        "Project": _THEIR_FIELDS,
    },
    "Overwrite": {
        "Overwrite": ((same_settings, INCOMPATIBLE), (lambda ours, theirs: True, RETRY)),
        "UpdateConfig": ((same_settings, INCOMPATIBLE),),
        "UpdateMemWalState": INCOMPATIBLE,
    },
    "CreateIndex": {
        **_REPLACES_ALL,
        "CreateIndex": ((same_index, RETRY),),
        "DataReplacement": _REPLACED_INDEX,
        "Rewrite": ((we_reuse_fragments, RETRY), (rewritten_is_indexed, RETRY)),
    },
    "Rewrite": {
        **_REPLACES_TABLE,
        "Delete": _SAME_FRAGMENTS,
        "Update": _SAME_FRAGMENTS,
        "DataOverlay": _SAME_FRAGMENTS,
        "DataReplacement": _SAME_FRAGMENTS,
        "Rewrite": _SAME_FRAGMENTS,
        "CreateIndex": _REWRITTEN_INDEX,
        "Merge": RETRY,
    },
    "Merge": {
        **_REPLACES_ALL,
        "Append": RETRY,
        "Delete": RETRY,
        "Update": RETRY,
        "DataOverlay": RETRY,
        "DataReplacement": RETRY,
        "Rewrite": RETRY,
        "Merge": RETRY,
        "Project": INCOMPATIBLE,
        "UpdateConfig": ((they_change_schema_metadata, RETRY),),
    },
    "Project": {
        **_REPLACES_ALL,
        "Append": _OUR_FIELDS,
        "Update": _OUR_FIELDS,
        "DataOverlay": _OUR_SCHEMA,
        "DataReplacement": _OUR_SCHEMA,
        "Merge": RETRY,
        "Project": RETRY,
    },
    "Restore": {
        "UpdateConfig": ((they_change_schema_metadata, INCOMPATIBLE),),
        "UpdateMemWalState": INCOMPATIBLE,
    },
    "ReserveFragments": _REPLACES_TABLE,
    "DataReplacement": {
        **_REPLACES_ALL,
        "Delete": ((target_gone, INCOMPATIBLE),),
        "Update": ((target_gone, INCOMPATIBLE), (target_moved, RETRY)),
        "DataOverlay": _SAME_FRAGMENTS,
        "DataReplacement": ((same_cells, RETRY),),
        "CreateIndex": _REPLACED_INDEX,
        "Rewrite": _SAME_FRAGMENTS,
        "Merge": RETRY,
        "Project": _THEIR_SCHEMA,
    },
    "DataOverlay": {
        **_REPLACES_ALL,
        "Delete": ((target_gone, RETRY),),
        "Update": ((target_gone, RETRY),),
        "Rewrite": _SAME_FRAGMENTS,
        "Merge": RETRY,
        "Project": _THEIR_SCHEMA,
    },
    "UpdateConfig": {
        "Overwrite": ((we_change_schema_metadata, INCOMPATIBLE), (same_settings, INCOMPATIBLE)),
        "Restore": ((we_change_schema_metadata, INCOMPATIBLE),),
        "Merge": ((we_change_schema_metadata, RETRY),),
        "UpdateConfig": ((same_metadata, INCOMPATIBLE),),
    },
    "UpdateBases": {"UpdateBases": ((same_bases, INCOMPATIBLE),)},
    "Clone": {},
}


MAKE_AGAIN: Final = "call checkout_latest() on the dataset, and repeat the change on the newest version"

_REPLACED: Final[Mapping[str, str]] = {
    "Overwrite": ", which replaced the whole table",
    "Restore": ", which restored an older version",
}


def judge(ours: Footprint, theirs: Footprint) -> Verdict:
    """Return the verdict on `ours`, a change made from a version before `theirs`."""
    if theirs.kind == UNKNOWN:
        return INCOMPATIBLE
    rule = MATRIX[ours.kind].get(theirs.kind, REBASE)
    if isinstance(rule, Verdict):
        return rule
    return next((verdict for condition, verdict in rule if condition(ours, theirs)), REBASE)


def check_conflict(ours: Footprint, theirs: Footprint | None, version: int, where: str) -> None:
    """Reject a change that cannot be applied after a concurrent change.

    Args:
        ours: The change to commit.
        theirs: The committed change, or None if its transaction was not kept.
        version: Version that `theirs` produced.
        where: The table, for messages.

    Raises:
        RetryableError: The change may succeed if it is repeated from a newer version. Also raised if `theirs` is None,
            for example after a cleanup.
        IncompatibleError: The change cannot succeed.
    """
    if theirs is None:
        raise RetryableError(
            f"{ours.kind} cannot be rebased onto version {version}, because its transaction file is missing",
            where=where,
            remedy=MAKE_AGAIN,
        )
    verdict = judge(ours, theirs)
    if verdict is INCOMPATIBLE:
        raise IncompatibleError(
            f"a concurrent commit is incompatible with this {ours.kind}",
            where=where,
            found=who(theirs, version) + _REPLACED.get(theirs.kind, ""),
            remedy=MAKE_AGAIN,
        )
    if verdict is RETRY:
        raise lost_to(ours, theirs, version, where)


def lost_to(ours: Footprint, theirs: Footprint, version: int, where: str) -> RetryableError:
    """Return the error for a change that must be repeated because of a concurrent change."""
    return RetryableError(
        f"a concurrent commit changed data that this {ours.kind} needs",
        where=where,
        found=who(theirs, version),
        remedy=MAKE_AGAIN,
    )


def who(theirs: Footprint, version: int) -> str:
    """Describe the writer that committed a version."""
    return f"{theirs.kind} {theirs.transaction.uuid} at version {version}"
