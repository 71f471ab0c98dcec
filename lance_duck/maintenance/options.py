"""Options of a compaction, with pylance's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from os import cpu_count
from typing import Any, Final, TypedDict

from lance_duck.arguments import byte_count, has_defaults, refuse_unknown, unknown_value
from lance_duck.errors import InvalidInputError, UnsupportedError, WrongTypeError
from lance_duck.maintenance.costs import GROUP_BYTES, LEAST_GROUP_BYTES
from lance_duck.scan.options import ColumnOrdering, OrderBy, ScanOptions

CONFIG_PREFIX: Final = "lance.compaction."
TARGET_ROWS: Final = 1 << 20

_MODES: Final = ("reencode", "try_binary_copy", "force_binary_copy")
_COUNTS: Final = (
    *("target_rows_per_fragment", "max_rows_per_group", "max_bytes_per_file", "num_threads", "batch_size"),
    *("io_buffer_size", "binary_copy_read_batch_bytes", "max_source_fragments", "max_source_rows", "max_source_bytes"),
)
_FROM_CONFIG: Final = frozenset(
    {
        *("target_rows_per_fragment", "max_rows_per_group", "max_bytes_per_file", "materialize_deletions"),
        *("materialize_deletions_threshold", "defer_index_remap", "batch_size", "compaction_mode"),
        *("binary_copy_read_batch_bytes", "max_source_fragments", "max_source_rows", "max_source_bytes"),
        "data_storage_version",
    }
)


@dataclass(frozen=True, kw_only=True)
class CompactionOptions:
    """Settings of a compaction.

    Attributes:
        target_rows_per_fragment: Fragments with fewer rows are joined with adjacent fragments.
        materialize_deletions: Whether fragments with many deleted rows are rewritten.
        materialize_deletions_threshold: Minimum share of deleted rows for `materialize_deletions`, from 0 to 1.
        max_bytes_per_file: Size at which a new file ends, in bytes. Default: the default of `write_dataset`.
        num_threads: Number of groups that are written concurrently. Default: the number of cores.
        batch_size: Number of rows per read.
        memory_limit: Approximate memory limit for rows in flight, in bytes or as a string such as "512MB". A lower
            limit means fewer concurrent groups and smaller batches. A single larger row is allowed. The minimum is
            1 MiB. Default: unlimited. The name follows DuckDB's setting.
        defer_index_remap: Whether indexes over the fragments are not rewritten, and a fragment reuse index maps their
            addresses. Not supported for tables with stable row ids. If pylance 14 later compacts the table without this
            option, it loses rows of B-tree, n-gram and full-text indexes. This package only detects the loss in
            B-trees.
        remap_indices: Whether indexes are rewritten with new addresses. Vector indexes that this package cannot read
            are deferred. If any other index cannot be read, its fragments are not compacted. False: only indexes that
            identify rows by stable row id cover the new fragments. pylance does not have this option.
        compaction_mode: "reencode", or "try_binary_copy", which also re-encodes.
        max_source_fragments: Maximum number of fragments to compact in one run, oldest first. Default: unlimited.
        max_source_rows: Maximum number of live rows to compact in one run. Default: unlimited.
        max_source_bytes: Maximum size of data files to compact in one run, in bytes. Default: unlimited.
        excluded_fragment_ids: Ids of fragments that are not compacted.
        data_storage_version: File version of new files. Default: the table's version, or "2.2" for tables of 0.1 or
            2.3. A table that leaves file format 0.1 is rewritten in one commit, regardless of the limits. "0.1" keeps
            that format.
        max_overlays_per_fragment: Fragments with more overlays than this are rewritten, regardless of their size. 0
            rewrites all fragments with an overlay. pylance has this option under a different name.
        max_rows_per_group: Batch size in files of format 0.1, in rows. Files of newer formats are not divided into
            batches.
        order_by: Columns to sort the rows by, as in `LanceDataset.scanner`: names, or `ColumnOrdering` for a direction.
            Fragments that the same indexes cover are sorted together, regardless of their size and of the limits.
            Fragments whose rows are in order are compacted without it. With more rows than `memory_limit`, by default
            512 MiB, temporary files are used. pylance does not have this option.
        io_buffer_size: Without effect, but validated. The columns determine the size of reads.
        binary_copy_read_batch_bytes: Without effect, but validated. Pages are re-encoded, not copied.

    Raises:
        InvalidInputError: A value is not a number, or out of range.
        UnsupportedError: `compaction_mode` is "force_binary_copy".
    """

    target_rows_per_fragment: int = TARGET_ROWS
    max_rows_per_group: int = 1024
    max_bytes_per_file: int | None = None
    materialize_deletions: bool = True
    materialize_deletions_threshold: float = 0.1
    num_threads: int | None = None
    batch_size: int | None = None
    memory_limit: int | str | None = None
    io_buffer_size: int | None = None
    defer_index_remap: bool = False
    compaction_mode: str | None = None
    binary_copy_read_batch_bytes: int | None = None
    max_overlays_per_fragment: int = 10
    max_source_fragments: int | None = None
    max_source_rows: int | None = None
    max_source_bytes: int | None = None
    excluded_fragment_ids: tuple[int, ...] = ()
    data_storage_version: str | None = None
    remap_indices: bool = True
    order_by: tuple[ColumnOrdering | str, ...] = ()

    def __post_init__(self) -> None:
        for name in _COUNTS:
            _check_count(name, getattr(self, name))
        _check_count("max_overlays_per_fragment", self.max_overlays_per_fragment, least=0)
        self.memory_bytes  # noqa: B018  refuses what is not a number of bytes
        threshold = self.materialize_deletions_threshold
        if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 <= threshold <= 1:
            raise InvalidInputError("materialize_deletions_threshold", expected="0 to 1", found=repr(threshold))
        if self.compaction_mode not in (None, *_MODES):
            raise unknown_value("compaction_mode", self.compaction_mode, _MODES)
        if self.compaction_mode == "force_binary_copy":
            raise UnsupportedError(
                "compaction cannot be forced to copy pages", remedy="use compaction_mode='try_binary_copy'"
            )
        if self.defer_index_remap and not self.remap_indices:
            raise InvalidInputError("defer_index_remap needs remap_indices", where="compaction")
        if self.orderings and self.defer_index_remap:
            raise UnsupportedError(
                "a fragment reuse index cannot express sorted rows",
                where="compaction",
                found="order_by with defer_index_remap",
                remedy="leave out one of them",
            )

    @property
    def orderings(self) -> tuple[ColumnOrdering, ...]:
        """Columns to sort by, with their directions."""
        return ScanOptions(order_by=self.order_by).orderings

    @property
    def memory_bytes(self) -> int | None:
        """The memory limit in bytes."""
        return None if self.memory_limit is None else byte_count(self.memory_limit, "memory_limit")

    @property
    def writers(self) -> int:
        """Number of groups that are written concurrently."""
        most = self.num_threads or cpu_count() or 1
        limit = self.memory_bytes
        return most if limit is None else max(1, min(most, limit // GROUP_BYTES))

    @property
    def group_bytes(self) -> int | None:
        """Maximum size of one group's rows in flight, in bytes, or None if unlimited."""
        limit = self.memory_bytes
        return None if limit is None else max(LEAST_GROUP_BYTES, limit // self.writers)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON-compatible values."""
        values = {name: value for name, value in asdict(self).items() if name != "order_by"}
        return values | {"excluded_fragment_ids": list(self.excluded_fragment_ids)}


@has_defaults(CompactionOptions)
class CompactionArguments(TypedDict, total=False):
    """Keyword arguments of a compaction, described in `CompactionOptions`. None selects the default."""

    target_rows_per_fragment: int | None
    max_rows_per_group: int | None
    max_bytes_per_file: int | None
    materialize_deletions: bool | None
    materialize_deletions_threshold: float | None
    num_threads: int | None
    batch_size: int | None
    memory_limit: int | str | None
    io_buffer_size: int | None
    defer_index_remap: bool | None
    compaction_mode: str | None
    binary_copy_read_batch_bytes: int | None
    max_overlays_per_fragment: int | None
    max_source_fragments: int | None
    max_source_rows: int | None
    max_source_bytes: int | None
    excluded_fragment_ids: Iterable[int] | None
    data_storage_version: str | None
    remap_indices: bool | None
    order_by: OrderBy | None


def compaction_options(options: Mapping[str, Any] | None, config: Mapping[str, str] | None = None) -> CompactionOptions:
    """Combine the settings: options override the table config, and the config overrides the defaults.

    Args:
        options: Options by name. None selects the config or default. Further keys of pylance's JSON are ignored.
        config: Config of the table, with keys such as "lance.compaction.target_rows_per_fragment".

    Raises:
        InvalidInputError: A name is unknown, or a value is invalid.
    """
    declared = {field.name: field for field in fields(CompactionOptions)}
    values = {name: value for name, value in (options or {}).items() if value is not None}
    if values.pop("enable_binary_copy_force", False):
        values.setdefault("compaction_mode", "force_binary_copy")
    for name in [name for name in values if name not in declared]:
        if name not in _OTHERS:
            refuse_unknown([name], declared, "compaction", "option")
        del values[name]
    if "excluded_fragment_ids" in values:
        given_ids = values["excluded_fragment_ids"]
        if isinstance(given_ids, str | bytes) or not isinstance(given_ids, Iterable):
            expected = "a list of fragment ids"
            raise WrongTypeError("excluded_fragment_ids", where="compaction", expected=expected, found=repr(given_ids))
        values["excluded_fragment_ids"] = tuple(given_ids)
    if "order_by" in values:
        values["order_by"] = ScanOptions(order_by=values["order_by"]).orderings
    configured = {
        key.removeprefix(CONFIG_PREFIX): text
        for key, text in (config or {}).items()
        if key.startswith(CONFIG_PREFIX) and key.removeprefix(CONFIG_PREFIX) in _FROM_CONFIG
    }
    settings = {name: _parsed(name, text) for name, text in configured.items() if name not in values}
    return replace(CompactionOptions(), **(settings | values))


_OTHERS: Final = frozenset({"index_remap_mode", "enable_binary_copy", "has_eager_remappable_index"})


def _check_count(name: str, value: object, least: int = 1) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < least:
        expected = "a positive whole number" if least else "a whole number from 0 on"
        raise InvalidInputError(name, where="compaction", expected=expected, found=repr(value))


def _parsed(name: str, text: str) -> Any:
    where = f"config {CONFIG_PREFIX}{name}"
    if name in ("materialize_deletions", "defer_index_remap"):
        if text.lower() not in ("true", "false"):
            raise InvalidInputError("not a boolean", where=where, expected="true or false", found=repr(text))
        return text.lower() == "true"
    if name in ("compaction_mode", "data_storage_version"):
        return text
    try:
        return float(text) if name == "materialize_deletions_threshold" else int(text)
    except ValueError:
        raise InvalidInputError("not a number", where=where, found=repr(text)) from None
