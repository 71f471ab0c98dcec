"""The metrics of this process in Prometheus' text format 0.0.4."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from lance_duck.telemetry.metrics import INSTRUMENTS

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""The HTTP header `Content-Type` of the text."""


def render() -> str:
    """Return all metrics as text that Prometheus scrapes."""
    lines = []
    for instrument in INSTRUMENTS:
        lines.append(f"# HELP {instrument.name} {_escaped(instrument.about)}")
        lines.append(f"# TYPE {instrument.name} {instrument.kind}")
        lines += [f"{each.name}{_labels(each.labels)} {number_text(each.value)}" for each in instrument.samples()]
    return "\n".join(lines) + "\n"


def number_text(value: float) -> str:
    """Return a number as Prometheus writes it."""
    if math.isfinite(value):
        return str(int(value)) if value == int(value) else repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def _labels(labels: Mapping[str, str]) -> str:
    pairs = (f'{name}="{_escaped(value, quotes=True)}"' for name, value in labels.items())
    return f"{{{','.join(pairs)}}}" if labels else ""


def _escaped(text: str, *, quotes: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text
