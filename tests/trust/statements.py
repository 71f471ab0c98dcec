"""Random SQL on Lance tables, compared with native tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sql.mixed_use import used
from sql.random_conditions import selected
from sql.random_errors import failed
from sql.random_lives import changed, queried
from sql.twins import Twins
from trust.peers import check_with_pylance


def queries(seed: int, folder: Path) -> Mapping[str, int]:
    """Run random queries, with changes between them."""
    return _checked(queried(folder, seed, statements=120))


def changes(seed: int, folder: Path) -> Mapping[str, int]:
    """Run random changes."""
    return _checked(changed(folder, seed, statements=100))


def conditions(seed: int, folder: Path) -> Mapping[str, int]:
    """Run queries with random conditions."""
    made = selected(folder, seed, statements=150)
    assert not made.differences, "\n".join(made.differences)
    return made.counts


def errors(seed: int, folder: Path) -> Mapping[str, int]:
    """Run random failing statements. The connection works after each of them."""
    counts = failed(folder, seed, statements=150)
    return {f"errors of {kind}": count for kind, count in counts.items()}


def open_files(seed: int, folder: Path) -> Mapping[str, int]:
    """Run mixed statements on one connection. They leave no file open and few files mapped."""
    counts = used(folder, seed, statements=2_000)
    assert max(descriptors for descriptors, _, _ in counts) == 0, counts
    assert max(maps for _, maps, _ in counts) < 300, counts
    return {"statements": 2_000}


def _checked(twins: Twins) -> Mapping[str, int]:
    assert not twins.differences, "\n".join([*twins.log, *twins.differences])
    check_with_pylance(str(twins.uri))
    return {"statements": sum(twins.counts.values()), "refused by both": sum(twins.refused.values())}
