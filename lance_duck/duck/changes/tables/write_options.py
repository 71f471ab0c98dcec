"""Options of statements that write a table: those of CREATE TABLE … WITH (…) and of COPY … TO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

WRITE_OPTIONS: Final = (
    "data_storage_version",
    "enable_stable_row_ids",
    "enable_v2_manifest_paths",
    "max_rows_per_file",
    "max_rows_per_group",
    "max_bytes_per_file",
)
"""Arguments of `write_dataset` that are options by the same names."""


def write_arguments(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `write_dataset` that options ask for; others among them are left out."""
    arguments = {name: values[name] for name in WRITE_OPTIONS if values.get(name) is not None}
    if "data_storage_version" in arguments:  # a number, too: 2.1
        arguments["data_storage_version"] = str(arguments["data_storage_version"])
    return arguments
