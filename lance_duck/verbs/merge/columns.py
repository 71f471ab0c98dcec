"""Updates in place: the source's columns are rewritten for all rows of the fragments with matches.

A new file takes over a column from an older file. In the older file's metadata, the field id becomes -2. A file without
remaining columns is removed from the fragment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.commit.operations import REWRITE_COLUMNS, Update
from lance_duck.encoding.arrow.gather import take_rows
from lance_duck.errors import InvalidInputError
from lance_duck.rows import roaring_bytes
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.projection import ROW_ID
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot, derived
from lance_duck.verbs.columns.files import options_in, with_fields_of
from lance_duck.verbs.merge.match import MergeMatches
from lance_duck.verbs.merge.plan import UPDATE, MergePlan
from lance_duck.verbs.merge.source import MergeSource
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.verbs.rows.rows_moved import offsets_by_fragment
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.schema import Schema
from lance_duck.write.coerce import coerce
from lance_duck.write.files import write_columns
from lance_duck.write.options import WriteOptions


def check_columns(plan: MergePlan, source: MergeSource) -> None:
    """Raise InvalidInputError if a merge cannot be executed in place."""
    fields = [field for field in source.schema.fields if field.name not in plan.on]
    reasons = {
        "inserts add rows": plan.insert,
        "only matched rows can be updated": plan.matched != UPDATE or plan.by_source_delete,
        "the source has all columns": not source.missing,
        "the source has only some fields of a struct": bool(source.partial),
        "the source has only key columns": not fields,
        "the source has blobs": any(field.blob_version for top in fields for field in top.walk()),
    }
    for reason, holds in reasons.items():
        if holds:
            raise InvalidInputError(
                "this merge cannot use rewrite_columns",
                where="merge_insert",
                found=reason,
                remedy='use write_mode("rewrite_rows")',
            )


def rewrite_columns(
    snapshot: Snapshot,
    plan: MergePlan,
    source: MergeSource,
    matches: MergeMatches,
    options: WriteOptions,
    draft: UncommittedFiles,
) -> Update:
    """Write new files for the source's columns.

    Args:
        snapshot: The version to merge into.
        plan: The merge.
        source: The source.
        matches: Matches of the merge. `updated` must be ascending.
        options: Write options.
        draft: Records the files, and deletes them if the change fails.
    """
    schema = Schema(tuple(field for field in source.schema.fields if field.name not in plan.on))
    derived.warn_of_computed(snapshot, schema.names)
    fragments, bitmaps, start = [], {}, 0
    for fragment_id, offsets in offsets_by_fragment(matches.updated).items():
        fragment = snapshot.fragment(fragment_id)
        sources = matches.sources[start : start + len(offsets)]
        start += len(offsets)
        batches = _patched(snapshot, fragment, schema, source, offsets, sources)
        rows, settings = snapshot.physical_rows(fragment), options_in(snapshot, fragment, options)
        file = write_columns(snapshot.store, schema, batches, rows, settings)
        draft.note_fragments([replace(fragment, files=(file,))])
        fragments.append(with_fields_of(fragment, file, set(file.fields)))
        bitmaps[fragment_id] = roaring_bytes(offsets)
    return Update(
        updated_fragments=fragments,
        fields_modified=[field.id for field in schema.walk()],
        update_mode=REWRITE_COLUMNS,
        updated_fragment_offsets=bitmaps,
    )


def _patched(
    snapshot: Snapshot,
    fragment: Fragment,
    schema: Schema,
    source: MergeSource,
    offsets: NDArray[np.uint32],
    sources: NDArray[np.int64],
) -> Iterator[pa.RecordBatch]:
    """Yield all physical rows of a fragment, updated from the matching source rows."""
    table = TableScan(snapshot)
    options = ScanOptions(
        columns=[*schema.names, ROW_ID], fragments=[fragment.id], with_row_id=True, include_deleted_rows=True
    )
    before = (batch.select(schema.names) for batch in table.reader(table.plan(options)))
    first = 0
    for batch in coerce(before, schema):
        low, high = np.searchsorted(offsets, [first, first + batch.num_rows])
        places = np.arange(batch.num_rows)
        places[offsets[low:high].astype(np.int64) - first] = batch.num_rows + np.arange(high - low)
        values = source.rows(sources[low:high]).select(schema.names)
        if values.num_rows:
            both = pa.concat_tables([pa.Table.from_batches([batch]), values.cast(batch.schema)])
            yield from take_rows(both, places).to_batches()
        else:
            yield batch
        first += batch.num_rows
