from __future__ import annotations

import numpy as np
import pytest

from lance_duck.index.inverted.codecs.scores import coded_lengths, length_norms


@pytest.mark.parametrize(
    ("lengths", "width"), [([], 1), ([0, 3, 255, 3], 1), ([256, 1], 2), ([65_535], 2), ([65_536, 1, 9, 1], 4)]
)
def test_length_norms_by_code_equal_those_by_length(lengths, width) -> None:
    counts = np.array(lengths, np.uint32)
    codes, of_codes = coded_lengths(counts)
    assert codes.itemsize == width
    assert length_norms(of_codes, 21.5)[codes].tobytes() == length_norms(counts, 21.5).tobytes()


def test_distant_lengths_do_not_enlarge_the_code_table() -> None:
    _, of_codes = coded_lengths(np.array([1, (1 << 32) - 1], np.uint32))
    assert of_codes.tolist() == [1, (1 << 32) - 1]
