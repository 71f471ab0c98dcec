"""Kernels that are compiled ahead: later processes compile none for what users do first."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from lance_duck.errors import StoreError
from lance_duck.precompile import warm_up

ROOT = Path(__file__).parents[2]
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
assert first_use.compiled == 0
"""


def test_a_missing_folder_for_temporary_files_is_an_error_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(StoreError, match="no folder for temporary files"):
        warm_up()


SMALL = ("--rows", "20000", "--rounds", "1")
BENCHMARKS = {
    **dict.fromkeys(("scan", "take", "write", "changes", "compaction", "sql", "sql_changes", "tokens"), SMALL),
    "merges": ("--merges", "5", "--rounds", "1"),
    "sql_statements": ("--repeats", "5", "--rounds", "1"),
}
"""Benchmark sizes that take some seconds and store no data."""


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_documented_examples_compile_nothing_after_a_warm_up(tmp_path: Path) -> None:
    kernels = tmp_path / "kernels"
    kernels.mkdir()
    (tmp_path / "sitecustomize.py").write_text(
        f"from lance_duck.kernels import cache; cache.cache_folders = lambda: (cache.Path({str(kernels)!r}),)\n"
    )
    environment = {**os.environ, "LANCE_DUCK_KERNELS": "compile", "LANCE_DUCK_QUIET": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")])

    def compiled_by(*arguments: str) -> list[str]:
        before = set(os.listdir(kernels))
        done = subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return sorted(set(os.listdir(kernels)) - before)

    assert len(compiled_by("-m", "lance_duck", "warm-up")) > 100
    assert compiled_by("-m", "lance_duck", "warm-up") == []
    assert compiled_by("-c", FIRST_DAY, str(tmp_path / "t.lance")) == []
    pages = ("tests/unit/test_pages.py", "tests/notebooks", "tests/sql/test_page.py")
    assert compiled_by("-m", "pytest", "-q", "-p", "no:cacheprovider", *pages) == []
    for name, arguments in BENCHMARKS.items():
        assert (name, compiled_by("-m", f"benchmarks.{name}", *arguments)) == (name, [])
