"""Are the thresholds well chosen that are compiled into kernels?

Each value has its own process, which compiles the kernels of full-text searches with it. The processes take turns. A
ratio above 1 means that another value would be faster.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

import lance_duck as ld
from benchmarks._cost_tables import CostTables
from benchmarks._harness import OURS, Case, chosen, options, report
from benchmarks._texts import vocabulary
from lance_duck.kernels.cache import KernelCache
from lance_duck.query import FullTextOperator, MatchQuery

FACTORS: Final = {OURS: 1.0, "a quarter": 0.25, "a half": 0.5, "twice": 2.0, "four times": 4.0}
HOME: Final = "kernels.postings.search"
"""Module of the kernels that are compiled again."""
QUERIES: Final = 50


@dataclass(frozen=True)
class Question:
    """A threshold of kernels, and searches that depend on it.

    Attributes:
        name: Name of the threshold.
        modules: Modules that have it, the first of which defines it.
        operator: Which words a text must have.
        stretches: Ranges of the vocabulary by frequency. A query takes one word from each.
    """

    name: str
    modules: tuple[str, ...]
    operator: FullTextOperator
    stretches: tuple[tuple[int, int], ...]

    @property
    def label(self) -> str:
        """Name of the case."""
        return f"{self.name}, {self.operator.name} of words from {[begin for begin, _ in self.stretches]} on"

    @property
    def value(self) -> int:
        """The threshold as it is."""
        return int(getattr(import_module(f"lance_duck.{HOME}.{self.modules[0]}"), self.name))


FREQUENT: Final = ((0, 40), (40, 200), (200, 1_000))
RARE: Final = ((0, 40), (1_000, 4_000), (4_000, 10_000))
QUESTIONS: Final = tuple(
    Question(name, modules, operator, stretches)
    for name, modules, operator in (
        ("LOOKED_UP", ("intersect", "best_of_any"), FullTextOperator.AND),
        ("LOOKED_UP", ("intersect", "best_of_any"), FullTextOperator.OR),
        ("DENSE_SHARE", ("best_of_any",), FullTextOperator.OR),
    )
    for stretches in (FREQUENT, RARE)
)


def main() -> None:
    """Measure each question, or run one of them as a child process."""
    parser = options(__doc__ or "", rows=200_000, rounds=15)
    parser.add_argument("--answer", help="number of a question, value and path of the table: what this file starts")
    arguments = parser.parse_args()
    if arguments.answer:
        answer(*json.loads(arguments.answer))
        return
    labels = {question.label: number for number, question in enumerate(QUESTIONS)}
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        path = CostTables(Path(folder)).documents(arguments.rows, indexed=True)
        for label in chosen(labels, arguments.only):
            cases.append(ask(labels[label], path, arguments.rounds))
            print(label, *(f"{cases[-1].ratio(peer):.2f}" for peer in FACTORS if peer != OURS), flush=True)
    report("Thresholds of kernels, as they are against others", cases, arguments)


def ask(number: int, path: str, rounds: int) -> Case:
    """Run the processes of all values alternately."""
    question = QUESTIONS[number]
    seconds: dict[str, list[float]] = {name: [] for name in FACTORS}
    values = {name: max(1, int(question.value * factor)) for name, factor in FACTORS.items()}
    with answering(number, path, values) as processes:
        for turn in range(rounds + 1):
            for name, process in processes.items():
                process.stdin.write("again\n")
                process.stdin.flush()
                took = float(process.stdout.readline())
                if turn:  # in the first one kernels are compiled
                    seconds[name].append(took)
    return Case(question.label, seconds)


@contextmanager
def answering(number: int, path: str, values: dict[str, int]) -> Iterator[dict[str, Any]]:
    """Start a process for each value, and end them."""
    processes = {}
    for name, value in values.items():
        command = [sys.executable, "-m", "benchmarks.kernel_costs", "--answer", json.dumps([number, value, path])]
        processes[name] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield processes
    finally:
        for process in processes.values():
            process.communicate()


def answer(number: int, value: int, path: str) -> None:
    """Search with a threshold value, once for each input line, and print seconds."""
    question = QUESTIONS[number]
    for module in question.modules:
        setattr(import_module(f"lance_duck.{HOME}.{module}"), question.name, value)
    compile_anew()
    words, rng = vocabulary(), np.random.default_rng(16)
    texts = [" ".join(words[rng.integers(*stretch)] for stretch in question.stretches) for _ in range(QUERIES)]
    queries = [MatchQuery(text, "text", operator=question.operator) for text in texts]
    dataset = ld.dataset(path)
    for _ in sys.stdin:
        begin = time.process_time()
        for query in queries:
            dataset.to_table(columns=["_rowid"], full_text_query=query, limit=10)
        print(time.process_time() - begin, flush=True)


def compile_anew() -> None:
    """Let this process neither take the kernels of `HOME` from disk nor put them there."""
    load, save = KernelCache.load_overload, KernelCache.save_overload

    def loaded(cache: Any, *arguments: Any) -> Any:
        return None if cache._name.startswith(HOME) else load(cache, *arguments)

    def saved(cache: Any, *arguments: Any) -> None:
        if not cache._name.startswith(HOME):
            save(cache, *arguments)

    KernelCache.load_overload, KernelCache.save_overload = loaded, saved  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
