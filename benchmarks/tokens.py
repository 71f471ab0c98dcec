"""How fast is text split into tokens and terms for full-text indexes?

One thread of lance-duck competes with pylance's `tokenize`, which returns Python objects, and with a complete index
build in pylance. The last lines show millions of tokens per second. Word frequencies follow a natural language.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from typing import Any

import lance
import numpy as np
import pyarrow as pa

from benchmarks._harness import OURS, Case, chosen, options, race, report
from lance_duck.text.analyser import Analyser
from lance_duck.text.parameters import AnalyserParameters
from lance_duck.text.words import cut_texts

VOCABULARY = 30_000
PLAIN: dict[str, Any] = {"stem": False, "remove_stop_words": False}
CASES: dict[str, dict[str, Any]] = {
    "simple, no stems": {"base_tokenizer": "simple", **PLAIN},
    "English": {},
    "German, umlauts in most words": {"language": "German"},
    "whitespace, no stems": {"base_tokenizer": "whitespace", **PLAIN},
    "trigrams": {"base_tokenizer": "ngram"},
}
QUESTION = "How fast are texts analysed?"


def texts(rows: int, letters: str, seed: int = 1) -> pa.Array:
    """Return texts of words by Zipf's law, each of 2 to 16 letters."""
    rng = np.random.default_rng(seed)
    sizes = np.clip(rng.normal(7, 2.5, VOCABULARY), 2, 16).astype(int)
    words = np.array(["".join(rng.choice(list(letters), size)) for size in sizes], object)
    frequencies = 1 / np.arange(1, VOCABULARY + 1)
    lengths = rng.integers(3, 41, rows)
    chosen_words = words[rng.choice(VOCABULARY, lengths.sum(), p=frequencies / frequencies.sum())]
    ends = np.cumsum(lengths)
    return pa.array([" ".join(part) for part in np.split(chosen_words, ends[:-1])], pa.large_string())


def build(column: pa.Array, arguments: dict[str, Any]) -> Callable[[], object]:
    """Return pylance's build of an index of the texts, in a table that is written now."""
    folder = tempfile.mkdtemp()
    dataset = lance.write_dataset(pa.table({"s": column}), f"{folder}/t.lance")
    return lambda: dataset.create_scalar_index("s", "INVERTED", replace=True, **arguments)


def measured(name: str, rows: int, rounds: int) -> tuple[Case, int]:
    """Return the times of a case, and its number of tokens."""
    arguments = CASES[name]
    column = texts(rows, "abcdefghijklmnopqrstuvwxyz" + "äöüß" * (3 if "umlauts" in name else 0))
    analyser = Analyser(AnalyserParameters.from_arguments(arguments))
    one_text = " ".join(column.to_pylist())
    contestants: dict[str, Callable[[], object]] = {
        OURS: lambda: analyser.analyse(column),
        "pylance tokenize": lambda: lance.tokenize(one_text, **arguments),
        "pylance build": build(column, arguments),
    }
    return race(name, contestants, rounds, time.process_time), len(cut_texts(column, analyser.parameters).ids)


def main() -> None:
    arguments = options(QUESTION, 100_000, 5).parse_args()
    results = [measured(name, arguments.rows, arguments.rounds) for name in chosen(CASES, arguments.only)]
    report(QUESTION, [case for case, _ in results], arguments)
    for case, tokens in results:
        speeds = ", ".join(f"{name} {tokens / case.median(name) / 1e6:.1f}" for name in case.seconds)
        print(f"{case.name}: {speeds} M tokens/s")


if __name__ == "__main__":
    main()
