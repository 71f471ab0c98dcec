"""The list of upkeep operations, each with its SQL names, arguments, function and result.

    OPTIMIZE t WITH (argument = value, …)            `words`, read by `upkeep.statements`
    CALL lance_name(t, argument => value, …)         `name`, read by `procedure`
    SELECT … FROM lance_name(t, argument => value)   `name`, read by `procedure`

`OPERATIONS` defines names, errors for unknown arguments, casts and result columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any, Final

from lance_duck.arguments import number_or_text, unknown_value
from lance_duck.dataset import LanceDataset
from lance_duck.duck.changes.changed_tables import TransactionBlock
from lance_duck.duck.changes.options import Options
from lance_duck.duck.changes.result import ChangeResult, counted, listed, nothing
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.upkeep.orderings import ordering_of
from lance_duck.duck.history.names import PREFIX
from lance_duck.duck.places import shown_place
from lance_duck.duck.tables.handle import TableHandle, VersionChoice
from lance_duck.errors import InvalidInputError
from lance_duck.maintenance.auto_cleanup import INTERVAL, OLDER_THAN, RETAIN, parse_duration
from lance_duck.optimize.compaction import plan_table
from lance_duck.snapshot.refs import MAIN
from lance_duck.wire.transaction import COMMIT_AUTHOR, COMMIT_MESSAGE

Given = Mapping[str, Any]
Rows = Sequence[Sequence[Any]]

TABLE: Final = "table"

_EXPECTED: Final = {TABLE: "its name or path", "version": "a number or a tag"}
ALIASES: Final = {
    "older_than_seconds": "older_than",
    **dict.fromkeys(("retain", "retain_n_versions"), "retain_versions"),
}
"""Aliases of arguments, in all operations with these arguments."""


@dataclass(frozen=True)
class TableOperation:
    """An operation on one table.

    Attributes:
        name: The procedure, without its prefix. Empty if CALL does not run the operation.
        run: Runs the operation on a table or transaction. Gets the arguments that are not NULL.
        result: Converts the rows returned by `run` to a result.
        parameters: DuckDB types of the arguments after the table, by name.
        required: Number of arguments after the table that CALL must have.
        not_null: Names of the arguments that must not be NULL.
        note: Effect of the operation, for EXPLAIN. Defaults to a note with the name.
        words: Template of the statement, with argument names in braces. Empty if only CALL runs the operation.
        writes: Whether the operation changes the table.
        in_transaction: Whether the operation concerns the open transaction instead of a table.
    """

    name: str
    run: Callable[[Any, Given], Rows | None]
    result: Callable[[Rows | None], ChangeResult]
    parameters: Mapping[str, str] = field(default_factory=dict)
    required: int = 0
    not_null: tuple[str, ...] = ()
    note: str = ""
    words: str = ""
    writes: bool = True
    in_transaction: bool = False

    @property
    def signature(self) -> Mapping[str, str]:
        """The types of all arguments of the procedure, by name."""
        return self.parameters if self.in_transaction else {TABLE: "VARCHAR", **self.parameters}

    def values(self, session: ChangeSession, options: Options, fixed: Given) -> dict[str, Any]:
        """Evaluate the arguments in DuckDB, and return those that are not NULL.

        Args:
            session: Evaluates the arguments.
            options: The named arguments.
            fixed: Arguments implied by the words of the statement.

        Raises:
            WrongTypeError: An argument is unknown.
            InvalidInputError: Two names refer to one argument, or an argument must not be NULL.
        """
        known = [name for name in self.signature if name not in fixed]
        aliases = {name: ALIASES[name] for name in known if name in ALIASES}
        values = options.values(session, [name for name in known if name not in aliases], aliases)
        given = {name: value for name, value in {**values, **fixed}.items() if value is not None}
        for name in self.not_null if self.in_transaction else (TABLE, *self.not_null):
            if name not in given:
                raise InvalidInputError(
                    f"{PREFIX}{self.name} needs a {name}", expected=_EXPECTED.get(name, "a string"), found="NULL"
                )
        return given


_FIGURES: Final = partial(listed, dict.fromkeys(("Operation", "Target", "MetricsJSON"), "VARCHAR"))
_PROBLEMS: Final = partial(listed, dict.fromkeys(("place", "problem"), "VARCHAR"))
_VERSION: Final = partial(listed, {"version": "BIGINT"})


def _count(_: Rows | None) -> ChangeResult:
    return counted(1)


def _no_count(_: Rows | None) -> ChangeResult:
    return nothing("Count", "BIGINT")


def _success(_: Rows | None) -> ChangeResult:
    return nothing()


# Fragments, indexes and old versions.

_COMPACTION: Final = {
    **dict.fromkeys(("target_rows_per_fragment", "max_rows_per_group", "max_bytes_per_file"), "BIGINT"),
    **dict.fromkeys(("num_threads", "batch_size"), "BIGINT"),
    **dict.fromkeys(("max_source_fragments", "max_source_rows", "max_source_bytes"), "BIGINT"),
    "materialize_deletions_threshold": "DOUBLE",
    "memory_limit": "VARCHAR",
    **dict.fromkeys(("materialize_deletions", "defer_index_remap", "remap_indices", "dry_run"), "BOOLEAN"),
    **dict.fromkeys(("io_buffer_size", "binary_copy_read_batch_bytes", "max_overlays_per_fragment"), "BIGINT"),
    **dict.fromkeys(("compaction_mode", "data_storage_version"), "VARCHAR"),
    "excluded_fragment_ids": "BIGINT[]",
    "order_by": "VARCHAR[]",
}
_CLEANUP: Final = {
    "older_than": "INTERVAL",
    "retain": "BIGINT",
    **dict.fromkeys(("dry_run", "delete_unverified", "error_if_tagged_old_versions"), "BOOLEAN"),
    "versions": "BIGINT[]",
    **dict.fromkeys(("delete_rate_limit", "retain_versions", "retain_n_versions", "older_than_seconds"), "BIGINT"),
}
_INDEXES: Final = {
    "index": "VARCHAR",
    "num_indices_to_merge": "BIGINT",
    "retrain": "BOOLEAN",
    **dict.fromkeys(("memory_limit", "mode"), "VARCHAR"),
}
_MODES: Final = ("append", "merge", "retrain")
_ZERO_IS_NONE: Final = frozenset({"max_bytes_per_file", "num_threads", "batch_size"})
_CONFIG: Final = {"interval": INTERVAL, "older_than": OLDER_THAN, "retain_versions": RETAIN}
_INTERVAL: Final = 20


def _compact(table: TableHandle, given: Given) -> Rows:
    """Compact the table, or return the planned compactions."""
    dataset = table.current()
    arguments = {name: None if value == 0 and name in _ZERO_IS_NONE else value for name, value in given.items()}
    if isinstance(arguments.get("memory_limit"), str):
        arguments["memory_limit"] = number_or_text(arguments["memory_limit"])
    if "order_by" in arguments:
        arguments["order_by"] = [ordering_of(dataset, text) for text in given["order_by"]]
    if arguments.pop("dry_run", False):
        plan = plan_table(dataset, arguments)
        fragments = sum(len(task.fragments) for task in plan.tasks)
        figures = {"dry_run": True, "tasks": plan.num_tasks(), "fragments_removed": fragments}
    else:
        metrics = dataset.optimize.compact_files(**arguments)
        figures = {"version": dataset.version, **vars(metrics)}
    return _figures("compact", dataset, figures)


def _cleanup(table: TableHandle, given: Given) -> Rows:
    """Remove old versions, or return how many would be removed."""
    dataset = table.current()
    age = {"older_than": _age(given["older_than"])} if "older_than" in given else {}
    stats = dataset.cleanup_old_versions(**{**given, **age})
    return _figures("cleanup", dataset, {**({"dry_run": True} if given.get("dry_run") else {}), **vars(stats)})


def _reindex(table: TableHandle, given: Given) -> None:
    """Bring one index or all indexes up to date."""
    arguments = {name: value for name, value in given.items() if name not in ("index", "mode")}
    mode = given.get("mode")
    if mode is not None and mode not in _MODES:
        raise unknown_value("mode of an index", mode, _MODES)
    if mode not in (None, "retrain") and given.get("retrain"):
        raise InvalidInputError(
            "retrain cannot be combined with another mode", expected="mode 'retrain'", found=repr(mode)
        )
    if mode == "append":
        arguments["num_indices_to_merge"] = 0
    if mode == "retrain":
        arguments["retrain"] = True
    if isinstance(given.get("memory_limit"), str):
        arguments["memory_limit"] = number_or_text(given["memory_limit"])
    table.current().optimize.optimize_indices(index_names=_index_names(given), **arguments)


def _optimize_indexes(table: TableHandle, given: Given) -> Rows:
    """Bring one index or all indexes up to date, and return how many rows each one covers."""
    _reindex(table, given)
    dataset, names = table.current(), _index_names(given)
    indexes = {
        index.name: {"rows_indexed": index.num_rows_indexed, "segments": len(index.segments)}
        for index in dataset.describe_indices()
        if names is None or index.name in names
    }
    return _figures("optimize_index", dataset, {"version": dataset.version, "indexes": indexes})


def _index_names(given: Given) -> list[str] | None:
    return [given["index"]] if "index" in given else None


def _checkpoint(table: TableHandle, _: Given) -> Rows:
    """Compact the table, bring its indexes up to date, and remove old versions without a tag."""
    keep_tagged = {"error_if_tagged_old_versions": False}
    return [*_compact(table, {}), *_optimize_indexes(table, {}), *_cleanup(table, keep_tagged)]


def _figures(name: str, dataset: LanceDataset, figures: Given) -> Rows:
    return [(name, shown_place(dataset.uri), json.dumps(dict(figures)))]


def _create_scalar_index(table: TableHandle, given: Given) -> None:
    table.current().create_scalar_index(given["column"], "BTREE", given.get("name"), replace=False)


def _compact_log(table: TableHandle, given: Given) -> Rows:
    """Merge the SSTables of the write-ahead log."""
    dataset = table.current()
    limit = None if "memory_limit" not in given else number_or_text(given["memory_limit"])
    metrics = dataset.optimize.compact_log(memory_limit=limit)
    return _figures("compact_log", dataset, {"version": dataset.version, **vars(metrics)})


def _validate(table: TableHandle, _: Given) -> Rows:
    """Read the whole table, and return a row for each problem."""
    return [(problem.where, problem.what) for problem in table.current().find_problems()]


def _set_auto_cleanup(table: TableHandle, given: Given) -> None:
    values = {"interval": _INTERVAL, **given}
    for name in ("interval", "retain_versions"):
        value = values.get(name, 1)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidInputError(name, where="AUTO_CLEANUP", expected="a number above 0", found=repr(value))
    spelled = {name: _spelled(value) if name == "older_than" else str(value) for name, value in values.items()}
    table.current().update_config({_CONFIG[name]: value for name, value in spelled.items()})


def auto_cleanup_of(dataset: LanceDataset) -> Rows:
    """Return the settings of automatic cleanup, as keys and values."""
    config = dataset.config()
    settings = [(name, config[key]) for name, key in _CONFIG.items() if key in config]
    return [("enabled", "true" if INTERVAL in config else "false"), *settings]


def _spelled(value: Any) -> str:
    """Return a time span in the form that the config stores. Strings are returned unchanged."""
    span = _age(value)
    if isinstance(value, str):
        return value
    seconds = span // timedelta(seconds=1)
    rest = (span - timedelta(seconds=seconds)) // timedelta(microseconds=1)
    return f"{seconds}s {rest}us" if rest else f"{seconds}s"


def _age(value: Any) -> timedelta:
    """Return the time span of an interval, a string such as '7 days', or a number of seconds."""
    if isinstance(value, timedelta):
        return value
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return timedelta(seconds=value)
    raise InvalidInputError("older_than", expected="INTERVAL '7 days', '7 days', or seconds", found=repr(value))


COMPACT: Final = TableOperation(
    "compact",
    _compact,
    _FIGURES,
    _COMPACTION,
    note="Small fragments would be merged; dry_run = true lists them. Nothing was written.",
    words="OPTIMIZE {table}",
)
CLEANUP: Final = TableOperation(
    "cleanup",
    _cleanup,
    _FIGURES,
    _CLEANUP,
    note="Old versions would be removed; dry_run = true says how many. Nothing was removed.",
    words="VACUUM {table}",
)
OPTIMIZE_INDEXES: Final = TableOperation(
    "optimize_indexes",
    _optimize_indexes,
    _FIGURES,
    _INDEXES,
    note="Indexes would be brought up to date. Nothing was written.",
    words="ALTER INDEX {index}",
)
REINDEX: Final = replace(OPTIMIZE_INDEXES, name="", run=_reindex, result=_no_count, words="REINDEX {table}")
CHECKPOINT: Final = TableOperation(
    "",
    _checkpoint,
    _FIGURES,
    note="The table would be compacted, indexed and cleaned up. Nothing was written.",
    words="CHECKPOINT {table}",
)
SET_AUTO_CLEANUP: Final = TableOperation(
    "",
    _set_auto_cleanup,
    _success,
    {"interval": "BIGINT", **{name: _CLEANUP[name] for name in ("older_than", "retain_versions", *ALIASES)}},
    note="Settings of the table would change. Nothing was written.",
    words="ALTER TABLE {table} SET AUTO_CLEANUP",
)
UNSET_AUTO_CLEANUP: Final = replace(
    SET_AUTO_CLEANUP,
    run=lambda table, _: table.current().optimize.disable_auto_cleanup(),
    parameters={},
    words="ALTER TABLE {table} UNSET AUTO_CLEANUP",
)
_OF_FILES: Final = (
    COMPACT,
    CLEANUP,
    OPTIMIZE_INDEXES,
    REINDEX,
    CHECKPOINT,
    SET_AUTO_CLEANUP,
    UNSET_AUTO_CLEANUP,
    TableOperation("compact_log", _compact_log, _FIGURES, {"memory_limit": "VARCHAR"}),
    TableOperation(
        "validate", _validate, _PROBLEMS, note="The whole table would be checked. Nothing was read.", writes=False
    ),
    # Names of DuckDB's `lance` extension.
    TableOperation("compact_files", _compact, _count),
    TableOperation(
        "cleanup_old_versions",
        _cleanup,
        _count,
        {name: _CLEANUP[name] for name in ("older_than_seconds", "delete_unverified")},
        required=2,
    ),
    TableOperation(
        "create_scalar_index",
        _create_scalar_index,
        _count,
        {"column": "VARCHAR", "name": "VARCHAR"},
        2,
        ("column",),
    ),
)


# Settings and metadata.


def _of_metadata(
    kind: str, update: Callable[[LanceDataset, Given, Given], object], *more: str
) -> Iterator[TableOperation]:
    """Yield the operations that set and unset a key.

    Args:
        kind: The kind of metadata, as in the procedure's name.
        update: Changes a table. It gets the table, the new values and the operation's arguments.
        more: Names of the arguments before the key.
    """

    def run(table: TableHandle, given: Given) -> None:
        update(table.current(), {given["key"]: given.get("value")}, given)

    for name, names in ((f"set_{kind}", (*more, "key", "value")), (f"unset_{kind}", (*more, "key"))):
        yield TableOperation(name, run, _count, dict.fromkeys(names, "VARCHAR"), len(names), names)


_OF_METADATA: Final = (
    *_of_metadata("config", lambda table, updates, _: table.update_config(updates)),
    *_of_metadata("table_metadata", lambda table, updates, _: table.update_metadata(updates)),
    *_of_metadata("schema_metadata", lambda table, updates, _: table.update_schema_metadata(updates)),
    *_of_metadata(
        "column_metadata",
        lambda table, updates, given: table.update_field_metadata({given["column"]: updates}),
        "column",
    ),
)


# Versions, tags and branches. A version is a number, a tag, a branch or 'branch:number'. Defaults to the newest.


def _version(table: TableHandle, given: Given) -> LanceDataset:
    if "version" not in given:
        return table.current()
    return VersionChoice(given["version"]).open(table.uri, table.storage_options)


def _of_references(
    name: str, change: Callable[[LanceDataset, str, tuple[str, int]], object], *parameters: str
) -> TableOperation:
    """Return the operation that changes a tag or branch. The first argument is its name."""

    def run(table: TableHandle, given: Given) -> None:
        dataset = _version(table, given)
        change(dataset, given[parameters[0]], (dataset.handle.snapshot.branch or MAIN, dataset.version))

    return TableOperation(name, run, _success, dict.fromkeys(parameters, "VARCHAR"), 1, parameters[:1])


def _restore(table: TableHandle, given: Given) -> Rows:
    """Restore a version as a new version, and return the new version's number."""
    restored, newest = _version(table, given), table.current().handle.snapshot
    if restored.handle.snapshot.branch != newest.branch:
        raise InvalidInputError(
            "the version belongs to another branch",
            where=f"{PREFIX}restore",
            expected=f"one of {newest.branch or 'main'}",
            found=given["version"],
        )
    restored.restore(commit_message=given.get("message"))
    table.move_to(restored.handle.snapshot)
    return [(restored.version,)]


