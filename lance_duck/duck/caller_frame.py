"""The caller's frame: DuckDB resolves variables of the user in it.

DuckDB looks for unknown table names among the variables of the frame that calls it. A wrapper would stand in between;
so the call is made from a frame whose globals are the user's variables, and more tables by paths.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import CodeType, FrameType, FunctionType
from typing import Any, Final, TypeVar, cast

T = TypeVar("T")


def _template(__lance_call: Callable[[], T]) -> T:
    return __lance_call()


_CODE: CodeType = _template.__code__
_OURS: Final = ("lance_duck.duck", "lance_duck.arguments")
"""Modules whose frames stand between the user's and DuckDB."""


def call_as_user(call: Callable[[], T], tables: Mapping[str, Any]) -> T:
    """Call a function of DuckDB so that it sees the variables of the nearest frame outside of this package.

    Args:
        call: Implemented in C, or a partial of such.
        tables: More tables by the name or path that a statement may call them.
    """
    frame = _user_frame()
    scope: dict[str, Any] = dict(tables)
    if frame is not None:
        scope = {**frame.f_globals, **frame.f_locals, **tables}
    return cast("T", FunctionType(_CODE, scope)(call))


def user_variable(name: str) -> Any:
    """Return the value of a name, compared without case, in the nearest frame outside this package, or None."""
    frame = _user_frame()
    if frame is None:
        return None
    for scope in (frame.f_locals, frame.f_globals):
        if name in scope:
            return scope[name]
        found = [value for known, value in scope.items() if isinstance(known, str) and known.lower() == name.lower()]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _user_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).startswith(_OURS):
        frame = frame.f_back
    return frame
