from __future__ import annotations

import faiss
import numpy as np
import pytest

from lance_duck.index.vector.search.fast_scan import packed_blocks


@pytest.mark.parametrize("rows", [1, 31, 32, 33, 100])
@pytest.mark.parametrize("parts", [2, 6])
def test_codes_are_packed_as_faiss_packs_them(rows: int, parts: int) -> None:
    plain = faiss.IndexIVFPQ(faiss.IndexFlatL2(4 * parts), 4 * parts, 1, parts, 4)
    vectors = np.random.default_rng(rows).standard_normal((rows + 64, 4 * parts), np.float32)
    plain.train(vectors)
    plain.add(vectors[:rows])
    fast = faiss.IndexIVFPQFastScan(plain)
    codes = faiss.rev_swig_ptr(plain.invlists.get_codes(0), rows * parts // 2).reshape(rows, -1)
    blocks = packed_blocks(codes)
    np.testing.assert_array_equal(blocks.ravel(), faiss.rev_swig_ptr(fast.invlists.get_codes(0), blocks.size))
