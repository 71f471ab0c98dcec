"""Observations for tests of Spark changes: table rows and files."""

from __future__ import annotations

import importlib
import os
from typing import Any

import lance_duck as ld


def rows(uri: str) -> list[dict[str, Any]]:
    """The rows by id, which pylance reads likewise."""
    ours = ld.dataset(uri).to_table().sort_by("id").to_pylist()
    lance = importlib.import_module("lance")  # Spark starts with a fork, which makes pylance warn
    assert lance.dataset(uri).to_table().sort_by("id").to_pylist() == ours
    return ours


def files(uri: str) -> set[str]:
    return {os.path.join(d, name) for d, _, names in os.walk(uri) for name in names}
