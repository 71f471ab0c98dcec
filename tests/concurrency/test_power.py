from __future__ import annotations

from pathlib import Path

import pytest
from support.faults import Crash, Faults, stop_at
from support.power import PowerCut

from lance_duck.store import Store, open_store


def change(store: Store, *, late: bool = False) -> None:
    """Write files like a commit, then a name that makes them visible, durable at once or with the next `sync`."""
    for at in range(2):
        with store.create(f"data/{at}", late=at == 1) as sink:
            sink.write(bytes(100))
    store.sync()
    with store.create("data/2", late=True) as sink:
        sink.write(bytes(100))
    store.put_if_absent("v/1", b"0 1", late=late)
    if late:
        store.sync()
    store.put("hint", b"1", safe=False)


def readable(root: Path) -> bool:
    if not (root / "v" / "1").exists():
        return False
    assert (root / "v" / "1").read_bytes() == b"0 1"
    return all((root / "data" / str(at)).read_bytes() == bytes(100) for at in range(3))


def test_only_flushed_data_survives_a_power_cut(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    (disk / "old").mkdir(parents=True)
    (disk / "old" / "file").write_bytes(b"old")
    with PowerCut(disk) as cut:
        change(open_store(disk / "t"))
        (disk / "old" / "new").write_bytes(b"never flushed")
    left = cut.after(tmp_path / "left")
    assert readable(left / "t")
    assert (left / "old" / "file").read_bytes() == b"old"
    assert not (left / "old" / "new").exists()
    assert not (left / "t" / "hint").exists() or (left / "t" / "hint").read_bytes() == b""


@pytest.mark.parametrize("late", [False, True])
def test_a_name_is_visible_only_after_its_content_is_durable(tmp_path: Path, late: bool) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    with Faults() as seen:
        change(open_store(tmp_path / "counted"), late=late)
    found = []
    for at in range(len(seen.steps)):
        with pytest.raises(Crash), PowerCut(disk, stop_at(at)) as cut:
            change(open_store(disk / str(at)), late=late)
        found.append(readable(cut.after(tmp_path / f"left {at}") / str(at)))
    assert found == sorted(found)
    assert found[-1]


def test_without_flushing_a_power_cut_loses_it(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    with PowerCut(disk) as cut:
        change(open_store(disk / "t", {"fsync": "false"}))
    assert not (cut.after(tmp_path / "left") / "t").exists()
