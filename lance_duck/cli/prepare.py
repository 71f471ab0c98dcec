"""`warm-up`: compiles kernels, so that the first users of an installation need not wait."""

from __future__ import annotations

import lance_duck as ld
from lance_duck.cli.show import report


def warm_up(as_json: bool = False) -> None:
    """Compile kernels ahead of their first use, for example while building an image; takes about half a minute."""
    outcome = ld.warm_up()
    folder = "nowhere: no folder can be written to" if outcome.folder is None else str(outcome.folder)
    report({"compiled": outcome.compiled, "seconds": round(outcome.seconds, 1), "kept": folder}, as_json)
