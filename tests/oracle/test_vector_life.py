"""Random vector tables, changed by both libraries and checked after every change."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import lance
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from oracle.cases import Cases

import lance_duck as ld
from lance_duck.index.vector import build
from lance_duck.index.vector.search import graph_partition
from lance_duck.index.vector.training import imbalance
from lance_duck.scan.nearest import search

CASE_KIND = "nearest"
SEED = int(os.environ.get("LANCE_DUCK_SEED", "5"))
STEPS = 7
LIVES = 5
LIVES_OF_A_NIGHT = 240
LARGER = 30  # row count factor, used in one of this many nightly runs

KINDS = ("IVF_FLAT", "IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_SQ", "IVF_HNSW_FLAT", "IVF_HNSW_PQ")
FILTERS = (None, None, "g < 100", "g < 20", "g < 4", "g = 7", "g = 7 AND key % 50 = 3", "g > 900")  # 50 % to 0.01 %
MEASURES = {"l2": "array_distance", "cosine": "array_cosine_distance", "dot": "array_negative_inner_product"}
ALL_OF_IT = {"nprobes": 1000, "ef": 300, "refine_factor": 20}
ENOUGH = 0.9

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:lance"),
    pytest.mark.filterwarnings("ignore:(?s).*did not follow rows that had moved:lance_duck.IndexWarning"),
]


@dataclass
class Life:
    """A table of vectors and its next writer.

    Attributes:
        path: Table path.
        rng: Random generator.
        stable: Whether the table has stable row ids.
        metric: Index metric.
        kind: Index kind.
        centres: Cluster centres of the vectors.
        type: Type of vector elements.
        query: Last query vector.
        scale: Row count factor.
        said: Log of changes, for messages.
    """

    path: str
    rng: np.random.Generator
    stable: bool
    metric: str
    kind: str
    centres: NDArray[np.float32]
    type: pa.DataType
    query: NDArray[np.float32]
    scale: int = 1
    next_key: int = 0
    said: list[str] = field(default_factory=list)

    @property
    def dim(self) -> int:
        return self.centres.shape[1]

    def writer(self) -> Any:
        return ld if self.rng.random() < 0.5 else lance

    def open(self) -> Any:
        writer = self.writer()
        self.said[-1] += " by us" if writer is ld else " by pylance"
        return writer.dataset(self.path)

    def vectors(self, count: int) -> pa.Array:
        """Vectors near the centres, and near the last query; some that cannot be searched."""
        values = self.points(count)
        kinds = self.rng.random(count)
        near = kinds < 0.1
        values[near] = self.query + 0.1 * values[near]
        values[(kinds > 0.1) & (kinds < 0.12), 0] = np.nan
        values[(kinds > 0.12) & (kinds < 0.14)] = 0
        values[(kinds > 0.14) & (kinds < 0.145), -1] = np.inf
        numbers = pa.array(values.ravel().astype(self.type.to_pandas_dtype()), self.type)
        return pa.FixedSizeListArray.from_arrays(numbers, self.dim, mask=pa.array(kinds > 0.98))

    def points(self, count: int) -> NDArray[np.float32]:
        noise = self.rng.standard_normal((count, self.dim))
        return (self.centres[self.rng.integers(0, len(self.centres), count)] + noise).astype(np.float32)

    def rows(self, keys: Any) -> pa.Table:
        keys = pa.array(keys, pa.int64())
        return pa.table({"key": keys, "g": self.rng.integers(0, 200, len(keys)), "vec": self.vectors(len(keys))})

    def fresh(self, count: int) -> pa.Table:
        keys = range(self.next_key, self.next_key + count)
        self.next_key += count
        return self.rows(keys)

    def some_keys(self, dataset: Any, share: float) -> pa.Array:
        keys = dataset.to_table(columns=["key"])["key"].combine_chunks()
        return keys.filter(pa.array(self.rng.random(len(keys)) < share))

    def neighbours(self, count: int) -> list[int]:
        """Return the keys nearest to the last query."""
        found = ld.dataset(self.path).search(self.query, count, "vec", columns=["key"])
        keys: list[int] = found["key"].to_pylist()
        return keys


def append(life: Life) -> None:
    life.open().insert(life.fresh(life.scale * int(life.rng.integers(1, 90))))


def delete_nearest(life: Life) -> None:
    keys = life.neighbours(int(life.rng.integers(1, 40)))
    if keys:
        life.open().delete(f"key IN ({', '.join(map(str, keys))})")


def delete(life: Life) -> None:
    life.open().delete(f"key % {life.rng.integers(3, 12)} = 1")


def update_others(life: Life) -> None:
    """Rows move, vectors stay."""
    life.open().update({"g": str(life.rng.integers(0, 200))}, where=f"key % {life.rng.integers(5, 20)} = 0")


def update_vectors(life: Life) -> None:
    """The nearest rows get other vectors, which moves the rows."""
    keys = sorted(life.neighbours(int(life.rng.integers(1, 30))))
    life.open().merge_insert("key").when_matched_update_all().execute(life.rows(keys))


def rewrite_vectors(life: Life) -> None:
    """A merge of keys and vectors changes vectors in place."""
    dataset = life.open()
    keys = life.some_keys(dataset, 0.3 if life.rng.random() < 0.5 else 0.02)
    source = pa.table({"key": keys, "vec": life.vectors(len(keys))})
    dataset.merge_insert("key").when_matched_update_all().execute(source)


def rewrite_others(life: Life) -> None:
    """What filters read changes in place."""
    dataset = life.open()
    keys = life.some_keys(dataset, 0.2)
    source = pa.table({"key": keys, "g": life.rng.integers(0, 200, len(keys))})
    dataset.merge_insert("key").when_matched_update_all().execute(source)


def upsert(life: Life) -> None:
    fresh = life.fresh(int(life.rng.integers(1, 30)))
    dataset = life.open()
    changed = life.rows(life.some_keys(dataset, 0.1))
    merge = dataset.merge_insert("key").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(pa.concat_tables([changed, fresh]))


def compact(life: Life, **options: Any) -> None:
    if life.stable:
        options = {}
    target = life.scale * int(life.rng.integers(100, 900))
    life.open().optimize.compact_files(target_rows_per_fragment=target, materialize_deletions_threshold=0.05, **options)


def optimize(life: Life) -> None:
    options: dict[str, Any] = {} if life.rng.random() < 0.5 else {"num_indices_to_merge": int(life.rng.integers(0, 4))}
    life.open().optimize.optimize_indices(**options)


def retrain(life: Life) -> None:
    life.open().optimize.optimize_indices(retrain=True)


def create_index(life: Life) -> None:
    kinds = [kind for kind in KINDS if kind != "IVF_RQ" or life.dim % 8 == 0]
    life.kind = kinds[int(life.rng.integers(0, len(kinds)))]
    life.said[-1] += f" {life.kind}"
    options: dict[str, Any] = {"num_partitions": int(life.rng.integers(1, 7)), "max_iters": 4}
    if life.kind.endswith("PQ"):
        options["num_sub_vectors"] = life.dim // 2
        if ld.dataset(life.path).count_rows() < 300:  # too few rows to train 256 codes
            options["num_bits"] = 4
    dataset = life.open()
    dataset.create_index("vec", life.kind, metric=life.metric, replace=True, **options)


def index_filters(life: Life) -> None:
    life.open().create_scalar_index("g", "BTREE", replace=True)


def restore(life: Life) -> None:
    dataset = life.open()
    version = int(life.rng.integers(max(1, dataset.version - 4), dataset.version + 1))
    dataset.checkout_version(version).restore()


CHANGES: tuple[Callable[[Life], None], ...] = (
    append,
    append,
    delete_nearest,
    delete_nearest,
    delete,
    update_others,
    update_vectors,
    update_vectors,
    rewrite_vectors,
    rewrite_vectors,
    rewrite_others,
    upsert,
    upsert,
    compact,
    compact,
    partial(compact, defer_index_remap=True),
    optimize,
    optimize,
    optimize,
    retrain,
    create_index,
    index_filters,
    restore,
)


def begin(seed: int, path: Path, scale: int = 1) -> Life:
    rng = np.random.default_rng([SEED, seed])
    centres = 2 * rng.standard_normal((8, int(rng.choice([8, 12, 16])))).astype(np.float32)
    metric = ("l2", "cosine", "dot")[int(rng.integers(0, 3))]
    type_ = (pa.float32(), pa.float32(), pa.float16(), pa.float64())[int(rng.integers(0, 4))]
    life = Life(
        str(path / "t.lance"),
        rng,
        bool(rng.random() < 0.5),
        metric,
        "",
        centres,
        type_,
        centres[0],
        scale,
        said=[metric],
    )
    life.writer().write_dataset(
        life.fresh(scale * int(rng.integers(320, 800))),
        life.path,
        max_rows_per_file=scale * int(rng.integers(60, 300)),
        enable_stable_row_ids=life.stable,
        data_storage_version=("2.0", "2.1", "2.2")[int(rng.integers(0, 3))],
    )
    life.said[-1] += f" {type_}{' stable' if life.stable else ''}"
    take(life, create_index)
    return life


def take(life: Life, change: Callable[[Life], None]) -> None:
    """Change the table."""
    life.said.append(getattr(change, "__name__", "compact deferred"))
    change(life)


@dataclass
class Truth:
    """All rows of a version, as pylance reads them.

    Attributes:
        distances: Distances by key, for matching rows that have one.
        living: All matching keys.
        infinite: Distances of rows with an infinite vector element. Indexes leave these rows out, and scans rank them.
    """

    distances: dict[int, float]
    living: set[int]
    infinite: dict[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, table: pa.Table, query: NDArray[np.float32], metric: str) -> Truth:
        column = table["vec"].combine_chunks()
        present = np.asarray(column.is_valid())
        numbers = column.values.slice(column.offset * len(query), len(column) * len(query))
        values = numbers.to_numpy(zero_copy_only=False).reshape(-1, len(query)).astype(np.float32).astype(np.float64)
        finite = np.isfinite(values).all(axis=1)
        usable = present.copy()
        norms = np.linalg.norm(values, axis=1)
        asked = query.astype(np.float64)
        with np.errstate(all="ignore"):
            if metric == "l2":
                found = ((values - asked) ** 2).sum(axis=1)
            elif metric == "dot":
                found = 1 - values @ asked
            else:
                usable &= norms > 0
                found = 1 - (values @ asked) / (norms * np.linalg.norm(asked))
        keys = table["key"].to_pylist()
        known = {k: float(d) for k, d, u in zip(keys, found, usable & finite, strict=True) if u}
        beyond = usable & ~finite & ~np.isnan(found)
        return cls(known, set(keys), {k: float(d) for k, d, u in zip(keys, found, beyond, strict=True) if u})


def recall(truth: Truth, found: list[int], k: int) -> tuple[int, int]:
    """How many of the k nearest were found: by distance, as there are equals."""
    nearest = sorted(truth.distances.values())[:k]
    limit = nearest[-1] + 1e-4 * max(1.0, abs(nearest[-1])) if nearest else 0.0
    finite = [key for key in found if key not in truth.infinite]
    nearer = len(found) - len(finite)  # these rows displace others at the end
    return min(nearer + sum(truth.distances[key] <= limit for key in finite), len(nearest)), len(nearest)


def check(truth: Truth, keys: list[int], distances: NDArray[np.float32], k: int, *, exact: bool) -> None:
    """What holds of every answer."""
    assert len(set(keys)) == len(keys), f"rows twice: {keys}"
    assert set(keys) <= truth.living, f"rows that are not there: {set(keys) - truth.living}"
    known = truth.distances | truth.infinite
    assert set(keys) <= set(known), f"rows without distance: {set(keys) - set(known)}"
    least, most = (min(k, len(rows)) for rows in (truth.distances, known))
    assert least <= len(keys) <= most, f"{len(keys)} rows, expected {least} to {most}"
    assert np.all(distances[1:] >= distances[:-1])
    if exact:
        np.testing.assert_allclose(distances, [known[key] for key in keys], rtol=2e-4, atol=2e-4)


def ask(life: Life, cases: Cases, version: int | None = None) -> None:
    """Look at everything, with and without filters; then at a part."""
    ours, theirs = ld.dataset(life.path, version=version), lance.dataset(life.path, version=version)
    tables = {text: theirs.to_table(columns=["key", "vec"], filter=text) for text in dict.fromkeys(FILTERS)}
    kinds = sorted({index["type"] for index in ours.list_indices() if index["fields"] == ["vec"]})
    said = f"{' / '.join(life.said)} @{ours.version} {kinds}"
    hits = wanted = 0
    queries = [life.query, *life.points(1)]
    for query in queries:
        for text in dict.fromkeys(FILTERS):
            k = int(life.rng.choice([1, 5, 10, 40, 1000]))
            truth = Truth.of(tables[text], query, life.metric)
            nearest = {"column": "vec", "q": query, "k": k, "metric": life.metric}
            with cases.case(f"{said}: k={k} {text}"):
                found = ours.to_table(columns=["key"], filter=text, nearest={**nearest, **ALL_OF_IT})
                keys = found["key"].to_pylist()
                check(truth, keys, found["_distance"].to_numpy(), k, exact=True)
                some, all_ = recall(truth, keys, k)
                if kinds == ["IVF_FLAT"] or not kinds:
                    assert some == all_, f"recall {some} of {all_}"
                hits, wanted = hits + some, wanted + all_
            with cases.case(f"{said}: k={k} {text}, one partition, not refined"):
                found = ours.to_table(columns=["key"], filter=text, nearest={**nearest, "nprobes": 1})
                # For cosine an index of half floats holds normalised halves.
                rounded = life.metric == "cosine" and life.type == pa.float16()
                exact = not kinds or (kinds == ["IVF_FLAT"] and not rounded)
                check(truth, found["key"].to_pylist(), found["_distance"].to_numpy(), k, exact=exact)
    with cases.case(f"{said}: recall {hits} of {wanted}"):
        assert hits >= ENOUGH * wanted
    ask_at_once(life, cases, ours, tables, queries, said)
    ask_otherwise(life, cases, ours, tables, queries[0], said, sure=not kinds or kinds == ["IVF_FLAT"])
    if version is None:
        ask_in_sql(life, cases, tables, queries[0], said, exact=not kinds)
    life.query = queries[1]


def ask_at_once(
    life: Life, cases: Cases, ours: Any, tables: dict[Any, pa.Table], queries: list[NDArray[np.float32]], said: str
) -> None:
    """Several queries are answered as each of them."""
    text = FILTERS[int(life.rng.integers(0, len(FILTERS)))]
    nearest = {"column": "vec", "q": np.stack(queries), "k": 5, "metric": life.metric, **ALL_OF_IT}
    with cases.case(f"{said}: {len(queries)} queries {text}"):
        found = ours.to_table(columns=["key"], filter=text, nearest=nearest)
        for place, query in enumerate(queries):
            part = found.filter(pa.array(np.asarray(found["query_index"]) == place))
            truth = Truth.of(tables[text], query, life.metric)
            check(truth, part["key"].to_pylist(), part["_distance"].to_numpy(), 5, exact=True)


def ask_otherwise(
    life: Life,
    cases: Cases,
    ours: Any,
    tables: dict[Any, pa.Table],
    query: NDArray[np.float32],
    said: str,
    *,
    sure: bool,
) -> None:
    """Search with a distance range, with a filter after the search, and only in indexed rows."""
    text = FILTERS[int(life.rng.integers(0, len(FILTERS)))]
    matching, all_ = (Truth.of(tables[name], query, life.metric) for name in (text, None))
    nearest = {"column": "vec", "q": query, "k": 10, "metric": life.metric, **ALL_OF_IT}
    lower, upper = bounds(life, all_)
    with cases.case(f"{said}: {text} from {lower} to {upper}"):
        found = ours.to_table(columns=["key"], filter=text, nearest={**nearest, "distance_range": (lower, upper)})
        inside = {key: d for key, d in matching.distances.items() if lower <= d < upper}
        if sure:
            check(
                Truth(inside, matching.living), found["key"].to_pylist(), found["_distance"].to_numpy(), 10, exact=True
            )
        assert set(found["key"].to_pylist()) <= set(inside)
    with cases.case(f"{said}: {text} after the search"):
        found = ours.to_table(columns=["key"], filter=text, prefilter=False, nearest=nearest)
        first = ours.to_table(columns=["key"], nearest=nearest)["key"].to_pylist()
        assert found["key"].to_pylist() == [key for key in first if key in matching.living]
    with cases.case(f"{said}: {text} in indexed rows"):
        found = ours.to_table(columns=["key"], filter=text, fast_search=True, nearest=nearest)
        keys = found["key"].to_pylist()
        assert len(set(keys)) == len(keys)
        known = matching.distances | matching.infinite
        np.testing.assert_allclose(found["_distance"], [known[key] for key in keys], rtol=2e-4, atol=2e-4)


def bounds(life: Life, truth: Truth) -> tuple[float, float]:
    """Return two distances, each between those of two adjacent rows."""
    known = np.unique(list(truth.distances.values()))
    middles = (known[1:] + known[:-1])[np.diff(known) > 1e-3] / 2
    low, high = np.sort(life.rng.choice(middles, 2)) if len(middles) else (0.0, 1.0)
    return float(low), float(high)


def ask_in_sql(
    life: Life,
    cases: Cases,
    tables: dict[Any, pa.Table],
    query: NDArray[np.float32],
    said: str,
    *,
    exact: bool,
) -> None:
    """Check that rows and distances in DuckDB are the same."""
    text = FILTERS[2 + int(life.rng.integers(0, len(FILTERS) - 2))]
    options = "k := 10, nprobes := 1000, ef := 300, refine_factor := 20, metric := $metric, filter := $filter"
    truth = Truth.of(tables[text], query, life.metric)
    with cases.case(f"{said}: {text} in SQL"), ld.connect({"t": life.path}) as connection:
        found = connection.execute(
            f"SELECT key, _distance FROM lance_vector_search('t', 'vec', $query, {options})",
            {"query": query.tolist(), "metric": life.metric, "filter": text},
        ).fetchall()
        check(truth, [key for key, _ in found], np.array([d for _, d in found], np.float32), 10, exact=True)
    if life.type != pa.float32():
        return
    with cases.case(f"{said}: {text} by ORDER BY"), ld.connect({"t": life.path}) as connection:
        measure = f"{MEASURES[life.metric]}(vec, $query::FLOAT[{life.dim}])"
        places, before = by_duckdb(tables[text], measure, query)
        found = connection.execute(
            f"SELECT key FROM t WHERE {text} ORDER BY {measure} LIMIT 10", {"query": query.tolist()}
        ).fetchall()
        keys = [key for (key,) in found]
        assert len(set(keys)) == len(keys) == min(10, len(truth.living))
        assert set(keys) <= truth.living
        assert [places[key] for key in keys] == sorted(places[key] for key in keys)
        assert set(keys[: len(before)]) <= before
        near = [key for key in keys[len(before) :] if key in truth.distances]  # other keys without a distance come last
        assert len(near) == min(max(10 - len(before), 0), len(truth.distances))
        if exact:
            assert [places[key] for key in keys] == sorted(places.values())[:10]


def by_duckdb(table: pa.Table, measure: str, query: NDArray[np.float32]) -> tuple[dict[int, int], set[int]]:
    """Return the rank of each row in DuckDB's order, and the infinitely distant rows that come first."""
    with duckdb.connect() as connection:
        connection.register("rows", table)
        found = connection.execute(
            f"SELECT key, rank() OVER (ORDER BY {measure}), {measure} = '-inf'::FLOAT FROM rows",
            {"query": query.tolist()},
        ).fetchall()
    return {key: place for key, place, _ in found}, {key for key, _, before in found if before}


