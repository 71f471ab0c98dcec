"""Levels of processors: a process loads the best pack whose instructions its processor has, and no other one."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lance_duck.kernels import pack
from lance_duck.kernels.pack import LEVELS, installed_pack, machine_levels, pack_name, write_pack
from lance_duck.precompile import build_kernels

V3, V2 = "x86-64-v3", "x86-64-v2"
ADDED = sorted(LEVELS[V3] - LEVELS[V2])


@pytest.fixture
def packs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a pack of each level, on a processor that has both."""
    monkeypatch.setattr(pack, "FOLDER", tmp_path)
    monkeypatch.setattr(pack.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(pack.llvmlite.binding, "get_host_cpu_features", lambda: dict.fromkeys(LEVELS[V3], True))
    monkeypatch.delenv("LANCE_DUCK_KERNELS", raising=False)
    for level in LEVELS:
        write_pack(tmp_path / pack_name(level), level, "sources", {})
    return tmp_path


def loaded() -> str | None:
    found = installed_pack.__wrapped__()
    return None if found is None else found.level


def test_the_best_level_is_loaded(packs: Path) -> None:
    assert loaded() == V3


@pytest.mark.parametrize("feature", ADDED)
def test_v3_is_not_loaded_if_a_feature_is_missing(packs: Path, monkeypatch: pytest.MonkeyPatch, feature: str) -> None:
    features = dict.fromkeys(LEVELS[V3], True) | {feature: False}
    monkeypatch.setattr(pack.llvmlite.binding, "get_host_cpu_features", lambda: features)
    assert loaded() == V2
    (packs / pack_name(V2)).unlink()
    assert loaded() is None


@pytest.mark.parametrize("feature", ADDED)
def test_a_feature_disabled_in_numba_counts_as_missing(
    packs: Path, monkeypatch: pytest.MonkeyPatch, feature: str
) -> None:
    monkeypatch.setattr(pack._config, "CPU_FEATURES", f"+sse4.2,-{feature}")
    assert loaded() == V2


def test_a_pack_with_a_mismatched_name_is_not_loaded(packs: Path) -> None:
    (packs / pack_name(V3)).replace(packs / pack_name(V2))
    assert loaded() is None


DAY = """
import sys
from pathlib import Path
import lance_duck as ld
from lance_duck.kernels import cache, pack
from lance_duck.kernels.notice import first_use

folder = Path(sys.argv[1])
pack.FOLDER = folder / "packs"
cache.cache_folders = lambda: (folder / "kernels",)
rows = range(3000)
words = [f"word {i % 30}" for i in rows]
vectors = [[i / 7, i / 5, i % 3, 1] for i in rows]
ds = ld.write_dataset({"id": rows, "word": words, "v": vectors}, folder / "t.lance", vector_columns={"v": 4})
ds.update({"word": "'duck'"}, where="id = 7")
ds.create_scalar_index("id", "BTREE")
ds.create_scalar_index("word", "INVERTED")
ds.create_index("v", "IVF_FLAT")
found = ld.connect({"t": ds}).execute("SELECT count(*), sum(id) FROM t WHERE word = 'word 5'").fetchone()
best = ds.search("duck", k=3)["id"].to_pylist() + ds.search([1.0, 1.4, 1, 1], column="v", k=1)["id"].to_pylist()
print(pack.installed_pack().level, first_use.compiled, *found, *best)
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(V3 not in machine_levels(), reason="a processor with both levels is needed")
@pytest.mark.parametrize("level", list(LEVELS))
def test_a_pack_uses_only_the_instructions_of_its_level(tmp_path: Path, level: str) -> None:
    built = build_kernels(level, tmp_path / "packs")
    (tmp_path / "kernels").mkdir()
    masked = {} if level == V3 else {"NUMBA_CPU_FEATURES": ",".join(f"-{feature}" for feature in ADDED)}
    environment = {name: value for name, value in os.environ.items() if name != "LANCE_DUCK_KERNELS"} | masked
    command = [sys.executable, "-c", DAY, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [level, "0", "100", "149000", "7", "7"]
    assert not list((tmp_path / "kernels").iterdir())
    if shutil.which("objdump"):
        check_instructions(level, built.path, tmp_path / "objects")


def check_instructions(level: str, path: Path, folder: Path) -> None:
    """Check that no object of a pack has instructions beyond its level: of AVX in v2, of AVX-512 in v3."""
    data = path.read_bytes()
    start = 44 + int.from_bytes(data[8:12], "little")
    folder.mkdir()
    for number, (offset, size, _) in enumerate(json.loads(data[44:start])["entries"].values()):
        code = pickle.loads(data[start + offset : start + offset + size])[1]
        (folder / f"{number}.o").write_bytes(code)
    objects = sorted(map(str, folder.iterdir()))
    command = ["objdump", "--disassemble", "--no-show-raw-insn", *objects]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert text.count("\tret") > len(objects) > 100
    vectors = set(re.findall(r"%([xyz])mm", text))
    beyond = {V2: r"\t(v\w+) .*|%[yz]mm|%k[0-7]", V3: r"%zmm|%[xy]mm(?:1[6-9]|[23]\d)|%k[0-7]"}[level]
    assert vectors == ({"x"} if level == V2 else {"x", "y"})
    assert not re.findall(beyond, text)
