"""What people are told of an error."""

from __future__ import annotations

from lance_duck.redact import shown


def message_of(error: BaseException) -> str:
    """Return what an error says, without secrets, empty lines and what follows of tracebacks."""
    text = shown(error).partition("\n\nAt:")[0].partition("\nTraceback")[0]
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join(lines) or type(error).__name__
