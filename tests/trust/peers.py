"""Compare tables as pylance and lance_duck read them."""

from __future__ import annotations

import os

os.environ.setdefault("LANCE_ENABLE_UNSTABLE_DATA_OVERLAY_FILES", "1")  # read once, at the first use

import lance
from oracle.compare import assert_same

import lance_duck as ld


def check_with_pylance(uri: str) -> int:
    """Validate and compare the newest version of a local table in both libraries. Returns its row count."""
    theirs, ours = lance.dataset(uri), ld.dataset(uri)
    theirs.validate()
    ours.validate()
    assert ours.version == theirs.version
    assert ours.count_rows() == theirs.count_rows()
    expected, found = theirs.to_table(), ours.to_table()
    assert found.column_names == expected.column_names
    for name in expected.column_names:
        assert_same(expected[name], found[name])
    streamed = sum(batch.num_rows for batch in theirs.scanner().to_batches())
    assert streamed == found.num_rows == theirs.count_rows()
    return found.num_rows
