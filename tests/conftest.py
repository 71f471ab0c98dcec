"""Settings that hold for every test."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import HealthCheck, settings
from support.durations import LONG, REST_BUDGET, left_out, long_functions, seconds_by_test, slowest_by_folder
from support.rooms import check_room, is_of_room

ROOT = Path(__file__).parents[1]

# Waiting threads of faiss (OpenMP) and numpy (OpenBLAS) do not spin. Spinning threads would take the processor from
# other test processes: a graph over 500 vectors took ten times the processor time, and a product of small matrices 20
# ms.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The first example of a test may compile a kernel, so examples have no deadline. The quick profile repeats the same
# examples, so a first run never fails by chance. The full profile and `make trust` draw new examples.
settings.register_profile(
    "quick", deadline=None, max_examples=40, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "full", parent=settings.get_profile("quick"), max_examples=400, derandomize=False, print_blob=True
)
settings.load_profile(os.environ.get("LANCE_DUCK_PROFILE", "quick"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without the garbage collector, and freeze them afterwards.

    Otherwise it scans the 2 million objects of tests and modules repeatedly, for 10 of the 24 s of each process.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slowest", type=int, default=0, metavar="N", help="name the N slowest tests, by folder")
    parser.addoption("--record-long", action="store_true", help="write tests/long.txt, after a run of all tests")
    parser.addoption("--room", default="", metavar="NAME", help="run the tests of one room of the package")


def pytest_configure(config: pytest.Config) -> None:
    check_room(config.getoption("room"))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore test modules outside the requested room."""
    room = config.getoption("room")
    is_test = collection_path.match("test_*.py")
    return True if room and is_test and not is_of_room(collection_path, room) else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    seconds = seconds_by_test(report for group in terminalreporter.stats.values() for report in group)
    if count := config.getoption("slowest"):
        terminalreporter.section(f"the {count} slowest tests by folder")
        for line in slowest_by_folder(seconds, count):
            terminalreporter.write_line(line)
    if config.getoption("record_long"):
        LONG.write_text("".join(f"{line}\n" for line in long_functions(seconds)), encoding="utf-8")


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run Spark tests first, since a worker starts with them and other workers only take over the end of its list.

    Tests that `make test` leaves out get the mark `rest`. Those that `make test-rest` leaves out, too, get `slow`.
    """
    tests, lines = [item.nodeid for item in items], LONG.read_text(encoding="utf-8").splitlines()
    for mark, out in (("rest", left_out(tests, lines)), ("slow", left_out(tests, lines, REST_BUDGET, least=1))):
        for item in items:
            if item.nodeid in out:
                item.add_marker(mark)
    items.sort(key=lambda item: ROOT / "tests" / "spark" not in item.path.parents)


@pytest.fixture
def _sigint() -> Iterator[None]:
    """Handle Ctrl-C like a foreground process, even if a shell started the tests in the background."""
    before = signal.signal(signal.SIGINT, _interrupt)
    yield
    signal.signal(signal.SIGINT, before)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt. Python ignores it inside a weak reference callback, so it is then sent again."""
    if frame is not None and frame.f_code.co_filename.endswith(("_weakrefset.py", "weakref.py")):
        threading.Timer(0.001, os.kill, (os.getpid(), number)).start()
    else:
        signal.default_int_handler(number, frame)
