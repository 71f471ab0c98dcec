"""Descriptions of what a merge does, and of what it did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lance_duck.markup import PlanText
from lance_duck.redact import shown
from lance_duck.scan.projection import ROW_ADDRESS
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.merge.commit import WrittenMerge
from lance_duck.verbs.merge.plan import UPDATE, MergePlan


def explain_merge(
    plan: MergePlan, snapshot: Snapshot, names: Sequence[str], schema: pa.Schema | None = None, metrics: str = ""
) -> str:
    """Describe a merge, a line for each part.

    Args:
        plan: The merge.
        snapshot: The version that it would begin with.
        names: Names of the columns of the source.
        schema: Schema of the source, to include types; None for names only.
        metrics: Line of `metrics_of`; empty if the merge has not run.
    """
    return PlanText("\n".join(_lines(plan, snapshot, names, schema, metrics)) + "\n")


def metrics_of(merged: WrittenMerge, seconds: float) -> str:
    """Describe what a merge wrote, and how long it took."""
    files = [file for fragment in merged.operation.new_fragments for file in fragment.files]
    counts: dict[str, object] = {
        "bytes_written": sum(file.file_size or 0 for file in files),
        "num_files_written": len(files),
        **merged.result,
    }
    parts = ", ".join(f"{name}={count}" for name, count in sorted(counts.items()))
    return f", elapsed={seconds * 1000:.3f}ms, metrics=[{parts}]"


def _lines(
    plan: MergePlan, snapshot: Snapshot, names: Sequence[str], schema: pa.Schema | None, metrics: str
) -> Iterator[str]:
    missing = [name for name in snapshot.schema.names if name not in names]
    yield plan.describe() + metrics
    yield f"  HashJoin: on=[{', '.join(plan.on)}], build=source, probe=target"
    reads = ", ".join([*plan.on, ROW_ADDRESS])
    sieve = "none, rows that the source lacks matter too" if plan.by_source_delete else "rows with keys of the source"
    yield f"    LanceScan: uri={shown(snapshot.uri)}, version={snapshot.version}, columns: {reads}, filter: {sieve}"
    yield f"    Source: {', '.join(names)}"
    if schema is not None:
        yield from (f"      {field.name}: {field.type}" for field in schema)
    if missing and plan.matched == UPDATE:
        yield f"  Read for updated rows: {', '.join(missing)}"
