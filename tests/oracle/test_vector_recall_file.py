"""pylance continues with a vector index that has an additional, unknown file."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:lance")


@pytest.mark.parametrize("kind", ["IVF_PQ", "IVF_HNSW_SQ"])
def test_pylance_searches_merges_compacts_and_cleans_up(tmp_path: Path, kind: str) -> None:
    vectors = np.random.default_rng(0).random((2000, 8), dtype=np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 8)
    ds = ld.write_dataset(pa.table({"id": np.arange(2000), "v": column}), tmp_path / "t.lance")
    parameters = {"num_sub_vectors": 4} if kind == "IVF_PQ" else {"ef_construction": 60}
    ds.create_index("v", kind, num_partitions=4, max_iters=4, sample_rate=64, **parameters)
    (segment,) = ds.handle.snapshot.indices
    assert [name for name, _ in segment.files] == ["auxiliary.idx", "index.idx", "recall.json"]
    assert (tmp_path / "t.lance" / segment.directory / "recall.json").stat().st_size == segment.files[2][1]

    theirs = lance.dataset(str(tmp_path / "t.lance"))
    (described,) = theirs.describe_indices()
    assert described.total_size_bytes == sum(size for _, size in segment.files)
    nearest = {"column": "v", "q": vectors[7], "k": 3, "nprobes": 4, "refine_factor": 20}
    assert theirs.to_table(nearest=nearest)["id"][0].as_py() == 7
    theirs.insert(pa.table({"id": np.arange(2000, 2300), "v": column.slice(0, 300)}))
    theirs.optimize.optimize_indices(num_indices_to_merge=1)
    theirs.delete("id < 300")
    theirs.optimize.compact_files()
    theirs.cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert theirs.to_table(nearest=nearest)["id"][0].as_py() == 2007
    ours = ld.dataset(tmp_path / "t.lance")
    assert ours.validate() is None
    assert ours.to_table(nearest={"column": "v", "q": vectors[7], "k": 3})["id"][0].as_py() == 2007