def ask_small_tables_all_ways(patch: pytest.MonkeyPatch) -> None:
    """Lower the thresholds for small tables.

    Otherwise no filter would use an index, no graph would be walked or joined, and no index would be outgrown.
    """
    patch.setattr(search, "ALWAYS_COMPARED_ROWS", 0)
    patch.setattr(search, "COMPARED_SHARE", 10**9)
    patch.setattr(graph_partition, "WALK", 0)
    patch.setattr(build, "JOINED", 64)
    patch.setattr(imbalance, "LARGE", 40)
    patch.setattr(imbalance, "UNEVEN", 2)
    patch.setattr(imbalance, "GROWN", 1.1)


def live(seed: int, path: Path, cases: Cases) -> Life:
    """Change a table repeatedly, and check it after every change."""
    with pytest.MonkeyPatch.context() as patch:
        if seed % 4:
            ask_small_tables_all_ways(patch)
        life = begin(seed, path, LARGER if seed % LARGER == LARGER - 1 else 1)
        ask(life, cases)
        for place in life.rng.integers(0, len(CHANGES), STEPS):
            take(life, CHANGES[place])
            ask(life, cases)
        first = ld.dataset(life.path).versions()[0]["version"]
        ask(life, cases, int(life.rng.integers(first, ld.dataset(life.path).version + 1)))
    return life


@pytest.mark.parametrize(
    "seed", [*range(LIVES), *(pytest.param(s, marks=pytest.mark.slow) for s in range(LIVES, LIVES_OF_A_NIGHT))]
)
def test_nearest_neighbours_are_correct_after_every_change(seed: int, tmp_path: Path, cases: Cases) -> None:
    print(f"seed [{SEED}, {seed}]")
    live(seed, tmp_path, cases)
