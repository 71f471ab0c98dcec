"""Leftovers of a killed writer do not disturb the other library."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.store.base import is_temporary, temporary_name
from lance_duck.wire import paths
from lance_duck.wire.paths import ManifestName


@pytest.mark.parametrize("v2", [True, False])
def test_leftover_files_do_not_affect_either_library(tmp_path: Path, v2: bool) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"a": [1]}), uri, enable_v2_manifest_paths=v2)
    lance.write_dataset(pa.table({"a": [2]}), uri, mode="append")
    root = tmp_path / "t.lance"
    name = ManifestName(3, 2 if v2 else 1)
    manifest = next(root.glob("_versions/*.manifest")).read_bytes()
    left = [
        temporary_name(name.path),
        f"{name.path}#1",
        f"_versions/.tmp_{name.version}.manifest_0",
        f"{name.path}-6fa459ea-ee8a-3ca4-894e-db77e160355e",
        temporary_name(paths.VERSION_HINT),
        temporary_name("data/x.lance"),
        "data/.tmpAbCdEf",
        temporary_name("_transactions/2-x.txn"),
        temporary_name("_deletions/0-2-7.arrow"),
    ]
    for path in left:
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_bytes(manifest)
    assert all(is_temporary(path) or paths.parse_staged_manifest(path) for path in left)
    assert ld.dataset(uri).version == lance.dataset(uri).version == 2
    assert [v["version"] for v in ld.dataset(uri).versions()] == [1, 2]
    lance.write_dataset(pa.table({"a": [3]}), uri, mode="append")
    assert ld.dataset(uri).version == lance.dataset(uri).version == 3
    lance.dataset(uri).cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert lance.dataset(uri).to_table() == ld.dataset(uri).to_table() == pa.table({"a": [1, 2, 3]})
