"""Every kind of file with bytes flipped, cut or filled: a right answer or a LanceDuckError, never a crash."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from corruption.containers import column_variants, manifest_path, manifest_variants, metadata_start
from corruption.harness import assert_survives
from corruption.mutations import Mutation, apply, at_random, every_byte, every_length, every_word

Damaged = Iterator[tuple[str, bytes]]
VERSIONS = ("2.0", "2.1", "2.2")
quick_or_all = pytest.mark.parametrize("amount", [70, pytest.param(1_000_000, marks=pytest.mark.slow, id="all")])
quick_or_many = pytest.mark.parametrize("amount", [70, pytest.param(4000, marks=pytest.mark.slow, id="many")])
pytestmark = pytest.mark.timeout(3000)


def damage(data: bytes, mutations: Iterable[Mutation]) -> Damaged:
    """Yield each mutation's name and the bytes it makes."""
    for mutation in mutations:
        yield repr(mutation), apply(data, mutation)


def some(items: Iterable[tuple[str, bytes]], amount: int) -> list[tuple[str, bytes]]:
    """Return at most `amount` of the items, always the same ones."""
    listed = list(items)
    return listed if len(listed) <= amount else random.Random(amount).sample(listed, amount)


def some_mutations(data: bytes, mutations: Iterable[Mutation], amount: int) -> list[tuple[str, bytes]]:
    """Return what at most `amount` of the mutations make, always the same ones."""
    listed = list(mutations)
    return list(damage(data, listed if len(listed) <= amount else random.Random(amount).sample(listed, amount)))


def data_file(table: Path) -> Path:
    return next((table / "data").glob("*.lance"))


@quick_or_many
@pytest.mark.parametrize("version", VERSIONS)
def test_data_file_at_random(version: str, amount: int, columns_tables: dict[str, Path], tmp_path: Path) -> None:
    target = data_file(columns_tables[version])
    data = target.read_bytes()
    assert_survives(columns_tables[version], target, damage(data, at_random(len(data), 1, amount)), tmp_path)


@quick_or_many
@pytest.mark.parametrize("version", VERSIONS)
def test_metadata_of_a_data_file(version: str, amount: int, columns_tables: dict[str, Path], tmp_path: Path) -> None:
    target = data_file(columns_tables[version])
    data = target.read_bytes()
    start, end = metadata_start(data), len(data)
    mutations = itertools.chain(
        every_byte(start, end), every_length(start, end), every_word(start, end, 8), every_word(end - 60, end, 4)
    )
    assert_survives(columns_tables[version], target, some_mutations(data, mutations, amount), tmp_path)


@pytest.mark.parametrize("version", VERSIONS)
def test_footer_of_a_data_file(version: str, columns_tables: dict[str, Path], tmp_path: Path) -> None:
    target = data_file(columns_tables[version])
    data = target.read_bytes()
    mutations = itertools.chain(every_byte(len(data) - 40, len(data)), every_length(len(data) - 42, len(data)))
    assert_survives(columns_tables[version], target, damage(data, mutations), tmp_path)


@pytest.mark.parametrize("amount", [200, pytest.param(1_000_000, marks=pytest.mark.slow, id="all")])
@pytest.mark.parametrize("version", VERSIONS)
def test_fields_of_column_metadata(version: str, amount: int, columns_tables: dict[str, Path], tmp_path: Path) -> None:
    target = data_file(columns_tables[version])
    damaged = some(column_variants(target.read_bytes()), amount)
    assert_survives(columns_tables[version], target, damaged, tmp_path)


@pytest.mark.parametrize("amount", [150, pytest.param(1_000_000, marks=pytest.mark.slow, id="all")])
def test_fields_of_the_manifest(amount: int, history: Path, tmp_path: Path) -> None:
    target = manifest_path(history)
    assert_survives(history, target, some(manifest_variants(target.read_bytes()), amount), tmp_path)


@quick_or_all
def test_bytes_of_the_manifest(amount: int, history: Path, tmp_path: Path) -> None:
    target = manifest_path(history)
    data = target.read_bytes()
    mutations = itertools.chain(
        every_byte(0, len(data)),
        every_length(0, len(data)),
        every_word(len(data) - 20, len(data), 8),
        at_random(len(data), 2, 400),
    )
    assert_survives(history, target, some_mutations(data, mutations, amount), tmp_path)


@quick_or_all
@pytest.mark.parametrize("kind", ["arrow", "bin"])
def test_deletion_file(kind: str, amount: int, deletions: dict[str, Path], tmp_path: Path) -> None:
    table = deletions[kind]
    target = next((table / "_deletions").glob(f"*.{kind}"))
    data = target.read_bytes()
    edges = [*range(min(500, len(data))), *range(max(len(data) - 500, 500), len(data))]
    mutations = itertools.chain(
        *(every_byte(i, i + 1) for i in edges),
        every_word(0, min(64, len(data)), 4),
        (("cut", i) for i in edges),
        at_random(len(data), 3, 500),
    )
    assert_survives(table, target, some_mutations(data, mutations, amount), tmp_path)


NOT_NEEDED = ("_versions/latest_version_hint.json", "_transactions/*.txn", "_refs/tags/*", "_refs/branches/*")


def test_files_that_a_read_of_the_latest_version_does_not_need(history: Path, tmp_path: Path) -> None:
    for i, pattern in enumerate(NOT_NEEDED):
        target = next(history.glob(pattern))
        data = target.read_bytes()
        (tmp_path / str(i)).mkdir()
        assert_survives(history, target, damage(data, at_random(len(data), 4, 15)), tmp_path / str(i))
