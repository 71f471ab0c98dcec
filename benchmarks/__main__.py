"""Run benchmarks: python -m benchmarks [scan take …] [-- options for each].

Without options, a benchmark of the figures runs as it was published, and its results replace the ones in
`benchmarks/results`. With options, it only prints them.
"""

from __future__ import annotations

import shlex
import subprocess
import sys

from benchmarks._results import FOLDER
from benchmarks.figures import TOPICS

ALL = (
    "scan",
    "take",
    "caches",
    "prepared",
    "prepared_queries",
    "fast_codes",
    "checksums",
    "costs",
    "encoding_costs",
    "open_table",
    "cold",
    "sql",
    "selective",
    "memory",
    "merges",
    "fresh_memory",
    "tpch",
    "write",
    "sizes",
    "changes",
    "appends",
    "streams",
    "compaction",
    "indexes",
    "sql_indexes",
    "sql_statements",
    "sql_changes",
    "primary_keys",
    "bitmaps",
    "ngrams",
    "zones",
    "postings",
    "tokens",
    "full_text",
    "full_text_search",
    "hybrid",
    "loader",
    "sql_full_text",
    "vectors",
    "nearest_by",
    "default_recall",
    "graph_recall",
    "graph_joins",
    "nearest_costs",
    "multivectors",
    "tied_filters",
    "many_fragments",
    "search_game",
    "uncovered",
    "object_store",
    "object_cache",
    "served",
    "spark",
    "first_use",
)


def main() -> None:
    """Run each benchmark in a new process."""
    arguments = sys.argv[1:]
    split = arguments.index("--") if "--" in arguments else len(arguments)
    names, passed = arguments[:split], arguments[split + 1 :]
    if unknown := set(names) - set(ALL):
        sys.exit(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(ALL)}")
    for name in names or ALL:
        options = passed or published(name)
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *options], check=True)


def published(name: str) -> list[str]:
    """Return the options with which the figures run a benchmark, or nothing if it is not one of them."""
    for benchmarks in TOPICS.values():
        if name in benchmarks:
            return [*shlex.split(benchmarks[name].options), "--json", str(FOLDER)]
    return []


if __name__ == "__main__":
    main()
