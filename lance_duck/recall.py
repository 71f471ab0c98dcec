"""recall_report: measures the recall and the latency of searches through a vector index."""

from __future__ import annotations

import html
import itertools
import statistics
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arguments import checked_call, checked_calls, declared_arguments, shortened
from lance_duck.dataset import LanceDataset
from lance_duck.errors import InvalidInputError, UnsupportedError, WrongTypeError, install_extra
from lance_duck.index.vector.vectors import vectors_of
from lance_duck.scan.arguments import ScanArguments
from lance_duck.scan.filters import FilterLike
from lance_duck.scan.nearest.options import Nearest
from lance_duck.scan.nearest.route import Route, route

NPROBES: Final = (1, 2, 5, 10, 20, 50)

_EF: Final = (1, 2, 5, 10)  # default `ef` for graphs, as multiples of k
_EXACT_RUNS: Final = 5
_WIDEST: Final = 16  # multiple of k above which ties are no longer resolved
_COLUMNS: Final = pa.schema(
    {
        "nprobes": pa.int64(),
        "ef": pa.int64(),
        "refine_factor": pa.int64(),
        "recall": pa.float64(),
        "worst": pa.float64(),
        "latency_ms": pa.float64(),
    }
)
_ARGUMENTS: Final = ("nprobes", "ef", "refine_factor")
_DEFAULT: Final = "as searched by default"

Number = int | None
Numbers = int | Sequence[int | None] | None
Ids = list[NDArray[np.uint64]]


