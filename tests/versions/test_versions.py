"""Tables of this package and of other pylance versions: each side reads the other's tables and uses its indexes."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest
from versions.environments import QUICK, VERSIONS, file_versions
from versions.meetings import Meeting, they_read, they_read_their_own, they_write, we_read, write_ours

pytestmark = pytest.mark.timeout(1800)
PYLANCES = [pytest.param(version, marks=[] if version in QUICK else [pytest.mark.slow]) for version in VERSIONS]


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our tables, written once for all processes of a run."""
    place = tmp_path_factory.getbasetemp().parent / "ours"
    with (place.parent / "ours.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "done").exists():
            place.mkdir(exist_ok=True)
            assert {what: how for what, how in write_ours(place).items() if how != "ok"} == {}
            (place / "done").touch()
    return place


@pytest.mark.parametrize("version", PYLANCES)
def test_each_version_reads_files_of_the_other(version: str, ours: Path, tmp_path: Path) -> None:
    written = they_write(version, tmp_path)
    tables = {f"{file} {name}" for file in file_versions(version) for name in ("kinds", "deleted", "stable")}
    assert tables - {"0.1 stable"} <= {what for what, how in written.items() if how == "ok"}
    there = they_read(version, ours)
    if there.failures():
        own = they_read_their_own(version, tmp_path)
        assert set(there.failures()) <= set(own.failures()), there.failures()
    assert there.unused() <= unseen(version, there)
    back = we_read(version, tmp_path)
    assert (back.failures(), back.unused()) == ({}, set())
    assert len(back.outcome) > 200


def unseen(version: str, meeting: Meeting) -> set[str]:
    """Return attempts that need no index: pylance before 4 cannot read the label list version."""
    is_old = "2.2" not in file_versions(version)
    return {what for what in meeting.outcome if is_old and "LABEL_LIST" in what}
