"""Full-text indexes with parts from several workers: each library continues at any step of the other."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import lance
import pyarrow as pa
import pytest
from lance.dataset import Index
from lance.query import DocumentGranularity
from oracle.full_text import OPTIONS, QUERIES, all_scores, ours, rows

import lance_duck as ld

Dataset = Any
NAME = "s_idx"
FRAGMENTS = range(4)
WORKERS = ([0], [3, 1], [2])


def table(root: Path, **options: Any) -> str:
    """Write 4 fragments of 50 rows."""
    uri = str(root / "t.lance")
    lance.write_dataset(rows(5, 0, 200), uri, max_rows_per_file=50, **options)
    return uri


def opened(uri: str, who: str) -> Dataset:
    return ours(uri) if who == "ours" else lance.dataset(uri)


def write_parts(uri: str, writers: Sequence[str], uuid: str, column: str = "s", **options: Any) -> None:
    for who, ids in zip(writers, WORKERS, strict=True):
        opened(uri, who).create_scalar_index(
            column, "INVERTED", NAME, replace=False, fragment_ids=ids, index_uuid=uuid, **options
        )


def commit(uri: str, who: str, uuid: str, column: str = "s") -> Dataset:
    module: Any = ld if who == "ours" else lance
    dataset = opened(uri, who)
    field = next(f.id() for f in lance.dataset(uri).lance_schema.fields() if f.name() == column)
    index: Any = ld.Index if who == "ours" else Index
    segment = index(
        uuid=uuid,
        name=NAME,
        fields=[field],
        dataset_version=dataset.version,
        fragment_ids=set(FRAGMENTS),
        index_version=0,
    )
    operation = module.LanceOperation.CreateIndex(new_indices=[segment], removed_indices=[])
    return module.LanceDataset.commit(uri, operation, read_version=dataset.version)


def our_scores(uri: str) -> list[dict[int, float]]:
    """Return the scores found by this package; an unused segment is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tables = [ours(uri).to_table(columns=["id", "_score"], full_text_query=query) for query in QUERIES]
    return [dict(zip(t["id"].to_pylist(), t["_score"].to_pylist(), strict=True)) for t in tables]


def files_of(uri: str, uuid: str) -> set[str]:
    folder = Path(uri) / "_indices" / uuid
    return {str(path.relative_to(folder)) for path in folder.rglob("*.lance")}


@pytest.mark.parametrize(
    ("writers", "joiner", "committer"),
    [
        (("ours", "ours", "ours"), "ours", "ours"),
        (("ours", "ours", "ours"), "pylance", "pylance"),
        (("pylance", "pylance", "pylance"), "ours", "ours"),
        (("ours", "pylance", "ours"), "pylance", "ours"),
        (("pylance", "ours", "pylance"), "ours", "pylance"),
    ],
)
@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_parts_from_both_libraries_merge_into_the_same_index_as_one_build(
    tmp_path: Path, writers: tuple[str, ...], joiner: str, committer: str, stable_row_ids: bool
) -> None:
    uri, uuid = table(tmp_path, enable_stable_row_ids=stable_row_ids), str(uuid4())
    write_parts(uri, writers, uuid)
    opened(uri, joiner).merge_index_metadata(uuid, "INVERTED")
    assert files_of(uri, uuid) == {f"part_0_{name}.lance" for name in ("docs", "invert", "tokens")} | {"metadata.lance"}
    commit(uri, committer, uuid)
    parts, here = all_scores(uri), our_scores(uri)
    for dataset in (ours(uri), lance.dataset(uri)):
        assert dataset.stats.index_stats(NAME)["index_type"] == "Inverted"
    assert [(index["name"], index["type"]) for index in ours(uri).list_indices()] == [(NAME, "Inverted")]
    lance.dataset(uri).create_scalar_index("s", "INVERTED", NAME)
    assert parts == all_scores(uri)
    assert here == our_scores(uri) == parts


def test_part_files_have_the_same_names_as_in_pylance(tmp_path: Path) -> None:
    names = {}
    for who in ("ours", "pylance"):
        uri, uuid = table(tmp_path / who), str(uuid4())
        write_parts(uri, (who,) * 3, uuid)
        names[who] = files_of(uri, uuid)
        assert lance.dataset(uri).version == 1
    pylance_numbers = {0: "0", 3: str(3 << 32), 2: str(2 << 32)}
    kinds = ("metadata", "docs", "invert", "tokens")
    assert names["pylance"] == {f"staging/part_{n}_{kind}.lance" for n in pylance_numbers.values() for kind in kinds}
    # A part is named after its lowest fragment, in any fragment order.
    assert names["ours"] == {f"staging/part_{n << 32}_{kind}.lance" for n in (0, 1, 2) for kind in kinds}


