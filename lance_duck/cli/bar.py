"""Progress bars on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import Progress

from lance_duck.cli.terminal import Console


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show a progress bar on stderr, if it is a terminal.

    Yields a function that takes the work done and the total, if known.
    """
    console = Console(stderr=True)
    is_hidden = not console.is_terminal
    with Progress(
        console=console, transient=True, disable=is_hidden, redirect_stdout=False, redirect_stderr=False
    ) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
