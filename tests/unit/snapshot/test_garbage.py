"""The search for garbage is put off, and goes on as before."""

from __future__ import annotations

import gc

import pytest

from lance_duck.snapshot.garbage import uncollected


def failing() -> None:
    with uncollected():
        assert not gc.isenabled()
        with uncollected():
            pass
        assert not gc.isenabled()
        raise ZeroDivisionError


def test_nothing_is_searched_meanwhile_and_the_search_goes_on_after_an_error_too() -> None:
    with pytest.raises(ZeroDivisionError):
        failing()
    assert gc.isenabled()


def test_a_search_that_was_off_before_stays_off() -> None:
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
