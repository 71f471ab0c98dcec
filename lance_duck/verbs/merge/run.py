"""An attempt of a merge by one process: rows are matched, and written as one part."""

from __future__ import annotations

from dataclasses import replace

from lance_duck.commit.operations import REWRITE_COLUMNS
from lance_duck.scan.blobs.copies import kept_blobs
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.merge.columns import check_columns, rewrite_columns
from lance_duck.verbs.merge.commit import MergeResult, WrittenMerge, joined_parts
from lance_duck.verbs.merge.match import MergeMatches, match_rows
from lance_duck.verbs.merge.parts import MergePart
from lance_duck.verbs.merge.plan import MergePlan
from lance_duck.verbs.merge.source import MergeSource
from lance_duck.verbs.merge.write import new_rows, ordered_matches
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.verbs.rows.rows_moved import Offsets, delete_offsets, moved_rows, offsets_by_fragment
from lance_duck.write.files import write_new_fragments
from lance_duck.write.options import WriteOptions


def write_merge(
    snapshot: Snapshot, plan: MergePlan, source: MergeSource, options: WriteOptions, draft: UncommittedFiles
) -> WrittenMerge:
    """Match and write the rows of a merge.

    Raises:
        InvalidInputError: See `match_rows` and `new_rows`.
    """
    source.fit(snapshot.schema)
    stable, in_place = snapshot.has_stable_row_ids, plan.write_mode == REWRITE_COLUMNS
    if in_place:
        check_columns(plan, source)
    matches = ordered_matches(match_rows(snapshot, plan, source), by_address=stable or not source.is_whole)
    if in_place:
        update = rewrite_columns(snapshot, plan, source, matches, options, draft)
        counts: MergeResult = {
            "num_inserted_rows": 0,
            "num_updated_rows": len(matches.updated),
            "num_deleted_rows": 0,
        }
        return WrittenMerge(update, None, None, counts)
    part = _write_rows(snapshot, source, matches, options, draft)
    return joined_parts(snapshot, plan, source.schema.names, [part], lambda rows: delete_offsets(snapshot, rows, draft))


def _write_rows(
    snapshot: Snapshot, source: MergeSource, matches: MergeMatches, options: WriteOptions, draft: UncommittedFiles
) -> MergePart:
    if any(field.blob_version for top in (*source.missing, *source.partial) for field in top.walk()):
        options = replace(options, blobs=kept_blobs(snapshot))
    fragments = tuple(
        write_new_fragments(snapshot.store, snapshot.schema, new_rows(snapshot, source, matches), options)
    )
    draft.note_fragments(fragments)
    if snapshot.has_stable_row_ids:
        fragments = moved_rows(fragments, matches.row_ids, matches.created_at)
    return MergePart(
        fragments,
        Offsets(offsets_by_fragment(matches.updated)),
        Offsets(offsets_by_fragment(matches.deleted)),
        len(matches.inserted),
        source.key_columns(matches.inserted),
    )