_PROPERTIES: Final = {"author": COMMIT_AUTHOR, "message": COMMIT_MESSAGE, "extra_info": "extra_info"}


def _set_commit_message(block: TransactionBlock, given: Given) -> None:
    """Store the properties for the commit."""
    block.properties = {_PROPERTIES[name]: text for name, text in given.items()}


_OF_VERSIONS: Final = (
    _of_references("create_tag", lambda table, name, at: table.tags.create(name, at), "tag", "version"),
    _of_references("update_tag", lambda table, name, at: table.tags.update(name, at), "tag", "version"),
    _of_references("delete_tag", lambda table, name, _: table.tags.delete(name), "tag"),
    _of_references("create_branch", lambda table, name, at: table.create_branch(name, at), "branch", "version"),
    _of_references("delete_branch", lambda table, name, _: table.branches.delete(name), "branch"),
    TableOperation("restore", _restore, _VERSION, dict.fromkeys(("version", "message"), "VARCHAR"), 1, ("version",)),
    TableOperation(
        "set_commit_message",
        _set_commit_message,
        _success,
        dict.fromkeys(_PROPERTIES, "VARCHAR"),
        2,
        note="The commit of the transaction would have the message. Nothing was written.",
        in_transaction=True,
    ),
)

OPERATIONS: Final = (*_OF_FILES, *_OF_METADATA, *_OF_VERSIONS)
PROCEDURES: Final = {f"{PREFIX}{operation.name}": operation for operation in OPERATIONS if operation.name}
"""The operations that CALL and SELECT … FROM run, by name."""
