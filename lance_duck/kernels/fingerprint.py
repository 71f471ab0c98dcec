"""Kernel fingerprints: digests of a function's bytecode and of everything that it calls or reads.

A compiled kernel is used only if its fingerprint matches the current source. A change to a function changes its
fingerprint and the fingerprints of its callers, but no others. File names, line numbers and docstrings do not count.
Fingerprints differ between minor versions of Python, because bytecode does.
"""

from __future__ import annotations

import enum
import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

import numpy as np

_PACKAGE: Final = __package__.partition(".")[0]
_PLAIN: Final = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis))

_known: Final[dict[FunctionType, bytes]] = {}
_recursions: Final[list[FunctionType]] = []
"""Recursive calls found so far."""


def fingerprint(function: Callable[..., Any]) -> str:
    """Return the digest of a function and everything that it calls or reads: 64 hexadecimal digits."""
    return _of_function(inspect.unwrap(function), ()).hex()


def _of_function(function: Any, callers: tuple[FunctionType, ...]) -> bytes:
    """Return a function's digest. A recursive call is hashed as its distance in the call stack."""
    if function in callers:
        _recursions.append(function)
        return b"recursive %d" % callers[::-1].index(function)
    found = _known.get(function)
    if found is None:
        before = len(_recursions)
        digest = hashlib.sha256()
        for fact in _facts(function, (*callers, function)):
            digest.update(b"%d:" % len(fact) + fact)
        found = digest.digest()
        if not callers or len(_recursions) == before:  # otherwise the digest depends on the callers
            _known[function] = found
    return found


def _facts(function: FunctionType, callers: tuple[FunctionType, ...]) -> Iterator[bytes]:
    yield function.__qualname__.encode()
    yield from _of_value(function.__defaults__, callers)
    yield from _of_value(function.__kwdefaults__, callers)
    names: dict[str, None] = {}
    for code in _codes(function.__code__):
        yield code.co_code
        yield repr((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)).encode()
        yield repr((code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars)).encode()
        for constant in code.co_consts[1:] if code.co_consts[:1] == (function.__doc__,) else code.co_consts:
            if not isinstance(constant, CodeType):
                yield from _of_value(constant, callers)
        names.update(dict.fromkeys(code.co_names))
    for cell in function.__closure__ or ():
        yield from _of_value(cell.cell_contents, callers)
    for name in names:
        if name in function.__globals__:
            yield name.encode()
            yield from _of_global(function.__globals__[name], names, callers)


def _of_global(value: Any, names: Mapping[str, None], callers: tuple[FunctionType, ...]) -> Iterator[bytes]:
    """Yield the identity of a global. For modules of this package, hashes only the members in use."""
    if isinstance(value, ModuleType) and value.__name__.partition(".")[0] == _PACKAGE:
        for name in names:
            if name in vars(value):
                yield from _of_value(vars(value)[name], callers)
    else:
        yield from _of_value(value, callers)


def _of_value(value: Any, callers: tuple[FunctionType, ...]) -> Iterator[bytes]:
    """Yield a value's identity: contents of data, digests of functions, names of everything else."""
    inner = getattr(value, "py_func", None) or getattr(value, "_defn", None)  # for a kernel, for an intrinsic
    if isinstance(inner, FunctionType):
        yield from _of_value(dict(sorted(getattr(value, "targetoptions", {}).items())), callers)
        yield _of_function(inner, callers)
    elif isinstance(value, FunctionType) and value.__module__.partition(".")[0] == _PACKAGE:
        yield _of_function(value, callers)
    elif isinstance(value, enum.Enum):
        yield repr(value).encode()
    elif isinstance(value, _PLAIN):
        yield f"{type(value).__name__} {value!r}".encode()
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape}".encode()
        yield value.tobytes()
    elif isinstance(value, tuple | list | frozenset | set | Mapping):
        items = value.items() if isinstance(value, Mapping) else value
        facts = [b"".join(_of_value(item, callers)) for item in items]
        yield f"{type(value).__name__} {len(facts)}".encode()
        yield from sorted(facts) if isinstance(value, frozenset | set) else facts
    else:
        yield f"{getattr(value, '__module__', '')} {getattr(value, '__qualname__', type(value).__qualname__)}".encode()
        text: Any = type(value).__str__
        if text is not object.__str__ and not callable(value) and not isinstance(value, ModuleType):
            yield str(value).encode()


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
