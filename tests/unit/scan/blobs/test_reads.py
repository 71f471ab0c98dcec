from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lance_duck.errors import InvalidInputError
from lance_duck.scan.blobs.reads import choose
from lance_duck.scan.projection import BLOB_WIDTH, Read
from lance_duck.snapshot import Location
from lance_duck.wire.schema import Field


@pytest.mark.parametrize("rows", [{}, {"ids": [1], "indices": [1]}, {"ids": [], "addresses": [], "indices": []}])
def test_rows_are_selected_by_ids_addresses_or_indices(rows: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="one of ids, addresses and indices"):
        choose(**rows)
    assert choose(ids=[]) == ("ids", [])
    assert choose(indices=range(2)) == ("indices", range(2))


def test_bytes_of_blobs_are_read_few_rows_at_a_time() -> None:
    blob = Field(0, "b", -1, "large_binary", True, {"lance-encoding:blob": "true"})
    parent = Field(1, "s", -1, "struct", True, {}, (blob,))
    for field in (blob, parent):
        assert Read(field, field.to_arrow(scan=True).type).width == 16
        found = field.with_blob_bytes()
        assert Read(found, found.to_arrow(scan=True).type).width == BLOB_WIDTH
    assert Read(blob, pa.int64()).width == 8


def test_store_options_are_not_sent_to_other_locations() -> None:
    options = {"region": "r", "base_1.region": "other"}
    inside = Location("s3://bucket/t", options)
    assert inside.options_for("s3://elsewhere/x") == {"region": "r"}
    assert inside.options_for("https://host/x") == {}
    assert Location("/local/t", options).options_for("s3://bucket/x") == {"region": "r"}