@checked_calls
@dataclass(frozen=True, eq=False, repr=False)
class RecallReport:
    """Recall and latency of the default search, of an index search with each setting, and of the exact search.

    Attributes:
        table: A row for each setting. `nprobes`, `ef` and `refine_factor` are the arguments of `nearest`, or null if
            not given. All three are null in the first row, which reaches the promised recall, and in the last row,
            which is the exact search. `recall` is the average share of true neighbours found, and
            `worst` is the share for the worst query. `latency_ms` is the median time of a single query, in
            milliseconds.
        title: Description of the measurement, in one line.
    """

    table: pa.Table
    title: str

    def choose(self, recall: float = 0.95) -> dict[str, int] | None:
        """Return the fastest setting with a given recall, as arguments of `nearest`, or None if none reaches it."""
        rows = [row for row in self.table.to_pylist() if row["recall"] >= recall and _is_given(row)]
        if not rows:
            return None
        best = min(rows, key=lambda row: row["latency_ms"])
        return {name: best[name] for name in _ARGUMENTS if best[name] is not None}

    def __str__(self) -> str:
        cells = [self._names, *self._cells()]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
        return "\n".join([self.title, *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def row(tag: str, cells: Iterable[str]) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(row("td", cells) for cells in self._cells())
        head = row("th", self._names)
        caption = f"<caption>{html.escape(self.title)}</caption>"
        return f"<table>{caption}<thead>{head}</thead><tbody>{body}</tbody></table>"

    def plot(self, ax: Any = None) -> Any:
        """Plot latency against recall with matplotlib: a point for each nprobes, a line for each ef and refine_factor.

        If nprobes is the same for all settings, there is a point for each ef or refine_factor.

        Args:
            ax: matplotlib `Axes` to draw on. Default: new axes.

        Returns:
            The axes.

        Raises:
            UnsupportedError: matplotlib is not installed.
        """
        try:
            from matplotlib import pyplot
        except ImportError as error:
            remedy = f"pip install matplotlib, or {install_extra('notebook')}"
            raise UnsupportedError("matplotlib is not installed", where="RecallReport.plot", remedy=remedy) from error
        axes = pyplot.subplots()[1] if ax is None else ax
        default, *rows, exact = self.table.to_pylist()
        lines: dict[str, list[dict[str, Any]]] = {}
        along = next((name for name in _ARGUMENTS if len({row[name] for row in rows}) > 1), _ARGUMENTS[0])
        for row in rows:
            labels = (f"{name} {row[name]}" for name in _ARGUMENTS if name != along and row[name] is not None)
            lines.setdefault(", ".join(labels) or "index", []).append(row)
        for name, points in lines.items():
            line = axes.plot([p["recall"] for p in points], [p["latency_ms"] for p in points], "o-", label=name)[0]
            for point in points:
                axes.annotate(_shown(point[along]), (point["recall"], point["latency_ms"]), color=line.get_color())
        axes.plot([default["recall"]], [default["latency_ms"]], "*", label=_DEFAULT)
        axes.axhline(exact["latency_ms"], linestyle="--", color="grey", label="exact")
        axes.set(xlabel=f"recall, by {along}", ylabel="ms per query", yscale="log")
        axes.set_title(self.title.replace(", ", ",\n", 1), fontsize="medium")
        axes.legend()
        return axes

    @property
    def _names(self) -> list[str]:
        names = [name for name in _ARGUMENTS if self.table[name].null_count < len(self.table)]
        return [*(names or _ARGUMENTS[:1]), *self.table.column_names[len(_ARGUMENTS) :]]

    def _cells(self) -> Iterator[list[str]]:
        default, *rows, exact = self.table.to_pylist()
        yield [_DEFAULT, *(_shown(default[name]) for name in self._names[1:])]
        yield from ([_shown(row[name]) for name in self._names] for row in rows)
        yield ["exact", *(_shown(exact[name]) for name in self._names[1:])]


@checked_call
def recall_report(
    ds: LanceDataset,
    column: str,
    queries: Any = None,
    k: int = 10,
    nprobes: Numbers = NPROBES,
    ef: Numbers = None,
    refine_factor: Numbers = None,
    sample: int = 100,
    filter: FilterLike | None = None,  # noqa: A002
    *,
    metric: str | None = None,
    seed: int = 0,
    **options: Unpack[ScanArguments],
) -> RecallReport:
    """Compare searches through the index of a column with the exact search.

    The first search is the default search, which reaches the promised recall. The others use each combination of
    settings. A neighbour also counts as found if the search returns a different row at the same distance. Queries run
    one by one.

    Args:
        ds: The table.
        column: The vector column.
        queries: Query vectors, in any form that "q" of `nearest` accepts. None selects random vectors of the column. A
            random vector's own row does not count as its neighbour.
        k: Number of neighbours of each query.
        nprobes: Numbers of partitions to search. Numbers above the partition count search all partitions.
        ef: Candidate counts of a graph search. Default: k times 1, 2, 5 and 10 if the index has graphs.
        refine_factor: Numbers of candidates to rerank with their full vectors, as multiples of k. Default: no
            reranking.
        sample: Number of random queries.
        filter: Condition for the neighbours: see `scanner`.
        metric: Metric: see `nearest`. Default: the metric of the index.
        seed: Seed of the sample.
        options: Other arguments of `scanner` (prefilter, fast_search, …).

    Raises:
        WrongTypeError: `ds` is not a table of this library, or an argument does not exist.
        InvalidInputError: The column lacks a usable index, the queries are empty, or an argument is invalid.
    """
    if not isinstance(ds, LanceDataset):
        remedy = "open the table with lance_duck.dataset(path)"
        found = f"{shortened(ds)} of type {type(ds).__name__}"
        raise WrongTypeError("ds", where="recall_report", expected="LanceDataset", found=found, remedy=remedy)
    declared_arguments(recall_report, options, ScanArguments)
    arguments = {"column": column, "k": k, "metric": metric}
    nearest, vectors, own = _asked(ds, arguments, queries, sample, seed)
    path = _way(ds, nearest, column)
    k = nearest.k
    search = _Searches(ds, {**arguments, "k": k, "metric": path.metric}, {**options, "filter": filter}, vectors, own)
    truth = search.truth()
    rows = []
    settings = [each for each in _settings(ds, path, k, nprobes, ef, refine_factor) if _is_given(each)]
    for setting in [dict.fromkeys(_ARGUMENTS), *settings]:
        result, latency = search.one_by_one(setting)
        shares = [_share(ids, *true) for ids, true in zip(result, truth, strict=True) if true[0]]
        if not shares:
            raise InvalidInputError("the search does not return rows for any query", where="recall_report")
        rows.append({**setting, "recall": statistics.fmean(shares), "worst": min(shares), "latency_ms": latency})
    rows.append({"recall": 1.0, "worst": 1.0, "latency_ms": search.exact_latency()})
    return RecallReport(pa.Table.from_pylist(rows, _COLUMNS), _title(ds, path, column, k, len(vectors)))


class _Searches:
    """Searches for the same queries with different settings. Rows are identified by `_rowid`."""

    def __init__(
        self,
        ds: LanceDataset,
        nearest: dict[str, Any],
        options: dict[str, Any],
        queries: NDArray[Any],
        own: NDArray[np.uint64] | None,
    ) -> None:
        self._ds, self._nearest, self._options, self._queries, self._own = ds, nearest, options, queries, own
        self._k: int = nearest["k"]

    def truth(self) -> list[tuple[int, NDArray[np.uint64]]]:
        """Return (number of true neighbours, candidate rows including ties) for each query."""
        wide = 2 * self._k + 1
        while True:
            neighbors = self._ask(self._queries, {"use_index": False}, wide)
            result, ends_in_a_tie = self._true(neighbors)
            if not ends_in_a_tie or wide > _WIDEST * self._k:
                return result
            wide *= 8

    def _true(self, neighbors: pa.Table) -> tuple[list[tuple[int, NDArray[np.uint64]]], bool]:
        starts = np.searchsorted(neighbors["query_index"].to_numpy(), np.arange(len(self._queries) + 1)).tolist()
        ids, distances = neighbors["_rowid"].to_numpy(), neighbors["_distance"].to_numpy()
        result, ends_in_a_tie = [], False
        for number, (start, end) in enumerate(itertools.pairwise(starts)):
            near, far = ids[start:end], distances[start:end]
            if self._own is not None:
                far, near = far[near != self._own[number]], near[near != self._own[number]]
            count = min(self._k, len(near))
            result.append((count, near[far <= far[count - 1]] if count else near))
            ends_in_a_tie |= len(near) > count and far[-1] == far[count - 1]
        return result, ends_in_a_tie

    def one_by_one(self, setting: dict[str, Number]) -> tuple[Ids, float]:
        """Return the neighbours of each query, and the median time of a search, in milliseconds."""
        self._ask(self._queries[0], setting)
        return self._timed(self._queries, setting)

    def exact_latency(self) -> float:
        """Return the median time of the exact search for a single query, in milliseconds."""
        return self._timed(self._queries[:_EXACT_RUNS], {"use_index": False})[1]

    def _timed(self, queries: NDArray[Any], setting: dict[str, Any]) -> tuple[Ids, float]:
        results, times = [], []
        for number, query in enumerate(queries):
            begin = time.perf_counter()
            table = self._ask(query, setting)
            times.append(time.perf_counter() - begin)
            ids = table["_rowid"].to_numpy()
            results.append((ids if self._own is None else ids[ids != self._own[number]])[: self._k])
        return results, statistics.median(times) * 1e3

    def _ask(self, q: NDArray[Any], setting: dict[str, Any], k: int | None = None) -> pa.Table:
        k = (self._k if self._own is None else self._k + 1) if k is None else k
        nearest = {**self._nearest, **setting, "q": q, "k": k}
        return self._ds.to_table(columns=["_rowid", "_distance"], nearest=nearest, **self._options)


def _asked(
    ds: LanceDataset, arguments: dict[str, Any], queries: Any, sample: int, seed: int
) -> tuple[Nearest, NDArray[Any], NDArray[np.uint64] | None]:
    """Return the validated search, its queries, and the rows of random queries. The rows are None for given queries."""
    nearest = Nearest.of(arguments, ds.handle.table)
    if nearest.column.is_many:
        raise UnsupportedError(
            "recall cannot be measured for columns with several vectors per row", where=f"column {nearest.column.path}"
        )
    if queries is not None:
        return nearest, nearest.queries({"q": queries}).vectors, None
    if isinstance(sample, bool) or not isinstance(sample, int) or sample < 1:
        raise InvalidInputError("sample", where="recall_report", expected="at least 1", found=repr(sample))
    dim = nearest.column.dim
    vectors, rows = _drawn(ds, arguments["column"], sample, seed)
    if not len(vectors):
        raise InvalidInputError(
            f"the column does not contain vectors of length {dim} to search for",
            where=f"column {arguments['column']}",
            expected="at least one",
            found="none",
        )
    return nearest, nearest.queries({"q": vectors}).vectors, rows


def _drawn(ds: LanceDataset, column: str, sample: int, seed: int) -> tuple[NDArray[Any], NDArray[np.uint64]]:
    """Return random vectors that are valid queries for any metric, and their rows."""
    rng, count = np.random.default_rng(seed), ds.count_rows()
    size = sample
    while True:
        size = min(count, 2 * size)
        positions = rng.choice(count, size, replace=False)
        rows = ds.take(positions, columns=[column, "_rowid"])
        vectors = vectors_of(rows.column(0), metric="cosine")
        usable = np.flatnonzero(vectors.usable)[:sample]
        if len(usable) == sample or size == count:
            return vectors.values[usable], rows["_rowid"].to_numpy()[usable]


def _way(ds: LanceDataset, nearest: Nearest, column: str) -> Route:
    path = route(ds.handle.snapshot, nearest, frozenset(fragment.id for fragment in ds.handle.snapshot.fragments))
    if path.index is None:
        raise InvalidInputError(
            "the column does not have a vector index to measure",
            where=f"column {column}",
            found="; ".join(path.reasons),
            remedy="build one: ds.create_index(column, …)",
        )
    return path


def _settings(
    ds: LanceDataset, path: Route, k: int, nprobes: Numbers, ef: Numbers, refine_factor: Numbers
) -> list[dict[str, Number]]:
    figures = _figures(ds, path)
    most = max(figure["num_partitions"] for figure in figures)
    probes = [None if each is None else min(each, most) for each in _several(nprobes)]
    if ef is None and any("HNSW" in figure["index_type"] for figure in figures):
        ef = [k * times for times in _EF]
    kinds = (dict.fromkeys(probes), _several(ef), _several(refine_factor))
    by_line = itertools.product(kinds[2], kinds[1], kinds[0])
    return [dict(zip(_ARGUMENTS, reversed(each), strict=True)) for each in by_line]


def _title(ds: LanceDataset, path: Route, column: str, k: int, queries: int) -> str:
    figures = _figures(ds, path)
    kinds = "/".join(dict.fromkeys(figure["index_type"] for figure in figures))
    partitions = "/".join(str(figure["num_partitions"]) for figure in figures)
    rows = ds.count_rows()
    snapshot = ds.handle.snapshot
    num_open = sum(snapshot.num_rows(fragment) for fragment in snapshot.fragments if fragment.id in path.open)
    some = f"{partitions} partition{'' if partitions == '1' else 's'}"
    text = f"recall of {k} neighbours by {column}: {kinds}, {path.metric}, {some}, {rows:,} rows"
    return text + (f" ({num_open:,} not in the index)" if num_open else "") + f", {queries} queries"


def _figures(ds: LanceDataset, path: Route) -> list[dict[str, Any]]:
    """Return the statistics of the searched segments."""
    assert path.index is not None
    uuids = {str(segment.uuid) for segment, _ in path.segments}
    figures: list[dict[str, Any]] = ds.index_statistics(path.index.name)["indices"]
    return [figure for figure in figures if figure["uuid"] in uuids]


def _is_given(setting: Mapping[str, Any]) -> bool:
    """Return whether a setting has an argument. Without arguments, the search chooses its settings."""
    return any(setting[name] is not None for name in _ARGUMENTS)


def _several(numbers: Numbers) -> list[Number]:
    if numbers is None or isinstance(numbers, int):
        return [numbers]
    return list(numbers) or [None]


def _share(nearest: NDArray[np.uint64], count: int, true: NDArray[np.uint64]) -> float:
    return min(int(np.isin(nearest, true).sum()), count) / count


def _shown(value: float | None) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    return "" if value is None else str(value)
