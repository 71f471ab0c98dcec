"""The shell for SQL in a terminal, as a person uses it."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import lance_duck as ld

CTRL_D, TAB, UP = "\x04", "\t", "\x1b[A"
WAIT = 30  # seconds without output that count as silence


@dataclass
class Terminal:
    """A process on a terminal.

    Attributes:
        process: The process.
        screen: The terminal end for typing and reading.
    """

    process: subprocess.Popen[bytes]
    screen: int
    shown: bytearray = field(default_factory=bytearray)

    def until(self, text: str) -> str:
        """Wait for a text and return the output up to it."""
        wanted = text.encode()
        while wanted not in self.shown:
            ready, _, _ = select.select([self.screen], [], [], WAIT)
            assert ready, f"{text!r} is not shown after {bytes(self.shown[-2000:])!r}"
            self.shown += os.read(self.screen, 65536)
        end = self.shown.index(wanted) + len(wanted)
        before = self.shown[:end].decode(errors="replace")
        del self.shown[:end]
        return before

    def type(self, keys: str) -> None:
        os.write(self.screen, keys.encode())


@contextmanager
def terminal(tmp_path: Path, *arguments: str) -> Iterator[Terminal]:
    """Run the command line on a terminal with a separate home folder."""
    screen, inside = pty.openpty()
    termios.tcsetwinsize(inside, (40, 120))
    environment = os.environ | {
        "TERM": "xterm",
        "PROMPT_TOOLKIT_NO_CPR": "1",
        "COLUMNS": "120",
        "NO_COLOR": "1",
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    # A shell that started the tests in the background has its children ignore Ctrl-C.
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    program += "from lance_duck_command import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdin=inside, stdout=inside, stderr=inside, env=environment
    )
    os.close(inside)
    try:
        yield Terminal(process, screen)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        os.close(screen)


def test_a_session_on_a_terminal(tmp_path: Path) -> None:
    ld.write_dataset({"id": [1, 2, 3]}, tmp_path / "data" / "quinces.lance")
    with terminal(tmp_path, "sql", str(tmp_path / "data")) as shell:
        shell.until("lance>")
        shell.type("SELECT sum(id) AS total FROM quin" + TAB)
        shell.until("ces")
        shell.type(";\r")
        assert "total" in shell.until("6")

        shell.until("lance>")
        shell.type(".mode csv\r")
        shell.until("mode: csv")
        shell.until("lance>")
        shell.type("SELECT 1000 + range AS n FROM range(100000000000);\r")
        shell.until("\n1017\r\n")
        shell.process.send_signal(signal.SIGINT)
        shell.until("lance-duck: interrupted")

        shell.until("lance>")
        shell.type("CREATE TABLE memory.q AS SELECT 1 AS x;\r")
        shell.until("lance>")
        shell.type("BEGIN; DELETE FROM quinces;\r")
        shell.until("Count\r\n3\r\n")
        shell.until("lance*>")
        shell.type(CTRL_D)
        shell.until("the open transaction was rolled back")
        shell.until("in memory only, and gone now: table q; CREATE TABLE lance.q AS … keeps a table")
        assert shell.process.wait(timeout=WAIT) == 0
    assert ld.dataset(tmp_path / "data" / "quinces.lance").count_rows() == 3


def test_history_persists_across_sessions(tmp_path: Path) -> None:
    with terminal(tmp_path, "sql") as shell:
        shell.until("lance>")
        shell.type("SELECT 'ab' ||\r'cd' AS n;\r")
        shell.until("abcd")
        shell.until("lance>")
        shell.type(".quit\r")
        assert shell.process.wait(timeout=WAIT) == 0
    with terminal(tmp_path, "sql", "--json") as shell:
        shell.until("lance>")
        shell.type(UP + UP)
        shell.until("'cd'")
        shell.type("\r")
        shell.until('{"n": "abcd"}')
        shell.until("lance>")
        shell.type(CTRL_D)
        assert shell.process.wait(timeout=WAIT) == 0


def test_the_shell_escapes_control_characters_in_names(tmp_path: Path) -> None:
    name = "quince\x1b]0;title\x07\x9b31m"
    ld.write_dataset({name: ["\x1b]52;c;\x07"]}, tmp_path / "data" / f"{name}.lance")
    with terminal(tmp_path, "sql", str(tmp_path / "data")) as shell:
        shown = shell.until("lance>")
        shell.type(".tables\r")
        shown += shell.until(r"quince\x1b]0;title\x07\x9b31m") + shell.until("lance>")
        shell.type("FROM qui" + TAB)
        shown += shell.until("31m")
        shell.type(";\r")
        shown += shell.until(r"\x1b]52;c;\x07") + shell.until("lance>")
        shell.type(".quit\r")
        assert shell.process.wait(timeout=WAIT) == 0
    assert "\x1b]" not in shown
    assert "\x9b" not in shown
