"""Cleanup by the config of a table."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError
from lance_duck.maintenance.auto_cleanup import parse_duration

ONE = pa.table({"a": [1]})


def versions(dataset: ld.LanceDataset) -> list[int]:
    return [entry["version"] for entry in dataset.version_refs()]


def test_old_versions_are_removed_at_each_interval(tmp_path: Path) -> None:
    dataset = ld.write_dataset(ONE, tmp_path, auto_cleanup_options={"interval": 3, "older_than_seconds": 0})
    seen = []
    for _ in range(6):
        dataset.insert(ONE)
        seen.append(versions(dataset))
    assert seen == [[1, 2], [2, 3], [2, 3, 4], [2, 3, 4, 5], [5, 6], [5, 6, 7]]


def test_write_dataset_runs_auto_cleanup(tmp_path: Path) -> None:
    ld.write_dataset(ONE, tmp_path, auto_cleanup_options={"interval": 2, "older_than_seconds": 0})
    for expected in ([1, 2], [1, 2, 3], [3, 4]):
        assert versions(ld.write_dataset(ONE, tmp_path, mode="append")) == expected


def test_auto_cleanup_can_be_enabled_and_disabled(tmp_path: Path) -> None:
    dataset = ld.write_dataset(ONE, tmp_path)
    dataset.optimize.enable_auto_cleanup({"interval": 2, "older_than_seconds": 0})
    assert dataset.config() == {"lance.auto_cleanup.interval": "2", "lance.auto_cleanup.older_than": "0s"}
    dataset.optimize.disable_auto_cleanup()
    assert dataset.config() == {}


def test_reading_the_newest_version_runs_no_cleanup(tmp_path: Path) -> None:
    writer = ld.write_dataset(ONE, tmp_path)
    reader = ld.dataset(tmp_path)
    writer.update_config({"lance.auto_cleanup.interval": "5", "lance.auto_cleanup.retain_versions": "1"})
    for _ in range(2):
        writer.insert(ONE)
    reader.checkout_latest()
    assert versions(reader) == [1, 2, 3, 4]


def test_an_invalid_setting_warns_after_the_commit(tmp_path: Path) -> None:
    dataset = ld.write_dataset(ONE, tmp_path)
    with pytest.warns(RuntimeWarning, match=r"lance\.auto_cleanup\.interval"):
        dataset.update_config({"lance.auto_cleanup.interval": "often"})
    assert dataset.version == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0s", timedelta(0)),
        ("1day 1h 1m 1s", timedelta(days=1, hours=1, minutes=1, seconds=1)),
        ("2weeks", timedelta(weeks=2)),
        ("90 minutes", timedelta(minutes=90)),
    ],
)
def test_time_spans_are_read(text: str, expected: timedelta) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["x", "5", "5 parsecs", "1d -2h", "9" * 30 + "y"])
def test_strings_that_are_not_time_spans_are_rejected(text: str) -> None:
    with pytest.raises(InvalidInputError, match="not a time span"):
        parse_duration(text)
