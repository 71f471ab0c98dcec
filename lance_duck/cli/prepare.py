"""`warm-up` and `build-kernels`: kernels compiled ahead, so that the first users of an installation need not wait."""

from __future__ import annotations

import lance_duck as ld
from lance_duck.cli.show import report


def warm_up(as_json: bool = False) -> None:
    """Compile kernels ahead of their first use."""
    outcome = ld.warm_up()
    folder = "nowhere: no folder can be written to" if outcome.folder is None else str(outcome.folder)
    report({"compiled": outcome.compiled, "seconds": round(outcome.seconds, 1), "kept": folder}, as_json)


def build_kernels(level: str | None = None, folder: str | None = None, as_json: bool = False) -> None:
    """Compile the usual kernels into a pack. An installation loads them from it."""
    built = ld.build_kernels(level, folder)
    facts = {"pack": str(built.path), "level": built.level, "kernels": built.kernels}
    report({**facts, "seconds": round(built.seconds, 1)}, as_json)
