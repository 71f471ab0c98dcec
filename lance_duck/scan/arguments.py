"""Names and types of the keyword arguments of scans, for editors and type checkers. `ScanOptions` documents them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from lance_duck.arguments import has_defaults
from lance_duck.scan.evaluator.types import Parameters
from lance_duck.scan.filters import FilterLike
from lance_duck.scan.options import HasFragment, OrderBy, ScanOptions
from lance_duck.scan.projection import ColumnsLike
from lance_duck.scan.statistics import StatisticsCallback


@has_defaults(ScanOptions)
class ScanArguments(TypedDict, total=False):
    """Arguments that `scanner` accepts only by keyword."""

    parameters: Parameters
    batch_size_bytes: int | None
    strict_batch_size: bool | None
    fragments: Iterable[HasFragment | int] | None
    with_row_id: bool | None
    with_row_address: bool | None
    include_deleted_rows: bool | None
    order_by: OrderBy | None
    blob_handling: str | None
    use_threads: bool
    batch_readahead: int | None
    fragment_readahead: int | None
    io_buffer_size: int | None
    scan_in_order: bool | None
    use_stats: bool | None
    use_scalar_index: bool | None
    prefilter: bool | None
    late_materialization: bool | list[str] | None
    disable_scoring_autoprojection: bool | None
    cache_metadata: bool | None
    row_addr_allowlist: bytes | Iterable[int] | None
    row_addr_blocklist: bytes | Iterable[int] | None
    scan_stats_callback: StatisticsCallback | None
    fast_search: bool | None
    full_text_query: Any
    hybrid: Mapping[str, Any] | None
    rerank: Any


@has_defaults(ScanOptions)
class CountArguments(ScanArguments, total=False):
    """All arguments of `scanner` except `columns` and `filter`."""

    limit: int | None
    offset: int | None
    nearest: Mapping[str, Any] | None
    batch_size: int | None


@has_defaults(ScanOptions)
class TakeArguments(CountArguments, total=False):
    """All arguments of `scanner` except `columns`."""

    filter: FilterLike | None


@has_defaults(ScanOptions)
class HeadArguments(ScanArguments, total=False):
    """All arguments of `scanner` except `limit`."""

    columns: ColumnsLike | None
    filter: FilterLike | None
    offset: int | None
    nearest: Mapping[str, Any] | None
    batch_size: int | None


@has_defaults(ScanOptions)
class SearchArguments(ScanArguments, total=False):
    """Keyword arguments of a search: options of `scanner`, and keys of its options `nearest` and `hybrid`.

    `nearest` and its keys `column`, `q` and `k` are not included.
    """

    columns: ColumnsLike | None
    filter: FilterLike | None
    limit: int | None
    offset: int | None
    batch_size: int | None
    metric: str | None
    distance_type: str | None
    nprobes: int | None
    minimum_nprobes: int | None
    maximum_nprobes: int | None
    ef: int | None
    recall: float | None
    refine_factor: int | None
    use_index: bool | None
    exact_distance: bool | None
    distance_range: Sequence[float | None] | None
    query_parallelism: int | None
    approx_mode: str | None
    search_effort: Any
    method: str | None
    alpha: float | None
    oversample_factor: int | None
