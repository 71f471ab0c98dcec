"""Single queries of inverted lists."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from unit.index.vector.written import made

from lance_duck.index.vector.search.contract import Probe
from lance_duck.index.vector.search.ivf import IvfIndex
from lance_duck.index.vector.search.lists import Lists, LoadedLists


def test_lists_live_until_the_search_ends_if_another_thread_replaces_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = IvfIndex(made("FLAT", "l2").open(tmp_path))
    walk = index.walk(3, Probe(nprobes=2))
    assert walk is not None
    query = np.zeros(16, np.float32)
    expected = walk.nearest(query)
    alive: list[bool] = []

    class Replaced:
        """Loaded lists that only the search refers to, as after a replacement."""

        def __init__(self, loaded: LoadedLists) -> None:
            self.index = Watching(loaded.index, weakref.ref(self))

    class Watching:
        def __init__(self, index: Any, lists: Any) -> None:
            self._index, self._lists = index, lists

        def search_preassigned_c(self, *arguments: Any) -> None:
            gc.collect()
            alive.append(self._lists() is not None)
            self._index.search_preassigned_c(*arguments)

    with_lists = Lists.with_lists
    monkeypatch.setattr(Lists, "with_lists", lambda self, partitions: Replaced(with_lists(self, partitions)))
    found = walk.nearest(query)
    assert alive == [True]
    assert expected is not None
    assert found is not None
    np.testing.assert_array_equal(found[1], expected[1])
