"""Thread state of a statement if Ctrl-C arrives before the statement begins."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import Context

import pytest

from lance_duck.duck.access import during_statement
from lance_duck.duck.tables.handle import PinnedVersions


@pytest.mark.parametrize("scope", [during_statement, PinnedVersions().reading])
def test_a_scope_opened_in_another_context_closes_without_an_error(
    scope: Callable[[], AbstractContextManager[None]],
) -> None:
    opened = scope()
    Context().run(opened.__enter__)
    assert not opened.__exit__(None, None, None)
