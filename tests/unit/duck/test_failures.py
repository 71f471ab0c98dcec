"""Wrapped errors regain their class."""

from __future__ import annotations

import duckdb
import pytest

from lance_duck.duck.failures import unwrapped
from lance_duck.errors import StoreError


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Query interrupted"),
        OSError(
            "Invalid Input Error: reading the stream failed: Unknown error: . Detail: Traceback\nKeyboardInterrupt\n"
        ),
        duckdb.InvalidInputException("Invalid Input Error: in a function: KeyboardInterrupt: \n\nAt:\n  x.py(1): f"),
    ],
)
def test_ctrl_c_in_any_wrapping_is_a_keyboard_interrupt(error: Exception) -> None:
    assert isinstance(unwrapped(error), KeyboardInterrupt)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("INTERRUPT Error: Interrupted!", duckdb.InterruptException),
        ("Conversion Error: Could not convert string 'a' to INT64", duckdb.ConversionException),
        ("Out of Range Error: Overflow", duckdb.OutOfRangeException),
        ("TransactionContext Error: Current transaction is aborted", duckdb.TransactionException),
        ("Unheard Of Error: x", duckdb.Error),
    ],
)
def test_duckdb_errors_wrapped_by_pyarrow_regain_their_class(text: str, kind: type[duckdb.Error]) -> None:
    meaning = unwrapped(OSError(text))
    assert type(meaning) is kind
    assert str(meaning) == text


@pytest.mark.parametrize(
    "error",
    [
        duckdb.ConversionException("Conversion Error: 'KeyboardInterrupt' is no number"),
        OSError(28, "No space left on device"),
        RuntimeError("KeyboardInterrupt"),
        StoreError("Conversion Error: no word of DuckDB's"),
    ],
)
def test_other_errors_are_unchanged(error: Exception) -> None:
    assert unwrapped(error) is error
