"""The generators of hostile structures terminate, change something, and are reproducible by seed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from corruption.containers import manifest_path, read_manifest
from corruption.structures import changed_bytes, changed_container, changed_json, changed_legacy, changed_manifest

COUNT = 60


@pytest.mark.parametrize("version", ["legacy", "2.0", "2.1", "2.2", "2.3"])
def test_data_file_mutations_are_reproducible_and_varied(version: str, columns_tables: dict[str, Path]) -> None:
    data = next((columns_tables[version] / "data").glob("*.lance")).read_bytes()
    change = changed_legacy if version == "legacy" else changed_container
    made = [change(random.Random(seed), data) for seed in range(COUNT)]
    assert [change(random.Random(seed), data) for seed in range(5)] == made[:5]
    assert len(set(made)) > COUNT * 3 // 4
    assert max(map(len, made)) < 20 * len(data)
    assert all(each[-4:] == b"LANC" or version != "legacy" for each in made)


def test_mutated_manifests_can_be_parsed(history: Path) -> None:
    data = manifest_path(history).read_bytes()
    made = [changed_manifest(random.Random(seed), data) for seed in range(COUNT)]
    assert len(set(made) - {data}) > COUNT * 3 // 4
    assert sum(read_manifest(each) != read_manifest(data) for each in made) > COUNT // 2


def test_json_and_byte_mutations_are_reproducible_and_varied() -> None:
    texts = {changed_json(random.Random(seed), b'{"a": 1, "b": [2]}') for seed in range(COUNT)}
    assert {b'{"a": null, "b": [2]}', b'{"a": 1, "b": -1}'} <= texts
    assert changed_json(random.Random(0), b"no JSON") == changed_bytes(random.Random(0), b"no JSON")
    assert all(isinstance(changed_bytes(random.Random(seed), b""), bytes) for seed in range(COUNT))
