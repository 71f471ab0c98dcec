"""Every kind of file with bytes flipped, cut or filled: a right answer or a LanceDuckError, never a crash."""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from corruption.containers import (
    Variants,
    column_variants,
    legacy_metadata_start,
    legacy_variants,
    manifest_path,
    manifest_variants,
    metadata_start,
)
from corruption.harness import assert_survives
from corruption.mutations import Mutation, apply, at_random, every_byte, every_length, every_word

import lance_duck as ld

Damaged = Iterator[tuple[str, bytes]]
VERSIONS = ("2.0", "2.1", "2.2", "2.3")
quick_or_many = pytest.mark.parametrize("amount", [20, pytest.param(4000, marks=pytest.mark.slow, id="many")])
pytestmark = pytest.mark.timeout(3000)


def damage(data: bytes, mutations: Iterable[Mutation]) -> Damaged:
    """Yield each mutation's name and the bytes it makes."""
    for mutation in mutations:
        yield repr(mutation), apply(data, mutation)


def some(items: Variants, amount: int) -> list[tuple[str, bytes]]:
    """Return at most `amount` variants, always the same ones. The other files are not created."""
    sample: list[tuple[str, Callable[[], bytes]]] = []
    generator = random.Random(amount)
    for count, item in enumerate(items):
        place = count if count < amount else generator.randrange(count + 1)
        if place < amount:
            sample[place : place + 1] = [item]
    return [(name, made()) for name, made in sample]


def some_mutations(data: bytes, mutations: Iterable[Mutation], amount: int) -> list[tuple[str, bytes]]:
    """Return what at most `amount` of the mutations make, always the same ones."""
    listed = list(mutations)
    return list(damage(data, listed if len(listed) <= amount else random.Random(amount).sample(listed, amount)))


def data_file(table: Path) -> Path:
    return next((table / "data").glob("*.lance"))


@quick_or_many
@pytest.mark.parametrize("version", VERSIONS)
def test_damaged_data_files_raise_an_error_or_read_correctly(
    version: str, amount: int, columns_tables: dict[str, Path], tmp_path: Path
) -> None:
    target = data_file(columns_tables[version])
    data = target.read_bytes()
    start, end = metadata_start(data), len(data)
    footer = itertools.chain(every_byte(end - 40, end), every_length(end - 42, end), every_word(end - 40, end, 4))
    metadata = itertools.chain(every_byte(start, end), every_length(start, end), every_word(start, end, 8))
    damaged = [
        *some_mutations(data, footer, amount),
        *some_mutations(data, metadata, amount),
        *some(column_variants(data), 2 * amount),
        *damage(data, at_random(len(data), 1, amount)),
    ]
    assert_survives(columns_tables[version], target, damaged, tmp_path)


@quick_or_many
def test_data_file_of_version_0_1(amount: int, columns_tables: dict[str, Path], tmp_path: Path) -> None:
    target = data_file(columns_tables["legacy"])
    data = target.read_bytes()
    start, end = legacy_metadata_start(data), len(data)
    footer = itertools.chain(every_byte(end - 16, end), every_length(end - 18, end), every_word(end - 16, end, 4))
    tables = itertools.chain(every_byte(start - 4000, end), every_word(start - 4000, end, 8))
    damaged = [
        *some_mutations(data, footer, amount),
        *some_mutations(data, tables, 2 * amount),
        *some(legacy_variants(data), 2 * amount),
        *damage(data, at_random(len(data), 1, 2 * amount)),
    ]
    assert_survives(columns_tables["legacy"], target, damaged, tmp_path)


@quick_or_many
def test_damaged_manifests_raise_an_error_or_read_correctly(amount: int, history: Path, tmp_path: Path) -> None:
    target = manifest_path(history)
    data = target.read_bytes()
    size = len(data)
    mutations = itertools.chain(
        every_byte(0, size), every_length(0, size), every_word(size - 20, size, 8), at_random(size, 2, 400)
    )
    damaged = [*some_mutations(data, mutations, 2 * amount), *some(manifest_variants(data), 2 * amount)]
    assert_survives(history, target, damaged, tmp_path)


@quick_or_many
@pytest.mark.parametrize("kind", ["arrow", "bin"])
def test_damaged_deletion_files_raise_an_error_or_read_correctly(
    kind: str, amount: int, deletions: dict[str, Path], tmp_path: Path
) -> None:
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


@pytest.mark.parametrize("pattern", NOT_NEEDED)
def test_damage_to_files_of_old_versions_does_not_affect_the_latest(
    pattern: str, history: Path, tmp_path: Path
) -> None:
    truth = ld.dataset(str(history)).to_table()
    table = tmp_path / "t.lance"
    shutil.copytree(history, table)
    target = next(table.glob(pattern))
    data = target.read_bytes()
    for _, changed in damage(data, at_random(len(data), 4, 25)):
        target.write_bytes(changed)
        assert ld.dataset(str(table)).to_table() == truth
