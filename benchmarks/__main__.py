"""Run benchmarks by name, or all of them: python -m benchmarks [scan take …] [-- options for each]."""

from __future__ import annotations

import subprocess
import sys

ALL = (
    *(
        "scan",
        "take",
        "caches",
        "checksums",
        "costs",
        "encoding_costs",
        "open_table",
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
        "compaction",
    ),
    *(
        "indexes",
        "sql_indexes",
        "sql_statements",
        "sql_changes",
        "bitmaps",
        "ngrams",
        "zones",
        "postings",
        "tokens",
        "full_text",
        "full_text_search",
        "hybrid",
        "sql_full_text",
        "vectors",
        "default_recall",
        "graph_recall",
        "graph_joins",
        "nearest_costs",
        "multivectors",
        "tied_filters",
        "many_fragments",
        "spark",
        "first_use",
    ),
)


def main() -> None:
    """Run each benchmark in a separate process."""
    arguments = sys.argv[1:]
    split = arguments.index("--") if "--" in arguments else len(arguments)
    names, passed = arguments[:split], arguments[split + 1 :]
    if unknown := set(names) - set(ALL):
        sys.exit(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(ALL)}")
    for name in names or ALL:
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *passed], check=True)


if __name__ == "__main__":
    main()
