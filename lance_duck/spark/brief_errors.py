"""Strips worker tracebacks from errors of sources, sinks and table functions.

Spark copies a worker's exception, including the traceback, into its own error message. For a misspelled path or option,
the message has 30 to 60 lines, and Spark's client repeats it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from inspect import isfunction, isgeneratorfunction
from typing import Any, TypeVar

from lance_duck.errors import InternalError, LanceDuckError

_C = TypeVar("_C", bound=type)


def brief_errors(kind: _C) -> _C:
    """Decorate a class: its public methods raise errors of this package without causes and inner frames.

    `InternalError` and exceptions of other packages keep their tracebacks.
    """
    for name, method in list(vars(kind).items()):
        if name.startswith("_"):
            continue
        if isfunction(method):
            setattr(kind, name, _brief_steps(method) if isgeneratorfunction(method) else _brief(method))
        elif isinstance(method, staticmethod):
            setattr(kind, name, staticmethod(_brief(method.__func__)))
    return kind


def _brief(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return method(*args, **options)
        except InternalError:
            raise
        except LanceDuckError as error:
            raise error.with_traceback(None) from None

    return call


def _brief_steps(method: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    @wraps(method)
    def steps(*args: Any, **options: Any) -> Iterator[Any]:
        try:
            yield from method(*args, **options)
        except InternalError:
            raise
        except LanceDuckError as error:
            raise error.with_traceback(None) from None

    return steps
