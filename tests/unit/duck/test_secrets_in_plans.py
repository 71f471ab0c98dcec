"""URIs in plans and results are free of secrets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lance_duck.duck.changes.upkeep.operations import _figures
from lance_duck.duck.explain import _actual, _read_plan

URI = "s3://user:password@bucket/t.lance?sig=abcdef"
MASKED = "s3://***@bucket/t.lance?sig=***"
DATASET: Any = SimpleNamespace(uri=URI)


def test_upkeep_results_mask_uri_secrets() -> None:
    assert _figures("compact", DATASET, {}) == [("compact", MASKED, "{}")]


def test_plans_mask_the_secrets_of_a_uri(monkeypatch: pytest.MonkeyPatch) -> None:
    scan = SimpleNamespace(plan="", rows=1, batches=1, seconds=0.0, dataset=DATASET)
    watch: Any = SimpleNamespace(scans=[scan])
    (read,) = _actual(watch)
    assert read.facts["Lance Path"] == MASKED
    monkeypatch.setattr("lance_duck.duck.explain._text", lambda *_: "")
    table: Any = SimpleNamespace(dataset=DATASET)
    planned = _read_plan(table, [], [])
    assert planned.facts["Lance Path"] == MASKED
