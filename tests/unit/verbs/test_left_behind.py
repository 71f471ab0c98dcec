"""Every verb on a handle made stale by a restore or overwrite suggests a remedy."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import IncompatibleError, RetryableError

ROWS = pa.table({"id": [1, 2, 3], "x": [1.0, 2.0, 3.0]})
MORE = pa.table({"id": [4], "x": [4.0]})

REFUSED: dict[str, Callable[[ld.LanceDataset], object]] = {
    "delete": lambda table: table.delete("id = 1"),
    "update": lambda table: table.update({"x": "x + 1"}),
    "merge": lambda table: (
        table.merge_insert("id").when_matched_update_all().execute(pa.table({"id": [1], "x": [9.0]}))
    ),
    "truncate": lambda table: table.truncate_table(),
    "compact": lambda table: table.optimize.compact_files(),
    "scalar index": lambda table: table.create_scalar_index("id", "BTREE"),
    "add columns": lambda table: table.add_columns({"y": "x * 2"}),
    "merge columns": lambda table: table.merge(pa.table({"id": [1], "w": [2]}), "id"),
    "rename": lambda table: table.alter_columns({"path": "x", "name": "z"}),
    "drop columns": lambda table: table.drop_columns(["x"]),
    "commit": lambda table: ld.LanceDataset.commit(
        table, ld.LanceOperation.Append(ld.fragment.write_fragments(MORE, table)), read_version=table.version
    ),
}
KEPT: dict[str, Callable[[ld.LanceDataset], object]] = {
    "append": lambda table: ld.write_dataset(MORE, table, mode="append"),
    "insert": lambda table: table.insert(MORE),
    "overwrite": lambda table: ld.write_dataset(MORE, table, mode="overwrite"),
    "config": lambda table: table.update_config({"a": "b"}),
}


def left_behind(place: Path, how: str) -> ld.LanceDataset:
    """Return a handle on a version that is not the newest one any more."""
    table = ld.write_dataset(ROWS, place, storage_options={"fsync": "false"})
    table.insert(MORE)
    other = ld.dataset(place, version=1)
    if how == "restored":
        other.restore()
    else:
        ld.write_dataset(ROWS, other, mode="overwrite")
    return table


@pytest.mark.parametrize("how", ["restored", "overwritten"])
@pytest.mark.parametrize("verb", REFUSED)
def test_a_change_by_a_stale_handle_suggests_checkout_latest(verb: str, how: str, tmp_path: Path) -> None:
    table = left_behind(tmp_path / "t.lance", how)
    with pytest.raises((IncompatibleError, RetryableError)) as raised:
        REFUSED[verb](table)
    message = str(raised.value)
    brought = "restored an older version" if how == "restored" else "replaced the whole table"
    assert brought in message
    assert "call checkout_latest() on the dataset" in message
    assert table.latest_version == 3


@pytest.mark.parametrize("verb", [verb for verb in REFUSED if verb not in ("merge", "commit")])
def test_the_change_succeeds_after_checkout_latest(verb: str, tmp_path: Path) -> None:
    table = left_behind(tmp_path / "t.lance", "restored")
    table.checkout_latest()
    REFUSED[verb](table)
    assert table.version == table.latest_version


@pytest.mark.parametrize("verb", KEPT)
def test_a_change_that_does_not_depend_on_rows_is_rebased(verb: str, tmp_path: Path) -> None:
    table = left_behind(tmp_path / "t.lance", "restored")
    KEPT[verb](table)
    assert table.latest_version == 4


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("verb", REFUSED | KEPT)
def test_a_stale_handle_does_not_damage_a_recreated_table(verb: str, version: int, tmp_path: Path) -> None:
    place = tmp_path / "t.lance"
    table = ld.write_dataset(ROWS, place, storage_options={"fsync": "false"})
    table.insert(MORE)
    shutil.rmtree(place)
    anew = ld.write_dataset(ROWS, place, storage_options={"fsync": "false"})
    for _ in range(1, version):
        anew.insert(MORE)
    before = anew.to_table()
    goes_on = verb in ("append", "insert", "overwrite")
    if goes_on:
        KEPT[verb](table)
    else:
        with pytest.raises(IncompatibleError, match="another table replaced this one since it was read"):
            (REFUSED | KEPT)[verb](table)
    now = ld.dataset(place)
    now.validate()
    assert now.version == version + goes_on
    expected = {
        "append": pa.concat_tables([before, MORE]),
        "insert": pa.concat_tables([before, MORE]),
        "overwrite": MORE,
    }
    assert now.to_table() == expected.get(verb, before)
