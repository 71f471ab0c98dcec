"""An append that keeps fragments as bytes stores the manifest that is made from all fragments."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.commit.samples import NEW, OPERATIONS, fragment, index, schema

from lance_duck.commit import Append, CreateIndex, Delete, Operation, Overwrite, commit, create_table
from lance_duck.commit.committer import draft_of
from lance_duck.commit.manifest_builder import build_manifest
from lance_duck.errors import LanceDuckError
from lance_duck.snapshot import Location, Snapshot, open_snapshot
from lance_duck.wire.manifest import Manifest, read_manifest
from lance_duck.wire.manifest_write import manifest_file

APPENDS: dict[str, Operation] = {
    "one": Append([NEW]),
    "three": Append([NEW, NEW, NEW]),
    "none": Append([]),
    "with a deletion file": Append([fragment(0, deleted=2)]),
    "of another size": Append([fragment(0, rows=99)]),
}
OTHERS = {
    **{name: operation for name, operation in OPERATIONS.items() if "Overlay" not in name},
    "second segment": CreateIndex([index("on a", 0, covers=(1,), number=2)]),
    "delete all": Delete([], [0, 1]),
    "overwrite with nothing": Overwrite(schema(), []),
}
STEPS = st.one_of(st.sampled_from(sorted(APPENDS)), st.sampled_from(sorted(APPENDS)), st.sampled_from(sorted(OTHERS)))


def stored(snapshot: Snapshot) -> bytes:
    return bytes(snapshot.store.get(snapshot.manifest.path.removeprefix(snapshot.store.uri).lstrip("/")))


def plain(before: Snapshot, after: Manifest) -> bytes:
    """Return the manifest file of an append, made from all fragments."""
    transaction = after.inline_transaction
    assert transaction is not None
    draft = build_manifest(draft_of(before), transaction, after.version)
    for part in ("writer_version", "timestamp"):
        getattr(draft.manifest, part).CopyFrom(getattr(after.proto, part))
    draft.manifest.transaction_file = after.proto.transaction_file
    return manifest_file(draft.manifest, transaction, draft.segments)


def changed(snapshot: Snapshot, name: str) -> Snapshot:
    """Return the next version, or the same if the operation does not apply to it."""
    try:
        return commit(snapshot, APPENDS.get(name) or OTHERS[name])
    except LanceDuckError:
        return snapshot


def check(before: Snapshot, after: Snapshot) -> None:
    data = stored(after)
    assert len(data) == after.manifest.size
    on_disk = read_manifest(data, "on disk")
    expected = read_manifest(plain(before, on_disk), "expected")
    assert on_disk.is_sealed
    assert on_disk.proto == expected.proto
    if len(on_disk.config) < 2 and len(on_disk.metadata) < 2:  # maps have no order
        assert data == plain(before, on_disk)
    assert after.manifest.proto == on_disk.proto
    assert after.indices == on_disk.indices
    assert after.fragments.ids() == [each.id for each in on_disk.proto.fragments]
    assert list(after.fragments) == list(on_disk.fragments)
    assert len(after.fragments) == len(on_disk.fragments)
    properties: tuple[str, ...] = ("schema", "config", "metadata", "base_paths", "timestamp", "writer", "reader_flags")
    for each in (*properties, "has_legacy_files", "data_storage_version", "max_fragment_id", "next_row_id"):
        assert getattr(after.manifest, each) == getattr(on_disk, each), each


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=12), st.booleans(), st.data())
def test_appends_store_the_manifest_made_from_all_fragments(steps: list[str], stable: bool, data: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        first = Overwrite(schema(), [fragment(0), fragment(1)])
        options = {"fsync": "false"}
        snapshot = create_table(Location(str(Path(folder) / "t"), options), first, stable_row_ids=stable)
        for step in steps:
            if data.draw(st.integers(0, 5)) == 0:
                snapshot = open_snapshot(snapshot.uri, storage_options=options)
            after = changed(snapshot, step)
            if after is not snapshot and step in APPENDS:
                check(snapshot, after)
            snapshot = after


@pytest.mark.parametrize("kept", [True, False], ids=["of this process", "read from disk"])
def test_an_append_copies_only_the_first_fragment(tmp_path: Path, kept: bool) -> None:
    first = Overwrite(schema(), [fragment(0), fragment(1)])
    options = {"fsync": "false"}
    before = commit(create_table(Location(str(tmp_path / "t"), options), first), Append([NEW]))
    if not kept:
        before = open_snapshot(before.uri, storage_options=options)
    after = commit(before, Append([NEW]))
    assert [each.id for each in after.manifest.head.fragments] == [0]
    assert after.fragments.ids() == [0, 1, 2, 3]
    assert "proto" not in after.manifest.__dict__
