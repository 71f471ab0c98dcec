"""Operations of upkeep with their figures, shared by statements and procedures."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from lance_duck.dataset import LanceDataset
from lance_duck.duck.changes.indexes.manage import OPTIMIZED, coverage
from lance_duck.errors import InvalidInputError
from lance_duck.maintenance.auto_cleanup import parse_duration
from lance_duck.maintenance.options import CompactionArguments
from lance_duck.optimize import Compaction

Outcome = tuple[str, str, Mapping[str, Any]]
"""The name of an operation, the table, and figures."""

COMPACTION_OPTIONS: Final = (*CompactionArguments.__annotations__, "dry_run")
CLEANUP_OPTIONS: Final = (
    *("older_than", "retain_versions", "delete_unverified", "error_if_tagged_old_versions", "versions"),
    *("delete_rate_limit", "dry_run"),
)
CLEANUP_ALIASES: Final = {
    "older_than_seconds": "older_than",
    **dict.fromkeys(("retain", "retain_n_versions"), "retain_versions"),
}
_ZERO_IS_NONE: Final = frozenset({"max_bytes_per_file", "num_threads", "batch_size"})


def compacted(dataset: LanceDataset, options: Mapping[str, Any]) -> Outcome:
    """Compact a table, or say what would be compacted.

    Args:
        dataset: The table; it moves to the new version.
        options: Those of `COMPACTION_OPTIONS`; 0 stands for no limit of bytes, threads or rows at once.

    Raises:
        InvalidInputError: An option makes no sense.
    """
    arguments = {name: None if value == 0 and name in _ZERO_IS_NONE else value for name, value in options.items()}
    if arguments.pop("dry_run", False):
        plan = Compaction.plan(dataset, arguments)
        fragments = sum(len(task.fragments) for task in plan.tasks)
        return "compact", dataset.uri, {"dry_run": True, "tasks": plan.num_tasks(), "fragments_removed": fragments}
    metrics = dataset.optimize.compact_files(**arguments)
    return "compact", dataset.uri, {"version": dataset.version, **vars(metrics)}


def cleaned_up(dataset: LanceDataset, options: Mapping[str, Any]) -> Outcome:
    """Remove old versions of a table, or say what would be removed.

    Args:
        dataset: The table.
        options: Those of `CLEANUP_OPTIONS`; `older_than` is an interval, a text as in '7 days', or a number of seconds.

    Raises:
        InvalidInputError: An option makes no sense.
        ReferencedError: A tagged version would be removed.
    """
    arguments = {name: value for name, value in options.items() if value is not None}
    if "older_than" in arguments:
        arguments["older_than"] = age(arguments["older_than"])
    stats = dataset.cleanup_old_versions(**arguments)
    dry = {"dry_run": True} if arguments.get("dry_run") else {}
    return "cleanup", dataset.uri, {**dry, **vars(stats)}


def indexes_optimized(dataset: LanceDataset, options: Mapping[str, Any]) -> Outcome:
    """Bring all indexes of a table up to date; options are those of `optimize.optimize_indices`."""
    dataset.optimize.optimize_indices(**options)
    return OPTIMIZED, dataset.uri, coverage(dataset, options.get("index_names"))


def age(value: Any) -> timedelta:
    """Return the time span that an option means: an interval, a text as in '7 days', or a number of seconds.

    Raises:
        InvalidInputError: The option is not a time span.
    """
    if isinstance(value, timedelta):
        return value
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return timedelta(seconds=value)
    raise InvalidInputError("older_than", expected="INTERVAL '7 days', '7 days', or seconds", found=repr(value))
