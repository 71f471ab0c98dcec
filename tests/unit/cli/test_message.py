"""Error messages of the command line."""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

import lance_duck as ld
import lance_duck_command as command
from lance_duck.cli.message import message_of
from lance_duck.cli.show import Form
from lance_duck.cli.sql.dot_commands import run_script
from lance_duck.cli.sql.results import Results
from lance_duck.cli.sql.runner import StatementRunner
from lance_duck.cli.sql.script import Script
from lance_duck.errors import LanceDuckError, NotFoundError


def test_remedies_mention_command_line_options(tmp_path: Path) -> None:
    table = ld.write_dataset({"x": [1]}, tmp_path / "t.lance")
    for call, remedy in (
        (lambda: ld.write_dataset({"x": [1]}, table.uri), "--mode append"),
        (lambda: ld.dataset(table.uri, version=9), "lance-duck versions lists"),
        (lambda: ld.dataset(tmp_path), "lance-duck sql"),
    ):
        with pytest.raises(LanceDuckError) as raised:
            call()
        assert remedy in message_of(raised.value)
        assert "()" not in message_of(raised.value)


def test_remedies_do_not_change_quoted_paths(tmp_path: Path) -> None:
    place = tmp_path / 'mode="append", versions() lists.lance'
    ld.write_dataset({"x": [1]}, place)
    with pytest.raises(LanceDuckError) as raised:
        ld.write_dataset({"x": [1]}, place)
    remedy = "use --mode append to add rows, or --mode overwrite to replace them"
    assert message_of(raised.value) == f"{place}: dataset already exists; {remedy}"


def test_pipes_use_utf8_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(command, "_IS_WINDOWS", True)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="cp1252"))
    monkeypatch.setattr(sys, "stderr", None)  # of a program without a console
    monkeypatch.setattr(sys, "argv", ["lance-duck", "sql", "--json", "SELECT '鴨' AS duck"])
    with pytest.raises(SystemExit) as left:
        command.main()
    sys.stdout.flush()
    assert not left.value.code
    assert written.getvalue().decode() == '{"duck": "鴨"}\n'


@pytest.mark.parametrize(("windows", "told"), [(True, ""), (False, "lance-duck: [Errno 22] Invalid argument\n")])
def test_a_closed_pipe_is_an_invalid_argument_on_windows(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], windows: bool, told: str
) -> None:
    def broken() -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(command, "_IS_WINDOWS", windows)
    monkeypatch.setattr(command, "app", broken)
    system = SimpleNamespace(**{name: getattr(os, name) for name in ("devnull", "open", "O_WRONLY")})
    system.dup2 = lambda source, target: os.close(source)
    monkeypatch.setattr(command, "os", system)
    with pytest.raises(SystemExit) as left:
        command.main()
    assert (left.value.code, capfd.readouterr().err) == (1, told)


def test_a_warning_is_printed_on_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def warn() -> None:
        warnings.simplefilter("always")
        warnings.warn("the next refresh undoes\x1b[2J that", ld.DerivedDataWarning, stacklevel=1)

    before = warnings.showwarning
    monkeypatch.setattr(command, "app", warn)
    command.main()
    assert capsys.readouterr().err == "lance-duck: warning: the next refresh undoes\\x1b[2J that\n"
    assert warnings.showwarning is before


def test_the_error_of_a_row_is_shown_without_its_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(b"hello")
    rows = pa.table({"b": ld.blob_array([ld.Blob.from_uri(file.as_uri()), b"inside"])})
    ld.write_dataset(rows, tmp_path / "t.lance", allow_external_blob_outside_bases=True)
    file.unlink()
    with ld.connect(tmp_path) as con:
        runner = StatementRunner(con, Results(Form.csv))
        assert not run_script(runner, Script("SELECT b FROM t"))
        with pytest.raises(NotFoundError, match=r"a\.bin: the file of an external blob does not exist; restore"):
            con.execute("SELECT b FROM t").fetchall()
    assert capsys.readouterr().err == (
        f"lance-duck: {file}: the file of an external blob does not exist; restore the file, set the blob to NULL, "
        "or read its description without the bytes\n"
    )
