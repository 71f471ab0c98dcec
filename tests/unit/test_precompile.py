"""Kernels that are compiled ahead: later processes compile none for what users do first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FIRST_DAY = """
import sys
import numpy as np
import pyarrow as pa
import lance_duck as ld
from lance_duck.kernels.notice import first_use

uri = sys.argv[1]
row = np.arange(3000)
vectors = pa.FixedSizeListArray.from_arrays(np.random.default_rng(1).random(3000 * 8, dtype=np.float32), 8)
table = pa.table({"id": row, "city": [f"city {i % 30}" for i in row], "fare": row / 7, "v": vectors})
ds = ld.write_dataset(table, uri)
ds.to_table()
ds.to_table(filter="fare > 20 AND city = 'city 7'")
ds.take([5, 2000, 3])
ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(table.slice(5, 40))
ds.update({"fare": "fare * 2"}, where="city = 'city 3'")
ds.delete("id < 100")
ds.create_scalar_index("id", "BTREE")
ds.to_table(filter="id = 700")
ds.search([0.5] * 8, column="v", k=3)
ld.connect({"t": uri}).sql("SELECT city, sum(fare) FROM t GROUP BY ALL").fetchall()
ds.create_scalar_index("city", "INVERTED", with_position=True)
ds.search("city 7", k=3)
ds.search("city 7", k=3, filter="id > 500")
print(first_use.compiled)
"""


@pytest.mark.slow
def test_the_first_day_of_a_warm_installation_compiles_nothing(tmp_path: Path) -> None:
    kernels = tmp_path / "kernels"
    kernels.mkdir()

    def run(code: str) -> str:
        alone = f"from lance_duck.kernels import cache; cache.cache_folders = lambda: (cache.Path({str(kernels)!r}),)\n"
        run = [sys.executable, "-c", alone + code, str(tmp_path / "t.lance")]
        environment = {**os.environ, "LANCE_DUCK_KERNELS": "compile"}
        done = subprocess.run(run, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()[-1]

    warm_up = "import lance_duck as ld; done = ld.warm_up(); print(done.compiled, done.folder)"
    compiled, folder = run(warm_up).split()
    assert int(compiled) > 100
    assert folder == str(kernels)
    assert run(warm_up).split()[0] == "0"
    assert run(FIRST_DAY) == "0"
