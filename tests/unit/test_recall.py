"""Recall and latency of index searches, and their display."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld

DIM = 4
DEFAULT = ("as searched by default", 1)
ROWS = 600


def column(values: np.ndarray) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), DIM)


def written(path: Path, vec: Any) -> ld.LanceDataset:
    return ld.write_dataset(pa.table({"id": pa.array(range(len(vec))), "vec": vec}), path)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    values = np.random.default_rng(1).standard_normal((ROWS, DIM)).astype(np.float32)
    dataset = written(tmp_path_factory.mktemp("recall") / "t.lance", column(values))
    return dataset.create_index("vec", "IVF_FLAT", num_partitions=8)


def test_recall_grows_with_nprobes_and_reaches_one(table: ld.LanceDataset) -> None:
    report = ld.recall_report(table, "vec", sample=20, nprobes=(1, 4, 8))
    recalls = report.table["recall"].to_pylist()
    assert report.table["nprobes"].to_pylist() == [None, 1, 4, 8, None]
    assert recalls[1:] == sorted(recalls[1:])
    assert recalls[1] < 1
    assert recalls[3:] == [1, 1]
    assert all(latency > 0 for latency in report.table["latency_ms"].to_pylist())


def test_recall_is_measured_against_the_exact_search(table: ld.LanceDataset) -> None:
    queries = np.random.default_rng(2).standard_normal((5, DIM)).astype(np.float32)
    shares = []
    for query in queries:
        one, all_ = (
            table.search(query, 10, columns=["id"], nprobes=1, use_index=index)["id"] for index in (True, False)
        )
        shares.append(len({*one.to_pylist()} & {*all_.to_pylist()}) / 10)
    row = ld.recall_report(table, "vec", queries, nprobes=1).table.to_pylist()[1]
    assert row["recall"] == pytest.approx(np.mean(shares))
    assert row["worst"] == min(shares)


def test_the_first_row_is_the_default_search(table: ld.LanceDataset) -> None:
    queries = np.random.default_rng(3).standard_normal((20, DIM)).astype(np.float32)
    shares = []
    for query in queries:
        found, true = (table.search(query, 10, columns=["id"], **use)["id"] for use in ({}, {"use_index": False}))
        shares.append(len({*found.to_pylist()} & {*true.to_pylist()}) / 10)
    report = ld.recall_report(table, "vec", queries, nprobes=1)
    first = report.table.to_pylist()[0]
    assert first | {"latency_ms": 0} == {
        **dict.fromkeys(("nprobes", "ef", "refine_factor")),
        "recall": pytest.approx(np.mean(shares)),
        "worst": min(shares),
        "latency_ms": 0,
    }
    assert first["recall"] > report.table["recall"][1].as_py()
    assert ld.recall_report(table, "vec", queries, nprobes=None).table["nprobes"].to_pylist() == [None, None]


def test_the_same_seed_draws_the_same_queries(table: ld.LanceDataset) -> None:
    def recalls(seed: int) -> list[float]:
        return ld.recall_report(table, "vec", sample=7, nprobes=(1, 2), seed=seed).table["recall"].to_pylist()

    assert recalls(3) == recalls(3)


def test_nprobes_above_the_partition_count_are_measured_once(table: ld.LanceDataset) -> None:
    assert ld.recall_report(table, "vec", sample=2).table["nprobes"].to_pylist() == [None, 1, 2, 5, 8, None]


def test_all_setting_combinations_are_measured(table: ld.LanceDataset) -> None:
    rows = ld.recall_report(table, "vec", sample=2, nprobes=(1, 2), refine_factor=(1, 3)).table.to_pylist()
    assert [(row["refine_factor"], row["nprobes"]) for row in rows[1:-1]] == [(1, 1), (1, 2), (3, 1), (3, 2)]


def test_neighbours_must_pass_the_filter(table: ld.LanceDataset) -> None:
    report = ld.recall_report(table, "vec", sample=5, nprobes=8, filter="id < 4")
    assert report.table["recall"].to_pylist() == [1, 1, 1]
    with pytest.raises(ld.InvalidInputError, match="the search does not return rows for any query"):
        ld.recall_report(table, "vec", sample=5, filter="id < 0")


def test_graphs_are_measured_with_several_ef_values(tmp_path: Path) -> None:
    values = np.random.default_rng(1).standard_normal((ROWS, DIM)).astype(np.float32)
    dataset = written(tmp_path / "t.lance", column(values))
    dataset.create_index("vec", "IVF_HNSW_SQ", metric="cosine", num_partitions=1)
    report = ld.recall_report(dataset, "vec", sample=5, k=4)
    assert report.table["ef"].to_pylist() == [None, 4, 8, 20, 40, None]
    assert "IVF_HNSW_SQ, cosine, 1 partition, 600 rows, 5 queries" in str(report)


def test_rows_at_equal_distance_count_as_neighbours(tmp_path: Path) -> None:
    values = np.repeat(np.arange(8, dtype=np.float32), 40)[:, None] * np.ones(DIM, np.float32)
    dataset = written(tmp_path / "t.lance", column(values)).create_index("vec", "IVF_FLAT", num_partitions=2)
    assert ld.recall_report(dataset, "vec", k=3, sample=8, nprobes=2).table["recall"].to_pylist() == [1, 1, 1]


def test_unsearchable_vectors_are_not_sampled(tmp_path: Path) -> None:
    values: list[list[float | None] | None] = [[float(i), 1, 2, 3] for i in range(300)]
    for place in range(290):
        values[place] = (None, [float("nan")] * DIM, [0.0] * DIM, [1.0, None, 1.0, 1.0])[place % 4]
    dataset = written(tmp_path / "t.lance", pa.array(values, pa.list_(pa.float32(), DIM)))
    dataset.create_index("vec", "IVF_FLAT", num_partitions=1)
    assert str(ld.recall_report(dataset, "vec", k=2, sample=100).title).endswith(" 10 queries")


def test_unindexed_rows_are_reported(tmp_path: Path) -> None:
    values = np.random.default_rng(1).standard_normal((300, DIM)).astype(np.float32)
    dataset = written(tmp_path / "t.lance", column(values)).create_index("vec", "IVF_FLAT", num_partitions=1)
    dataset.insert(pa.table({"id": pa.array(range(5)), "vec": column(values[:5])}))
    assert "305 rows (5 not in the index)" in ld.recall_report(dataset, "vec", sample=2).title


def test_the_fastest_setting_that_reaches_a_recall_is_chosen() -> None:
    rows = [(None, 0.99, 0.05), (1, 0.5, 0.1), (5, 0.96, 0.4), (9, 0.97, 0.3), (20, 1.0, 0.9), (None, 1.0, 9.0)]
    names = ("nprobes", "recall", "latency_ms")
    table = pa.Table.from_pylist(
        [dict(zip(names, row, strict=True)) | {"ef": None, "refine_factor": None, "worst": 0.5} for row in rows]
    )
    report = ld.RecallReport(table, "t")
    assert report.choose(0.95) == {"nprobes": 9}
    assert report.choose(0.99) == {"nprobes": 20}
    assert report.choose(1.1) is None


def test_a_report_has_a_text_and_an_html_form(table: ld.LanceDataset) -> None:
    report = ld.recall_report(table, "vec", sample=2, nprobes=(1, 8))
    title, head, *rows = str(report).splitlines()
    assert title == "recall of 10 neighbours by vec: IVF_FLAT, l2, 8 partitions, 600 rows, 2 queries"
    assert head.split() == ["nprobes", "recall", "worst", "latency_ms"]
    assert [row.split("  ")[0].strip() for row in map(str.strip, rows)] == ["as searched by default", "1", "8", "exact"]
    assert report._repr_html_().count("<tr>") == 5


def test_a_plot_has_one_line_per_method_and_one_for_the_exact_search(
    table: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[str, Any]] = []
    line = SimpleNamespace(get_color=lambda: "blue")
    axes = SimpleNamespace(
        plot=lambda x, y, style, label: drawn.append((label, len(x))) or [line],
        annotate=lambda text, xy, color: drawn.append(("text", text)),
        axhline=lambda y, **how: drawn.append((how["label"], None)),
        set=lambda **how: None,
        set_title=lambda text, fontsize: None,
        legend=lambda: None,
    )
    monkeypatch.setitem(sys.modules, "matplotlib", SimpleNamespace(pyplot=None))
    report = ld.recall_report(table, "vec", sample=2, nprobes=(1, 8), refine_factor=2)
    assert report.plot(axes) is axes
    assert drawn == [("refine_factor 2", 2), ("text", "1"), ("text", "8"), DEFAULT, ("exact", None)]
    drawn.clear()
    ld.recall_report(table, "vec", sample=2, nprobes=1, ef=(10, 20), refine_factor=2).plot(axes)
    assert drawn == [("nprobes 1, refine_factor 2", 2), ("text", "10"), ("text", "20"), DEFAULT, ("exact", None)]


def test_plot_without_matplotlib_suggests_an_install(table: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    report = ld.recall_report(table, "vec", sample=1, nprobes=1)
    with pytest.raises(ld.UnsupportedError, match="pip install matplotlib"):
        report.plot()


def test_invalid_arguments_are_rejected(table: ld.LanceDataset, tmp_path: Path) -> None:
    with pytest.raises(ld.UnknownColumnError):
        ld.recall_report(table, "nothing")
    with pytest.raises(ld.WrongTypeError):
        ld.recall_report(table, "id")
    for wrong in ({"k": 0}, {"sample": 0}, {"nprobes": 0}, {"nprobes": (1, -1)}, {"refine_factor": 0}, {"metric": "x"}):
        with pytest.raises(ld.InvalidInputError):
            ld.recall_report(table, "vec", **wrong)
    with pytest.raises(ld.InvalidInputError, match="measures l2, not cosine"):
        ld.recall_report(table, "vec", metric="cosine")
    bare = written(tmp_path / "t.lance", column(np.ones((3, DIM), np.float32)))
    with pytest.raises(ld.InvalidInputError, match="create_index"):
        ld.recall_report(bare, "vec")
    bare.delete("true")
    with pytest.raises(ld.InvalidInputError, match="found none"):
        ld.recall_report(bare, "vec")


def test_wrong_arguments_are_explained_before_a_search(table: ld.LanceDataset, tmp_path: Path) -> None:
    with pytest.raises(ld.WrongTypeError, match=r"unknown argument 'smple'; did you mean 'sample'\?"):
        ld.recall_report(table, "vec", smple=3)  # type: ignore[call-arg]
    for other in (str(tmp_path / "t.lance"), tmp_path / "t.lance", SimpleNamespace(uri="t.lance"), None):
        with pytest.raises(ld.WrongTypeError, match=r"ds: expected LanceDataset, found .*lance_duck\.dataset\(path\)"):
            ld.recall_report(other, "vec")  # type: ignore[arg-type]
