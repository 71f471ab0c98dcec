"""Modules that are imported when they are used."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lance_duck import lazy


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A package of a name that is used once, with two modules; `slow` takes a while to import."""
    name = f"lazy_{abs(hash(request.node.name))}"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "one.py").write_text("number = 1\ndef double():\n    return 2 * number\n")
    (folder / "slow.py").write_text("import time\ntime.sleep(0.2)\nnumber = 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_a_module_is_imported_on_first_use(package: str) -> None:
    names: dict[str, Any] = {}
    names["one"] = lazy.modules(names, package, "one")
    assert f"{package}.one" not in sys.modules
    assert names["one"].number == 1
    assert names["one"] is sys.modules[f"{package}.one"]


def test_a_lazy_placeholder_behaves_like_its_module(package: str) -> None:
    one, slow = lazy.modules({}, package, "one", "slow")
    one.number = 7
    assert (one.double(), one.number) == (14, 7)
    assert isinstance(slow, ModuleType)
    assert f"{package}.slow" not in sys.modules
    assert {"double", "number"} <= set(dir(one))
    del one.number
    with pytest.raises(AttributeError, match="number"):
        _ = one.number


def test_a_missing_module_raises_on_first_use(package: str) -> None:
    gone = lazy.modules({}, package, "gone")
    with pytest.raises(ModuleNotFoundError, match="gone"):
        _ = gone.number


def test_libraries_can_be_lazy_too() -> None:
    names: dict[str, Any] = {}
    names["colorsys"] = lazy.modules(names, "", "colorsys")
    assert names["colorsys"].rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0)
    assert names["colorsys"] is sys.modules["colorsys"]


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_collection_is_paused_during_an_import(package: str, tmp_path: Path, collects: bool) -> None:
    (tmp_path / package / "asking.py").write_text("import gc\nsearches = gc.isenabled()\n")
    asking = lazy.modules({}, package, "asking")
    if not collects:
        gc.disable()
    try:
        assert asking.searches is False
        assert gc.isenabled() == collects
    finally:
        gc.enable()


def test_imported_objects_are_frozen_before_the_next_collection(package: str, tmp_path: Path) -> None:
    script = f"""
import gc, sys
sys.path.insert(0, {str(tmp_path)!r})
from lance_duck import lazy
one = lazy.modules({{}}, {package!r}, "one")
one.number
young = {{id(each) for generation in (0, 1) for each in gc.get_objects(generation)}}
assert id(vars(sys.modules[{package!r} + ".one"])) not in young
assert gc.get_freeze_count() == 0

gc.freeze()
frozen = gc.get_freeze_count()
slow = lazy.modules({{}}, {package!r}, "slow")
assert slow.number == 2
assert gc.get_freeze_count() >= frozen * 0.9 > 0  # as Python frees some of them
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr


def test_objects_are_not_counted_for_a_module_that_is_already_imported(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lazy.imported(f"{package}.one")
    monkeypatch.setattr(gc, "get_freeze_count", lambda: pytest.fail("counted"))
    assert lazy.modules({}, package, "one").number == 1


def test_concurrent_uses_import_a_module_once(package: str) -> None:
    names: dict[str, Any] = {}
    names["slow"] = lazy.modules(names, package, "slow")
    begin = threading.Barrier(8)
    found: list[tuple[int, ModuleType]] = []

    def use() -> None:
        begin.wait()
        found.append((names["slow"].number, names["slow"]))

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(2, sys.modules[f"{package}.slow"])] * 8


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_forked_child_can_import_a_module_its_parent_was_importing(package: str, tmp_path: Path) -> None:
    script = f"""
import os, sys, threading
sys.path.insert(0, {str(tmp_path)!r})
from lance_duck import lazy
slow = lazy.modules({{}}, {package!r}, "slow")
thread = threading.Thread(target=lambda: slow.number)
thread.start()
while {package!r} + ".slow" not in sys.modules:
    pass
child = os.fork()
os.write(1, b"%d\\n" % slow.number)
if child:
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.split() == ["2", "2"]


@pytest.mark.skipif(sys.platform != "linux", reason="counts page faults")
def test_imports_keep_the_python_stack_memory_mapped(package: str, tmp_path: Path) -> None:
    depth, calls = 40, 2000
    for i in range(depth):
        inner = f"from {package} import nested{i + 1}" if i + 1 < depth else ""
        loop = f"def call(n):\n    return n and call(n - 1)\nfor _ in range({calls}):\n    call(30)\n"
        (tmp_path / package / f"nested{i}.py").write_text(f"{inner}\n{loop}")
    script = f"""
import resource, sys
sys.path.insert(0, {str(tmp_path)!r})
from lance_duck import lazy
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
lazy.modules({{}}, {package!r}, "nested0").call
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert int(run.stdout) < calls
