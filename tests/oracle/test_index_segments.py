"""Segments written and maintained by pylance: the answer for every covered row is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from oracle.cases import Cases
from support.servers import s3_server

import lance_duck as ld
from lance_duck.errors import IndexWarning
from lance_duck.index.catalog import Segment, catalog
from lance_duck.index.search import estimate, search
from lance_duck.maintenance.validation.validate import find_problems
from lance_duck.rows.row_set import RowSet
from lance_duck.scan.indexes.query import query_of
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.predicate.evaluate import evaluate
from lance_duck.scan.predicate.tree import Compare, HasAll, HasAny, In, IsNull, Not, Predicate, StartsWith
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot, open_snapshot

CASE_KIND = "predicate"
ROWS = 90

Change = Callable[[Any], object]


def values(kind: str, rng: np.random.Generator) -> pa.Array:
    """Values of a column, some of them null, some many times, the odd ones among them."""
    numbers = rng.integers(-20, 20, ROWS).tolist()
    match kind:
        case "int":
            found = pa.array(numbers, pa.int64())
        case "float":
            odd = [float("nan"), -float("nan"), -0.0, 0.0, float("inf"), -float("inf"), 5e-324]
            found = pa.array([odd[n % 7] if n < 0 else n / 3 for n in numbers])
        case "string":
            found = pa.array([["", "é", "a", "ab", "ab\x00", "𝄞"][n] if 0 <= n < 6 else f"t{n}" for n in numbers])
        case "timestamp":
            moment = datetime(2024, 2, 29, tzinfo=UTC).timestamp()
            found = pa.array([int(moment + n) * 10**6 for n in numbers]).cast(pa.timestamp("us", "UTC"))
        case "date":
            found = pa.array(numbers, pa.int32()).cast(pa.date32())
        case "decimal":
            found = pa.array([Decimal(n).scaleb(-2) for n in numbers], pa.decimal128(20, 2))
        case "bool":
            found = pa.array([n > 0 for n in numbers])
        case "list":
            found = pa.array([[f"w{n % 5}", f"w{n % 3}", None][: abs(n) % 4] for n in numbers])
        case _:
            raise AssertionError(kind)
    holes = pa.array(rng.random(ROWS) < 0.15)
    return pa.array([None if hole else value for hole, value in zip(holes.to_pylist(), found, strict=True)], found.type)


def write(path: Path, kind: str, *, stable: bool) -> Any:
    rng = np.random.default_rng(5)
    data = pa.table({"id": range(ROWS), "x": values(kind, rng), "y": [0] * ROWS})
    return lance.write_dataset(data, str(path), max_rows_per_file=30, enable_stable_row_ids=stable)


def append(ds: Any) -> None:
    lance.write_dataset(ds.to_table().slice(10, 25), ds.uri, mode="append")


def compact(**options: Any) -> Change:
    return lambda ds: ds.optimize.compact_files(target_rows_per_fragment=50, **options)


CHANGES: dict[str, Change] = {
    "delete": lambda ds: ds.delete("id % 7 = 2"),
    "delete a fragment": lambda ds: ds.delete("id >= 30 AND id < 60"),
    "update x": lambda ds: ds.update({"x": "NULL"}, where="id % 11 = 3"),
    "update y": lambda ds: ds.update({"y": "1"}, where="id % 11 = 4"),
    "append": append,
    "optimize": lambda ds: ds.optimize.optimize_indices(),
    "append segment": lambda ds: ds.optimize.optimize_indices(num_indices_to_merge=0),
    "compact": compact(),
    "defer": compact(defer_index_remap=True),
}
LIVES = [
    ("update y", "delete", "append", "compact", "optimize"),
    ("delete", "append", "append segment", "update x", "delete a fragment", "compact"),
    ("delete", "defer", "update x", "append"),
]
INDEXES = [
    *((kind, "BTREE") for kind in ("int", "float", "string", "timestamp", "date", "decimal", "bool")),
    *((kind, "BITMAP") for kind in ("int", "float", "string", "bool", "date")),
    ("list", "LABEL_LIST"),
    *((kind, "ZONEMAP") for kind in ("int", "float", "string", "timestamp")),
    *((kind, "BLOOMFILTER") for kind in ("int", "float", "string")),
]


def conditions(column: pa.Array) -> Iterator[Predicate]:
    """Conditions on values that are there, and on some that are not."""
    for leaf in _leaves(("x",), column.type, column.drop_null()):
        yield leaf
        yield Not(leaf)


def _leaves(path: tuple[str, ...], type_: pa.DataType, present: pa.Array) -> Iterator[Predicate]:
    yield IsNull(path)
    if pa.types.is_list(type_):
        for labels in (["w0"], ["w1", "w4"], ["none"], []):
            yield HasAny(path, pa.array(labels, pa.string()))
            yield HasAll(path, pa.array(labels, pa.string()))
        return
    some = [present[i] for i in range(0, len(present), 16)]
    for value in some:
        yield from (Compare(op, path, value) for op in ("=", "<", "<=", ">", ">="))
    yield In(path, pa.array([value.as_py() for value in some[:2]], type_))
    if pa.types.is_string(type_):
        yield from (StartsWith(path, pa.scalar(prefix)) for prefix in ("", "a", "ab", "t-", "é", "𝄞"))


def check(snapshot: Snapshot, segment: Segment, cases: Cases) -> None:
    """Compare the answers of a segment to many conditions with the rows."""
    table = TableScan(snapshot)
    options = ScanOptions(columns=["x"], fragments=segment.fragments.tolist(), with_row_address=True)
    rows = table.reader(table.plan(options), options).read_all()
    column, addresses = rows["x"].combine_chunks(), rows["_rowaddr"].to_numpy()
    living = RowSet.of(addresses)
    for condition in conditions(column):
        plain, positive = (condition.operand, False) if isinstance(condition, Not) else (condition, True)
        query = query_of(plain, segment.type, true=positive)
        if query is None or not segment.kind.answers(query, segment.type):
            continue
        answer = search(snapshot, segment, query)
        assert answer is not None
        mask = evaluate(condition, {"x": column}, len(column)).fill_null(False).to_numpy(zero_copy_only=False)
        true = RowSet.of(addresses[mask])
        assert not true - answer.maybe, f"{condition}: rows that are not known"
        assert not (answer.sure & living) - true, f"{condition}: rows that are wrong"
        assert not answer.sure - answer.maybe
        most = estimate(snapshot, segment, query)
        assert most is None or most >= len(true)
        cases.count += 1


def lives() -> Iterator[Any]:
    """All combinations; in the quick profile one of each index."""
    for i, (kind, index) in enumerate(INDEXES):
        for j, life in enumerate(LIVES):
            for stable in (False, True):
                is_quick = (j, stable) == (i % 3, i % 2 == 0 and i % 3 < 2)
                marks = () if is_quick else pytest.mark.slow
                name = f"{kind}-{index}-{j}-{'ids' if stable else 'addresses'}"
                yield pytest.param(kind, index, life, stable, id=name, marks=marks)


@pytest.mark.parametrize(("kind", "index", "life", "stable"), list(lives()))
def test_segments_are_valid_after_every_change(
    kind: str, index: str, life: tuple[str, ...], stable: bool, tmp_path: Path, cases: Cases
) -> None:
    ds = write(tmp_path / "t.lance", kind, stable=stable)
    ds.create_scalar_index("x", index)
    for name in ("", *life):
        if name == "defer" and stable:
            continue
        if name:
            CHANGES[name](lance.dataset(ds.uri))
        snapshot = open_snapshot(ds.uri)
        (found,) = catalog(snapshot).over("x")
        assert not found.ignored
        for segment in found.segments:
            check(snapshot, segment, cases)
    assert find_problems(open_snapshot(ds.uri)) == []


def table_with_indexes(path: Path) -> Any:
    ds = write(path, "int", stable=False)
    ds.create_scalar_index("x", "BTREE")
    ds.create_scalar_index("id", "ZONEMAP")
    return ds


def assert_sound(uri: str, cases: Cases, version: Any = None) -> list[Segment]:
    """Return the segments over x of a table after checking the answers of each."""
    snapshot = open_snapshot(uri, version)
    segments = [s for index in catalog(snapshot).over("x") for s in index.segments]
    for segment in segments:
        check(snapshot, segment, cases)
    assert find_problems(snapshot) == []
    return segments


def test_a_clone_uses_the_segments_of_its_source(tmp_path: Path, cases: Cases) -> None:
    ds = table_with_indexes(tmp_path / "t.lance")
    ds.shallow_clone(str(tmp_path / "clone.lance"), ds.version)
    lance.dataset(str(tmp_path / "clone.lance")).delete("id = 3")
    (segment,) = assert_sound(str(tmp_path / "clone.lance"), cases)
    assert segment.metadata.base_id is not None
    assert segment.fragments.tolist() == [0, 1, 2]


def test_a_branch_uses_the_segments_of_its_parent(tmp_path: Path, cases: Cases) -> None:
    ds = table_with_indexes(tmp_path / "t.lance")
    branch = ds.create_branch("side")
    append(branch)
    (segment,) = assert_sound(ds.uri, cases, ("side", None))
    assert segment.fragments.tolist() == [0, 1, 2]


def test_a_restored_version_uses_its_original_segments(tmp_path: Path, cases: Cases) -> None:
    ds = table_with_indexes(tmp_path / "t.lance")
    version = ds.version
    ds.update({"x": "x + 1"}, where="id < 50")
    ds.optimize.optimize_indices()
    (before,) = assert_sound(ds.uri, cases, version)
    (after,) = assert_sound(ds.uri, cases)
    lance.dataset(ds.uri, version=version).restore()
    (restored,) = assert_sound(ds.uri, cases)
    assert (restored.uuid, restored.uuid == after.uuid) == (before.uuid, False)


def test_rows_updated_in_place_are_removed_from_the_segments(tmp_path: Path, cases: Cases) -> None:
    ds = table_with_indexes(tmp_path / "t.lance")
    (fragment, *_) = ds.get_fragments()
    new, fields = fragment.update_columns(pa.table({"id": range(30), "x": pa.array([7] * 30, pa.int64())}), "id", "id")
    operation = lance.LanceOperation.Update(updated_fragments=[new], fields_modified=fields)
    lance.LanceDataset.commit(ds.uri, operation, read_version=ds.version)
    (segment,) = assert_sound(ds.uri, cases)
    assert segment.fragments.tolist() == [1, 2]


def test_broken_segments_on_an_object_store_are_skipped(cases: Cases) -> None:
    uri = "s3://bucket/indexed.lance"
    with s3_server() as options:
        data = pa.table({"x": range(100), "y": range(100)})
        ds = lance.write_dataset(data, uri, storage_options=options)
        for column in ("x", "y"):
            ds.create_scalar_index(column, "BTREE")
        broken = open_snapshot(uri, storage_options=options)
        first, second = (catalog(broken).over(column)[0].segments[0] for column in ("x", "y"))
        check(broken, first, cases)
        broken.store.put(f"{second.metadata.directory}/page_data.lance", b"short")
        dataset = ld.dataset(uri, storage_options=options)
        assert dataset.to_table(filter="x = 17")["y"].to_pylist() == [17]
        with pytest.warns(IndexWarning, match=str(second.uuid)):
            assert dataset.to_table(filter="y = 17")["x"].to_pylist() == [17]
        assert [str(second.uuid) in p.where for p in dataset.find_problems()] == [True]