@pytest.mark.parametrize("joiner", ["ours", "pylance"])
@pytest.mark.parametrize(
    "options",
    [
        {"with_position": True, "stem": False, "remove_stop_words": False},
        {"format_version": 3, "block_size": 256, "with_position": True},
        {"base_tokenizer": "ngram"},
        {"custom_stop_words": ["lake"]},
    ],
    ids=lambda options: next(iter(options)),
)
def test_an_index_built_in_parts_keeps_the_parameters(tmp_path: Path, options: dict[str, Any], joiner: str) -> None:
    uri, uuid = table(tmp_path), str(uuid4())
    write_parts(uri, ("ours", "ours", "ours"), uuid, **options)
    opened(uri, joiner).merge_index_metadata(uuid, "INVERTED")
    commit(uri, joiner, uuid)
    phrases = "with_position" in options
    queries = ("duc", "lake") if "base_tokenizer" in options else QUERIES
    before = all_scores(uri, phrases=phrases, queries=queries)
    lance.dataset(uri).create_scalar_index("s", "INVERTED", NAME, **options)
    assert before == all_scores(uri, phrases=phrases, queries=queries)
    assert any(before)


@pytest.mark.parametrize("joiner", ["ours", "pylance"])
def test_an_index_built_in_parts_can_be_extended(tmp_path: Path, joiner: str) -> None:
    uri, uuid = table(tmp_path), str(uuid4())
    write_parts(uri, ("ours", "pylance", "ours"), uuid)
    opened(uri, joiner).merge_index_metadata(uuid, "INVERTED")
    commit(uri, joiner, uuid)
    ours(uri).insert(rows(6, 200, 50))
    opened(uri, joiner).optimize.optimize_indices()
    grown = all_scores(uri)
    assert our_scores(uri) == grown
    lance.dataset(uri).create_scalar_index("s", "INVERTED", NAME)
    assert all_scores(uri) == grown


@pytest.mark.parametrize("joiner", ["ours", "pylance"])
def test_parts_without_documents_add_nothing(tmp_path: Path, joiner: str) -> None:
    uri, uuid = str(tmp_path / "t.lance"), str(uuid4())
    texts = pa.array([None, "", "duck lake", "duck"], pa.string())
    lance.write_dataset(pa.table({"s": texts, "id": range(4)}), uri, max_rows_per_file=1)
    write_parts(uri, ("ours", "pylance", "ours"), uuid)
    opened(uri, joiner).merge_index_metadata(uuid, "INVERTED")
    commit(uri, joiner, uuid)
    for dataset in (ours(uri), lance.dataset(uri)):
        assert sorted(dataset.to_table(full_text_query="duck")["id"].to_pylist()) == [2, 3]


@pytest.mark.parametrize("joiner", ["ours", "pylance"])
def test_an_index_without_documents_does_not_have_partitions(tmp_path: Path, joiner: str) -> None:
    uri, uuid = str(tmp_path / "t.lance"), str(uuid4())
    lance.write_dataset(pa.table({"s": pa.nulls(4, pa.string()), "id": range(4)}), uri, max_rows_per_file=1)
    write_parts(uri, ("ours", "ours", "ours"), uuid, stem=False)
    opened(uri, joiner).merge_index_metadata(uuid, "INVERTED")
    assert files_of(uri, uuid) == {"metadata.lance"}
    commit(uri, "ours", uuid)
    for dataset in (ours(uri), lance.dataset(uri)):
        assert dataset.to_table(full_text_query="duck").num_rows == 0
        assert dataset.stats.index_stats(NAME)["indices"][0]["params"]["stem"] is False


@pytest.mark.parametrize("joiner", ["ours", "pylance"])
@pytest.mark.parametrize(
    ("column", "query", "count", "granularity"),
    [("l", "duck", 20, DocumentGranularity.LIST_ELEMENT), ("j", "name,str,duck", 40, DocumentGranularity.ROW)],
)
def test_parts_may_hold_list_elements_and_json(
    tmp_path: Path, joiner: str, column: str, query: str, count: int, granularity: DocumentGranularity
) -> None:
    lists = [[f"duck {i}", "lake"] if i % 2 else [] for i in range(40)]
    objects = pa.array([f'{{"name":"duck {i}"}}' for i in range(40)], pa.json_())
    uri, uuid = str(tmp_path / "t.lance"), str(uuid4())
    ld.write_dataset(pa.table({"l": lists, "j": objects}), uri, max_rows_per_file=10, storage_options=OPTIONS)
    write_parts(uri, ("ours", "pylance", "ours"), uuid, column, document_granularity=granularity)
    opened(uri, joiner).merge_index_metadata(uuid, "INVERTED")
    commit(uri, "ours", uuid, column)  # committed by pylance, list elements are refused by its own searches
    for dataset, module in ((ours(uri), ld.query), (lance.dataset(uri), lance.query)):
        scanner: Any = dataset.scanner(full_text_query=module.MatchQuery(query, column), with_row_id=True)
        assert len(set(scanner.to_table()["_rowid"].to_pylist())) == count
    assert NAME in ours(uri).scanner(full_text_query=ld.query.MatchQuery(query, column)).explain_plan()


def test_phrases_need_positions_in_all_parts(tmp_path: Path) -> None:
    uri, uuid = table(tmp_path), str(uuid4())
    for who, positions in (("ours", True), ("pylance", False)):
        opened(uri, who).create_scalar_index(
            "s", "INVERTED", fragment_ids=[int(positions)], index_uuid=uuid, with_position=positions
        )
    for who, error in (("ours", ld.errors.UnsupportedError), ("pylance", Exception)):
        with pytest.raises(error, match=r"different full-text parameters|mismatched positions"):
            opened(uri, who).merge_index_metadata(uuid, "INVERTED")
