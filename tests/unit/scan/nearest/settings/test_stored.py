"""The file that stores the measured recall of search settings with an index."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.checksums.digests import digest
from lance_duck.scan.nearest.settings import measure, segment_curves
from lance_duck.scan.nearest.settings.curve import Curve, MeasuredSetting, Setting
from lance_duck.scan.nearest.settings.stored import decoded, recall_file_bytes

CURVES = [
    Curve.of(
        10,
        1.0,
        102,
        [MeasuredSetting(Setting(1), 0.5, 0.02, 7.5), MeasuredSetting(Setting(3, 64, 40), 0.98, 0.0, 20.0)],
    ),
    Curve.of(10, 0.25, 102, [MeasuredSetting(Setting(4, None, 20), 1.0, 0.0, 30.0)]),
]


def index(**others: Any) -> Any:
    about = {"metric": "l2", "dim": 8, "num_rows": 1000, **others}
    files = SimpleNamespace(kind=about.pop("kind", "IVF_PQ"), num_partitions=about.pop("partitions", 20))
    shape = SimpleNamespace(has_graphs="HNSW" in files.kind)
    return SimpleNamespace(files=files, shape=shape, **about)


def rewritten(data: bytes, change: Callable[[Any], None]) -> bytes:
    """The file with other content, and the digest of that."""
    head, body, _ = data.split(b"\n")
    content = json.loads(body)
    change(content)
    body = json.dumps(content).encode()
    return json.dumps({**json.loads(head), "digest": f"{digest(body):016x}"}).encode() + b"\n" + body


def test_measured_curves_round_trip() -> None:
    found = decoded(recall_file_bytes(index(), CURVES), index())
    assert [each.is_stored for each in found] == [True, True]
    assert [(each.k, each.share, each.queries, each.measured) for each in found] == [
        (each.k, each.share, each.queries, each.measured) for each in CURVES
    ]


@pytest.mark.parametrize(
    "other", [{"kind": "IVF_SQ"}, {"metric": "dot"}, {"dim": 9}, {"partitions": 21}, {"num_rows": 700}]
)
def test_curves_of_another_segment_are_ignored(other: dict[str, Any]) -> None:
    assert decoded(recall_file_bytes(index(), CURVES), index(**other)) == []


def test_curves_stay_valid_after_few_deletions() -> None:
    assert len(decoded(recall_file_bytes(index(), CURVES), index(num_rows=900))) == 2


def test_damaged_curves_are_ignored() -> None:
    data = recall_file_bytes(index(), CURVES)
    assert decoded(None, index()) == []
    for place in range(len(data) - 1):
        flipped = bytearray(data)
        flipped[place] ^= 4
        assert decoded(bytes(flipped), index()) == [], place
        assert decoded(data[:place], index()) == [], place


def change(path: str, value: Any) -> Callable[[Any], None]:
    def apply(content: Any) -> None:
        *names, last = [int(name) if name.isdigit() else name for name in path.split(".")]
        for name in names:
            content = content[name]
        content[last] = value

    return apply


@pytest.mark.parametrize(
    "changed",
    [
        change("curves", 7),
        change("curves.0", []),
        change("curves.0.k", 0),
        change("curves.0.k", "10"),
        change("curves.0.share", 2),
        change("curves.0.queries", True),
        change("curves.0.measured", []),
        change("curves.0.measured.0", [1, 2]),
        change("curves.0.measured.0.0", 0),
        change("curves.0.measured.0.0", 1 << 40),
        change("curves.0.measured.0.3", 1.5),
        change("curves.0.measured.0.3", float("nan")),
        change("curves.0.measured.0.5", float("inf")),
        change("curves.0.measured.0.5", 1e9),  # the dearest one first
        change("rows", "many"),
    ],
)
def test_invalid_curves_are_ignored_even_with_a_valid_digest(changed: Callable[[Any], None]) -> None:
    data = recall_file_bytes(index(), CURVES)
    assert decoded(rewritten(data, changed), index()) == []
    head, body, _ = data.split(b"\n")
    newer = {**json.loads(head), "version": 2}
    assert decoded(json.dumps(newer).encode() + b"\n" + body, index()) == []


def test_graph_curves_measured_without_displacement_are_ignored() -> None:
    graphs = index(kind="IVF_HNSW_SQ")
    data = recall_file_bytes(graphs, CURVES)
    assert len(decoded(data, graphs)) == len(CURVES)
    assert decoded(rewritten(data, lambda content: content.pop("displaced")), graphs) == []
    assert decoded(rewritten(data, change("displaced", False)), graphs) == []
    assert "displaced" not in json.loads(recall_file_bytes(index(), CURVES).split(b"\n")[1])


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ld.LanceDataset:
    """2,000 vectors with an index of ten partitions."""
    monkeypatch.setattr(measure, "FREE_NS", 200)
    vectors = np.random.default_rng(0).random((2000, 8), dtype=np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 8)
    ds = ld.write_dataset(pa.table({"id": range(2000), "v": column}), tmp_path / "t.lance")
    return ds.create_index("v", "IVF_PQ", num_partitions=10, num_sub_vectors=4, max_iters=4, sample_rate=4)


def plan(ds: ld.LanceDataset) -> str:
    """Return the settings of a search by a new process."""
    scanner = ds.scanner(nearest={"column": "v", "q": np.full(8, 0.5), "k": 10})
    return next(line for line in scanner.explain_plan().splitlines() if "settings" in line)


def moved(ds: ld.LanceDataset, name: str) -> ld.LanceDataset:
    """Return the table at another location, without opened segments."""
    path = Path(ds.uri)
    return ld.dataset(path.rename(path.with_name(name)))


def the_file(ds: ld.LanceDataset) -> Path:
    """The file of recalls of the index."""
    (segment,) = ds.handle.snapshot.indices
    return Path(ds.uri, segment.directory, "recall.json")


def test_a_new_index_stores_its_recall_curves(table: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    files = dict(table.handle.snapshot.indices[0].files)
    assert files["recall.json"] == the_file(table).stat().st_size
    table.validate()
    monkeypatch.setattr(segment_curves, "draw", None)  # no measurement
    assert "stored with the index" in plan(table)


@pytest.mark.parametrize("damage", ["gone", "flipped", "cut"])
def test_without_the_file_the_same_is_measured(table: ld.LanceDataset, damage: str) -> None:
    before = plan(table)
    file = the_file(table)
    data = bytearray(file.read_bytes())
    data[200] ^= 1
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(data if damage == "flipped" else data[:-5])
    assert plan(moved(table, "moved.lance")) == before.replace("stored with the index", "in this process")


def test_compaction_keeps_the_curves_and_new_rows_are_measured_again(table: ld.LanceDataset) -> None:
    table.delete("id < 200")
    table.optimize.compact_files(materialize_deletions_threshold=0.0)
    assert the_file(table).read_bytes()
    assert "stored with the index" in plan(table)
    more = table.to_table(filter="id < 700")
    ds = ld.write_dataset(more, table.uri, mode="append")
    ds.optimize.optimize_indices(num_indices_to_merge=1)
    content = json.loads(the_file(ds).read_bytes().split()[1])
    assert content["rows"] == 2300
    assert "stored with the index" in plan(ds)


def test_curves_measured_with_another_method_are_remeasured(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).random((2000, 8), dtype=np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 8)
    ds = ld.write_dataset(pa.table({"id": range(2000), "v": column}), tmp_path / "t.lance")
    ds.create_index("v", "IVF_HNSW_SQ", num_partitions=2, ef_construction=60)
    before, file = plan(ds), the_file(ds)
    assert "stored with the index" in before
    file.write_bytes(rewritten(file.read_bytes(), lambda content: content.pop("displaced")))
    ds = moved(ds, "moved.lance")
    assert plan(ds) == before.replace("stored with the index", "in this process")
