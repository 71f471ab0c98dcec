"""The command line in this process."""

from __future__ import annotations

import csv
import io
import json

from typer.testing import CliRunner, Result

import lance_duck_command as command


def run(*arguments: str, stdin: str | None = None) -> Result:
    """Run a command and let its exceptions through."""
    result = CliRunner().invoke(command.app, list(arguments), input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def rows(*arguments: str) -> list[dict[str, str]]:
    """Return the CSV output of a command."""
    return list(csv.DictReader(io.StringIO(run(*arguments).stdout)))


def objects(*arguments: str) -> list[dict[str, object]]:
    """Return the JSON output of a command."""
    return [json.loads(line) for line in run(*arguments, "--json").stdout.splitlines()]
