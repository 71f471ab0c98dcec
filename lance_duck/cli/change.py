"""Commands that change a table, and `validate`, which reads all of it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from lance_duck import lazy
from lance_duck.cli.bar import progress_bar
from lance_duck.cli.open import manifest_of, open_folder, open_table
from lance_duck.cli.show import ByteCount, report, show
from lance_duck.cli.sources import place_of_source
from lance_duck.cli.terminal import complain
from lance_duck.cli.transfer import write_rows_of
from lance_duck.maintenance.validation.keys import key_problems

if TYPE_CHECKING:
    from lance_duck.duck.changes.upkeep import orderings
else:
    orderings = lazy.modules(globals(), "lance_duck.duck.changes.upkeep", "orderings")


def write(
    table: str,
    source: str,
    mode: str = "create",
    data_storage_version: str | None = None,
    max_rows_per_file: int = 1 << 20,
    vector_columns: str | None = None,
    as_json: bool = False,
) -> None:
    """Write rows to a table."""
    place = place_of_source(table, source, "write")
    write_rows_of(table, place, mode, data_storage_version, max_rows_per_file, vector_columns, as_json)


def compact(
    table: str,
    target_rows: int | None = None,
    max_overlays: int | None = None,
    order_by: Sequence[str] | None = None,
    as_json: bool = False,
) -> None:
    """Merge small fragments and drop deleted rows. Also merges overlays, and sorts rows."""
    dataset = open_table(table)
    columns = None if order_by is None else [orderings.ordering_of(dataset, text) for text in order_by]
    with progress_bar("compacting") as progress:
        metrics = dataset.optimize.compact_files(
            target_rows_per_fragment=target_rows,
            max_overlays_per_fragment=max_overlays,
            order_by=columns,
            progress=progress,
        )
    report({"version": dataset.version, **vars(metrics)}, as_json)


def cleanup(
    table: str,
    older_than: float | None = None,
    retain: int | None = None,
    dry_run: bool = False,
    as_json: bool = False,
) -> None:
    """Remove old versions and the files that only they use. Old means 14 days by default."""
    age = None if older_than is None else timedelta(days=older_than)
    stats = open_table(table).cleanup_old_versions(age, retain, dry_run=dry_run, error_if_tagged_old_versions=False)
    report({**vars(stats), "bytes_removed": ByteCount(stats.bytes_removed)}, as_json)


def validate(table: str, version: int | None = None, tag: str | None = None, as_json: bool = False) -> None:
    """Read the whole table and list its problems. The exit code is 1 if there is damage.

    For a folder with `__manifest` or commits of several tables, checks these, but not the tables.
    """
    folder = open_folder(table) if version is None and tag is None else None
    place = table if folder is None else manifest_of(folder)
    dataset = None if place is None else open_table(place, version, tag)
    problems = folder.find_problems() if folder is not None else [] if dataset is None else dataset.find_problems()
    if problems or as_json or not sys.stdout.isatty():
        rows = ({"where": problem.where, "problem": problem.what} for problem in problems)
        show(rows, ["where", "problem"], as_json, max_rows=1000)
    for problem in problems:
        if problem.remedy:
            complain(f"{problem.where}: {problem.remedy}")
    if any(problem.is_damage for problem in problems):
        sys.exit(1)
    if dataset is None:
        complain(f"no {'damage' if problems else 'problem'} in the commits of several tables")
        return
    counts = {"rows": dataset.count_rows(), "fragments": len(dataset.fragment_ids())}
    counts["indices"] = len(dataset.describe_indices())
    summary = ", ".join(f"{what}: {count:,}" for what, count in counts.items())
    complain(f"no {'damage' if problems else 'problem'} in version {dataset.version} ({summary})")


def repair(table: str, dry_run: bool = False, restore_deleted: bool = False, as_json: bool = False) -> None:
    """Commit a version without unreadable data. It omits unreadable rows and index segments, and renames list items."""
    folder = open_folder(table)
    place = table if folder is None else manifest_of(folder)
    if place is None and folder is not None:
        problems = folder.repair(dry_run=dry_run)
        show(({"what": each.what} for each in problems), ["what"], as_json, max_rows=1000)
        return
    dataset = open_table(place or table)
    losses = dataset.repair(dry_run=dry_run, restore_deleted=restore_deleted)
    rows = [
        {"what": f"fragment {number}", "rows": len(offsets), "columns": ", ".join(losses.columns[number])}
        for number, offsets in losses.rows.items()
    ]
    rows += [
        {"what": f"deleted rows of fragment {number}", "rows": None, "columns": None} for number in losses.deletions
    ]
    rows += [{"what": f"index {s.name} ({s.uuid})", "rows": None, "columns": None} for s in losses.segments]
    if losses.renamed:
        rows.append({"what": "names of list items", "rows": None, "columns": ", ".join(losses.renamed)})
    if folder is not None:
        rows += [{"what": each.what, "rows": None, "columns": None} for each in folder.repair(dry_run=dry_run)]
        dataset.checkout_latest()
    if rows or as_json or not sys.stdout.isatty():
        show(iter(rows), ["what", "rows", "columns"], as_json, max_rows=1000)
    repeated = list(key_problems(dataset.handle.snapshot))
    for problem in repeated:
        complain(f"not repaired: {problem}; {problem.remedy}")
    outcome = "nothing was repaired" if repeated and not losses.renamed else "nothing is lost"
    complain(f"{f'rows lost: {losses.num_rows:,}' if losses else outcome}; version {dataset.version}")
