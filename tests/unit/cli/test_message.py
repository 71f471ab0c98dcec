"""What people are told of an error on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

import lance_duck as ld
from lance_duck.cli.message import message_of
from lance_duck.errors import LanceDuckError


def test_remedies_are_those_of_the_command_line(tmp_path: Path) -> None:
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
