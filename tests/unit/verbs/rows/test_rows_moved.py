from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.verbs.rows.rows_moved import offsets_by_fragment


@given(st.sets(st.tuples(st.sampled_from([0, 1, 7, 2**32 - 1]), st.sampled_from([0, 1, 5, 2**32 - 1]))), st.booleans())
def test_addresses_are_grouped_by_fragment(rows: set[tuple[int, int]], turned: bool) -> None:
    addresses = np.array(sorted((f << 32 | o for f, o in rows), reverse=turned), np.uint64)
    expected: dict[int, list[int]] = {}
    for fragment, offset in sorted(rows):
        expected.setdefault(fragment, []).append(offset)
    assert {f: o.tolist() for f, o in offsets_by_fragment(addresses).items()} == expected
