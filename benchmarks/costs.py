"""Are the thresholds of scans, searches and row sets well chosen?

Each case does work below or above a threshold, with the value from the code and with four others: a quarter, half,
twice and four times it. A ratio above 1 means that another value would be faster. The clock is processor time, which a
busy machine hardly changes. `--wall` uses wall time.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Final

from benchmarks._cost_questions import QUESTIONS, Question
from benchmarks._cost_tables import CostTables
from benchmarks._harness import OURS, Case, chosen, options, race, report
from benchmarks._text_costs import Work

FACTORS: Final = {"a quarter": 0.25, "a half": 0.5, "twice": 2.0, "four times": 4.0}

LEAST_SECONDS: Final = 0.02
"""Minimum time of one measurement, in seconds. Shorter work is repeated."""


@contextmanager
def threshold_set(name: str, factor: float) -> Iterator[None]:
    """Multiply a threshold by a factor."""
    module_name, _, constant = name.rpartition(".")
    module = import_module(f"lance_duck.{module_name}")
    value = getattr(module, constant)
    setattr(module, constant, max(1, int(value * factor)) if isinstance(value, int) else value * factor)
    try:
        yield
    finally:
        setattr(module, constant, value)


def main() -> None:
    """Measure each question at each size."""
    parser = options(__doc__ or "", rows=None, rounds=15)
    parser.add_argument("--wall", action="store_true", help="time by the clock, not by the processor")
    arguments = parser.parse_args()
    clock = time.perf_counter if arguments.wall else time.process_time
    labels = {f"{question.threshold.rpartition('.')[2]}{question.label}": question for question in QUESTIONS}
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        tables = CostTables(Path(folder))
        for label in chosen(labels, arguments.only):
            for times in labels[label].times:
                cases.append(ask(label, labels[label], times, tables, arguments.rounds, clock))
                print(cases[-1].name, *(f"{cases[-1].ratio(peer):.2f}" for peer in FACTORS), flush=True)
    report("Thresholds of scans, as they are against others", cases, arguments)


def ask(
    label: str, question: Question, times: float, tables: CostTables, rounds: int, clock: Callable[[], float]
) -> Case:
    """Race the work with the threshold as it is and with the others."""
    module_name, _, constant = question.threshold.rpartition(".")
    value = getattr(import_module(f"lance_duck.{module_name}"), constant)
    size = value * times
    works = {}
    for name, factor in {OURS: 1.0, **FACTORS}.items():
        with threshold_set(question.threshold, factor):
            works[name] = _under(question, factor, question.prepare(tables, size))
    works[OURS]()
    begin = time.perf_counter()
    works[OURS]()
    repeats = max(1, int(LEAST_SECONDS / (time.perf_counter() - begin)))
    repeated = {name: _repeated(work, repeats) for name, work in works.items()}
    return race(f"{label}, work of {size:,.4g}", repeated, rounds, clock)


def _under(question: Question, factor: float, work: Work) -> Work:
    def run() -> None:
        with threshold_set(question.threshold, factor):
            work()

    return run


def _repeated(work: Work, count: int) -> Work:
    def run() -> None:
        for _ in range(count):
            work()

    return run


if __name__ == "__main__":
    main()
