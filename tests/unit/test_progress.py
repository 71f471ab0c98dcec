from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.fragment import FragmentMetadata, LanceFragment, write_fragments
from lance_duck.progress import (
    FileSystemFragmentWriteProgress,
    FragmentWriteProgress,
    NoopFragmentWriteProgress,
)

ROWS = pa.table({"n": [1, 2, 3]})


class Noted(FragmentWriteProgress):
    def __init__(self) -> None:
        self.events: list[tuple[str, int, str, list[int], int]] = []

    def begin(self, fragment: FragmentMetadata, **kwargs: Any) -> None:
        self._note("begin", fragment)

    def complete(self, fragment: FragmentMetadata, **kwargs: Any) -> None:
        self._note("complete", fragment)

    def _note(self, event: str, fragment: FragmentMetadata) -> None:
        (file,) = fragment.files
        self.events.append((event, fragment.id, file.path, file.fields, fragment.physical_rows))


@pytest.mark.parametrize("write", [ld.write_dataset, write_fragments])
def test_an_observer_receives_each_fragment(tmp_path: Path, write: Any) -> None:
    seen = Noted()
    written = write(ROWS, tmp_path / "t", max_rows_per_file=2, progress=seen, storage_options={"fsync": "false"})
    fragments = written if isinstance(written, list) else [f.metadata for f in written.get_fragments()]
    first, second = (fragment.files[0].path for fragment in fragments)
    assert seen.events == [
        ("begin", 0, first, [], 0),
        ("complete", 0, first, [0], 2),
        ("begin", 0, second, [], 0),
        ("complete", 0, second, [0], 1),
    ]


def test_an_observer_receives_the_future_fragment_id(tmp_path: Path) -> None:
    seen = Noted()
    LanceFragment.create(tmp_path / "t", ROWS, fragment_id=4, progress=seen)
    assert [event[:2] for event in seen.events] == [("begin", 4), ("complete", 4)]
    LanceFragment.create(tmp_path / "t", ROWS, progress=NoopFragmentWriteProgress())


@pytest.mark.parametrize("uri", [str, Path, Path.as_uri])
def test_progress_files_mark_complete_fragments(tmp_path: Path, uri: Any) -> None:
    notes = tmp_path / "notes"
    watch = FileSystemFragmentWriteProgress(uri(notes), metadata={"by": "me"})
    made = LanceFragment.create(tmp_path / "t", ROWS, fragment_id=1, progress=watch)
    begun = FragmentMetadata.from_json((notes / "fragment_1.json").read_text())
    assert (begun.id, begun.files[0].path) == (1, made.files[0].path)
    assert not (notes / "fragment_1.in_progress").exists()

    def broken() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches()
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        LanceFragment.create(tmp_path / "t", broken, fragment_id=2, progress=watch)
    left = json.loads((notes / "fragment_2.in_progress").read_text())
    assert left == {"fragment_id": 2, "metadata": {"by": "me"}}
