"""B-trees of one are files of the other: the same entries, pages and metadata, for every type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader
from lance.indices import IndexConfig
from oracle.cases import Cases

import lance_duck as ld
from lance_duck.indices import IndexConfig as OurConfig

CASE_KIND = "predicate"
OPTIONS = {"fsync": "false"}
ROWS = 60
PAGE = 7


def _stored(values: list[int | None], type_: pa.DataType) -> pa.Array:
    return pa.array(values, pa.int32() if type_.bit_width == 32 else pa.int64()).view(type_)


def _columns() -> dict[str, pa.Array]:
    rng = np.random.default_rng(3)
    numbers = [None if n % 6 == 5 else n for n in rng.integers(-20, 20, ROWS).tolist()]
    positive = [None if n is None else abs(n) for n in numbers]
    odd = [float("nan"), -0.0, 0.0, float("inf"), -float("inf"), 1e-7, 1.5]
    floats = [None if n is None else odd[n] if 0 <= n < 7 else n / 4 for n in numbers]
    texts = ["", "é", "a", "ab", "ab\0", "𝄞", "long text that goes on"]
    words = [None if n is None else texts[n] if 0 <= n < 7 else f"t{n}" for n in numbers]
    raw = [None if word is None else word.encode() for word in words]
    columns = {str(t): pa.array(numbers, t) for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())}
    columns |= {str(t): pa.array(positive, t) for t in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())}
    columns |= {str(t): pa.array(floats, t) for t in (pa.float32(), pa.float64())}
    columns["halffloat"] = pa.array([None if x is None else np.float16(x) for x in floats], pa.float16())
    columns |= {str(t): pa.array(words, t) for t in (pa.string(), pa.large_string())}
    columns |= {str(t): pa.array(raw, t) for t in (pa.binary(), pa.large_binary())}
    columns["fixed"] = pa.array([None if word is None else word.ljust(24)[:24] for word in raw], pa.binary(24))
    columns["bool"] = pa.array([None if n is None else n > 0 for n in numbers])
    kinds = [pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("us", "UTC"), pa.duration("ns")]
    columns |= {str(t): _stored([None if n is None else n * 86_400_000 for n in numbers], t) for t in kinds[1:]}
    columns["date32"] = _stored([None if n is None else n * 10_000 for n in numbers], kinds[0])
    columns |= {str(t): _stored(positive, t) for t in (pa.time32("ms"), pa.time64("ns"))}
    for decimal in (pa.decimal128(9, 2), pa.decimal256(40, 3)):
        columns[str(decimal)] = pa.array(numbers, pa.int64()).cast(pa.decimal128(20, 0)).cast(decimal)
    columns["nulls"] = pa.nulls(ROWS, pa.int32())
    return columns


COLUMNS = _columns()


def files(uri: str, index: Any) -> tuple[pa.Table, pa.Table, dict[str, str]]:
    """Entries by value and row, pages, and metadata of the newest segment."""
    directory = Path(uri, "_indices", str(index))
    data = LanceFileReader(str(directory / "page_data.lance")).read_all().to_table()
    lookup = LanceFileReader(str(directory / "page_lookup.lance")).read_all().to_table()
    metadata = {key.decode(): value.decode() for key, value in lookup.schema.metadata.items()}
    return data.replace_schema_metadata(), lookup.replace_schema_metadata(), metadata


def uuids(uri: str) -> set[str]:
    return {path.name for path in Path(uri, "_indices").iterdir()}


def made_by_both(uri: str) -> tuple[Any, Any]:
    """Files of the B-tree over column x of a table, by pylance and by us; the last one is committed."""
    lance.dataset(uri).create_scalar_index("x", IndexConfig("btree", {"zone_size": PAGE}))
    theirs = uuids(uri)
    ld.dataset(uri, storage_options=OPTIONS).create_scalar_index("x", OurConfig("btree", {"zone_size": PAGE}))
    (ours,) = uuids(uri) - theirs
    return files(uri, *theirs), files(uri, ours)


def plain(array: Any) -> list[Any]:
    """Return values for comparison, with NaN equal to NaN, and -0.0 different from 0.0."""
    return [repr(value) for value in array.to_pylist()]


def by_row_id(uri: str, addresses: pa.ChunkedArray) -> pa.Array:
    """Row ids of the rows at some addresses."""
    names = ld.dataset(uri).to_table(columns=["_rowaddr", "_rowid"]).to_pydict()
    found = dict(zip(names["_rowaddr"], names["_rowid"], strict=True))
    return pa.array([found[address] for address in addresses.to_pylist()], pa.uint64())


def entries(data: pa.Table) -> list[tuple[str, int]]:
    """Return the value and row of each entry; equal values may have any order."""
    return sorted(zip(plain(data["values"]), data["ids"].to_pylist(), strict=True))


@pytest.mark.parametrize(("name", "stable"), [*((name, False) for name in COLUMNS), ("int64", True), ("string", True)])
def test_both_libraries_write_identical_btree_files(tmp_path: Path, name: str, stable: bool, cases: Cases) -> None:
    column = COLUMNS[name]
    uri = str(tmp_path / "t.lance")
    table = pa.table({"x": column, "y": range(ROWS)})
    lance.write_dataset(table, uri, max_rows_per_file=25, enable_stable_row_ids=stable)
    theirs, ours = made_by_both(uri)
    assert theirs[2] == ours[2]
    for one, other in zip(theirs[:2], ours[:2], strict=True):
        assert one.schema == other.schema
    (their_data, their_pages, _), (our_data, our_pages, _) = theirs, ours
    assert [plain(c) for c in their_pages.columns] == [plain(c) for c in our_pages.columns]
    assert plain(their_data["values"]) == plain(our_data["values"])
    if stable:  # pylance names rows by address there, which older cores do not read, and carry along wrongly
        their_data = their_data.set_column(1, "ids", by_row_id(uri, their_data["ids"]))
    assert entries(their_data) == entries(our_data)
    their_stats = lance.dataset(uri).stats.index_stats("x_idx")["indices"]
    assert ld.dataset(uri).stats.index_stats("x_idx")["indices"] == their_stats
    for condition in ("x IS NULL", "x IS NOT NULL"):
        scanner = lance.dataset(uri).scanner(filter=condition)
        assert "ScalarIndexQuery" in scanner.explain_plan()
        expected = lance.dataset(uri).scanner(filter=condition, use_scalar_index=False).to_table()
        assert scanner.to_table()["y"].to_pylist() == expected["y"].to_pylist()
        assert ld.dataset(uri).to_table(filter=condition)["y"].to_pylist() == expected["y"].to_pylist()
        cases.count += 1
