from __future__ import annotations

import numpy as np
import pytest

from lance_duck.index.inverted.codecs.scores import coded_lengths, length_norms


@pytest.mark.parametrize(
    ("lengths", "width"), [([], 1), ([0, 3, 255, 3], 1), ([256, 1], 2), ([65_535], 2), ([65_536, 1, 9, 1], 4)]
)
def test_norms_by_codes_are_those_of_the_lengths(lengths, width) -> None:
    counts = np.array(lengths, np.uint32)
    codes, of_codes = coded_lengths(counts)
    assert codes.itemsize == width
    assert length_norms(of_codes, 21.5)[codes].tobytes() == length_norms(counts, 21.5).tobytes()


def test_lengths_far_apart_take_no_more_memory_than_there_are_documents() -> None:
    _, of_codes = coded_lengths(np.array([1, (1 << 32) - 1], np.uint32))
    assert of_codes.tolist() == [1, (1 << 32) - 1]
