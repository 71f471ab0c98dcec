from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import IndexExistsError, InvalidInputError, LanceDuckError, NotIndexableError, UnsupportedError

UUID = "5b88dca1-0379-496c-925d-f723d45de70a"


@pytest.fixture
def ds(tmp_path: Path) -> ld.LanceDataset:
    """Three fragments: "duck 0" and "lake", "duck 1" and "lake", …."""
    texts = [text for i in range(3) for text in (f"duck word{i}", "lake")]
    data = pa.table({"t": texts, "n": range(6)})
    return ld.write_dataset(data, tmp_path / "t.lance", max_rows_per_file=2, storage_options={"fsync": "false"})


def part(ds: ld.LanceDataset, *fragments: int, **parameters: object) -> ld.Index:
    options = {"index_uuid": UUID, **parameters}
    segment = ds.create_scalar_index("t", "INVERTED", "i", fragment_ids=fragments, **options)
    assert segment is not None
    return segment


def files(ds: ld.LanceDataset) -> list[str]:
    folder = Path(ds.uri) / "_indices" / UUID
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def segment_of(ds: ld.LanceDataset, *fragments: int) -> ld.Index:
    return ld.Index(UUID, "i", [0], ds.version, set(fragments), 0)


def test_parts_are_merged_and_committed(ds: ld.LanceDataset) -> None:
    for fragment_id in range(3):
        part(ds, fragment_id)
    assert ds.version == 1
    events: list[tuple[str, int | None, int | None]] = []
    ds.merge_index_metadata(UUID, "inverted", None, lambda e: events.append((e.event, e.completed, e.total)))
    assert events == [("start", 0, 6), ("complete", 6, 6)]
    joined = ["metadata.lance", "part_0_docs.lance", "part_0_invert.lance", "part_0_tokens.lance"]
    assert files(ds) == joined
    ds.merge_index_metadata(UUID, "FTS")
    assert files(ds) == joined
    ds.commit_existing_index_segments("i", "t", [segment_of(ds, 0, 1, 2)])
    (index,) = ds.describe_indices()
    assert (index.name, index.num_rows_indexed) == ("i", 6)
    statistics = ds.index_statistics("i")
    assert (statistics["index_type"], statistics["num_unindexed_rows"]) == ("Inverted", 0)
    assert ds.to_table(full_text_query="duck")["n"].to_pylist() == [0, 2, 4]


def test_a_part_without_a_uuid_returns_its_generated_one(ds: ld.LanceDataset) -> None:
    first = part(ds, 0, index_uuid=None)
    assert (first.name, first.fragment_ids) == ("i", {0})
    part(ds, 2, 1, index_uuid=first.uuid)
    ds.merge_index_metadata(first.uuid, "INVERTED")
    ds.commit_existing_index_segments("i", "t", [ld.Index(first.uuid, "i", [0], 1, {0, 1, 2}, 0)])
    assert ds.to_table(full_text_query="lake")["n"].to_pylist() == [1, 3, 5]


def test_a_part_replaces_an_earlier_attempt(tmp_path: Path) -> None:
    texts = [" ".join(f"w{i * 1000 + j}" for j in range(1000)) for i in range(300)]
    ds = ld.write_dataset({"t": texts}, tmp_path / "t.lance", storage_options={"fsync": "false"})
    part(ds, 0, memory_limit=1)
    before = files(ds)
    assert "staging/part_1_metadata.lance" in before
    part(ds, 0)
    assert files(ds) == [f"staging/part_0_{kind}.lance" for kind in ("docs", "invert", "metadata", "tokens")]
    ds.merge_index_metadata(UUID, "INVERTED")
    ds.commit_existing_index_segments("i", "t", [segment_of(ds, 0)])
    assert ds.index_statistics("i")["indices"][0]["num_docs"] == 300


def test_overlapping_parts_are_rejected(ds: ld.LanceDataset) -> None:
    part(ds, 0, 1)
    part(ds, 1, 2)
    before = files(ds)
    with pytest.raises(InvalidInputError, match="each row in one part"):
        ds.merge_index_metadata(UUID, "INVERTED")
    assert files(ds) == before


def test_parts_must_be_merged_before_the_commit(ds: ld.LanceDataset) -> None:
    segment = part(ds, 0)
    with pytest.raises(InvalidInputError, match="not merged yet"):
        ds.commit_existing_index_segments("i", "t", [segment])
    operation = ld.LanceOperation.CreateIndex([segment], [])
    with pytest.raises(InvalidInputError, match="not merged yet"):
        ld.LanceDataset.commit(ds, operation, read_version=1)


def test_invalid_parts_are_rejected(ds: ld.LanceDataset) -> None:
    for ids, found in (((), "one fragment or more"), ((9,), "no fragment 9")):
        with pytest.raises(InvalidInputError, match=found):
            part(ds, *ids)
    with pytest.raises(InvalidInputError, match="create_index_uncommitted"):
        ds.create_scalar_index("n", "BTREE", fragment_ids=[0], index_uuid=UUID)
    with pytest.raises(NotIndexableError):
        ds.create_scalar_index("n", "INVERTED", fragment_ids=[0], index_uuid=UUID)
    with pytest.raises(InvalidInputError, match="uuid"):
        part(ds, 0, index_uuid="x")
    with pytest.raises(InvalidInputError, match="does not have parts"):
        ds.merge_index_metadata(str(uuid4()), "INVERTED")
    with pytest.raises(InvalidInputError, match="uuid"):
        ds.merge_index_metadata("x", "INVERTED")
    with pytest.raises(UnsupportedError, match="merge_existing_index_segments"):
        ds.merge_index_metadata(UUID, "NGRAM")
    assert files(ds) == []
    part(ds, 0)
    ds.merge_index_metadata(UUID, "INVERTED")
    with pytest.raises(InvalidInputError, match="already merged"):
        part(ds, 1)
    ds.commit_existing_index_segments("i", "t", [segment_of(ds, 0)])
    with pytest.raises(InvalidInputError, match="already has uuid"):
        part(ds, 1)
    with pytest.raises(IndexExistsError):
        part(ds, 1, index_uuid=None, replace=False)


def test_broken_parts_prevent_the_segment(ds: ld.LanceDataset) -> None:
    part(ds, 0)
    part(ds, 1)
    folder = Path(ds.uri) / "_indices" / UUID / "staging"
    for kind in ("metadata", "docs", "invert", "tokens"):
        path = folder / f"part_{1 << 32}_{kind}.lance"
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2])
        with pytest.raises(LanceDuckError):
            ds.merge_index_metadata(UUID, "INVERTED")
        path.unlink()
        if kind != "metadata":  # without it the partition was never finished
            with pytest.raises(LanceDuckError):
                ds.merge_index_metadata(UUID, "INVERTED")
        path.write_bytes(data)
        assert not [name for name in files(ds) if not name.startswith("staging/")]
    ds.merge_index_metadata(UUID, "INVERTED")
