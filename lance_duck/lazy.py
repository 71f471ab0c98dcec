"""Lazy imports: a module is loaded when one of its names is first used.

    if TYPE_CHECKING:
        from lance_duck.verbs.rows import delete, update
    else:
        delete, update = lazy.modules(globals(), "lance_duck.verbs.rows", "delete", "update")

The `else` branch binds modules that are imported when a function first uses `delete.…`. Type checkers and editors read
the plain imports. The test `tests/test_architecture.py` also reads them: it checks the order of the rooms, and that the
`else` branch binds the same names. The function `package` does the same for a package: its attributes are imported on
first access (PEP 562).

You hold: names of modules, or exported names of a package. You get: the modules and names on first use. `uncollected`
pauses Python's garbage collector while long-lived objects, such as modules, are created.
Python imports a module once, even if several threads request it. A fork waits for running imports.
Never here: imports of this package by name. The modules that use `lazy` decide which imports are lazy.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any, Final, NoReturn

_is_put_off = False


@contextmanager
def uncollected(*, ages: bool = False) -> Iterator[None]:
    """Pause the cyclic garbage collector, which would traverse all new objects repeatedly.

    Collection took 60 % of the planning time for 100,000 fragments (`benchmarks/many_fragments.py`). The pause applies
    to all threads. Reference counting still frees objects. Only the call that disabled the collector enables it again.
    Overlapping calls therefore never leave it disabled.

    Args:
        ages: Whether to mark all objects of the process as old afterwards, to make the next collection fast. Ignored if
            the process itself froze objects. Do not use this in frequent calls: without young objects, old garbage is
            not collected.
    """
    global _is_put_off
    was_enabled = gc.isenabled()
    gc.disable()
    _is_put_off |= was_enabled
    try:
        yield
    finally:
        if was_enabled:
            if ages and not _has_frozen_objects():
                gc.freeze()
                gc.unfreeze()  # moves the objects to the old generation
            _is_put_off = False
            gc.enable()


_is_frozen = False


def _has_frozen_objects() -> bool:
    """Return whether the process ever froze objects. Python counts them one by one, 20 ms for a million."""
    global _is_frozen
    _is_frozen = _is_frozen or gc.get_freeze_count() > 0
    return _is_frozen


def _search_in_child() -> None:
    """Enable garbage collection in a forked child, which lacks the thread that paused it."""
    if _is_put_off:
        gc.enable()


if hasattr(os, "register_at_fork"):  # does not exist on Windows
    os.register_at_fork(after_in_child=_search_in_child)

_importing = threading.RLock()
"""Lock that is held during lazy imports and during forks. Without it, a child could inherit Python's import lock while
another thread holds it. Module bodies do not use lazy names, so an import never waits for this lock.
"""


def imported(name: str) -> ModuleType:
    """Import a module, or return it if it is already imported.

    Garbage collection is paused, because the objects of a module are permanent (`benchmarks/first_use.py --starts`).
    """
    with _importing:
        if name in sys.modules:
            return import_module(name)
        with uncollected(ages=True):
            return import_module(name)


_FRAME: Final = 1 << 14
"""Frame size of `imported`, in values. It makes Python allocate 256 KB for the thread's frames.

Python allocates chunks of 16 KB by default, and about ten nested imports fill one. If a loop runs at the end of a full
chunk, as in `dataclass`, Python maps and unmaps memory at each call.
"""
imported.__code__ = imported.__code__.replace(co_stacksize=_FRAME)


def _open_in_child() -> None:
    global _importing
    _importing = threading.RLock()


if hasattr(os, "register_at_fork"):  # does not exist on Windows
    os.register_at_fork(
        before=lambda: _importing.acquire(),
        after_in_parent=lambda: _importing.release(),
        after_in_child=_open_in_child,
    )


def modules(importer: dict[str, Any], package: str, *names: str) -> Any:
    """Return modules that are imported on first attribute access.

    Args:
        importer: `globals()` of the caller. Each imported module replaces its placeholder there.
        package: The package that contains the modules, or "" for top-level modules.
        names: Names of the modules. One name returns a module, several names return a tuple.
    """
    later = tuple(_Later(f"{package}.{name}" if package else name, importer) for name in names)
    return later if len(later) > 1 else later[0]


_placeholders: list[_Later] = []


def load() -> None:
    """Import all modules that other modules import lazily. Leaves out packages that are not installed."""
    while _placeholders:
        with suppress(ModuleNotFoundError):
            _placeholders.pop().loaded_()


class _Later(ModuleType):
    """A placeholder for a module that is not imported yet."""

    def __init__(self, name: str, importer: dict[str, Any]) -> None:
        super().__init__(name)
        vars(self).update(_name=name, _importer=importer)
        _placeholders.append(self)

    def loaded_(self) -> ModuleType:
        """Import the module, and put it in the place of this placeholder."""
        module = imported(self._name)
        for name, value in list(self._importer.items()):
            if value is self:
                self._importer[name] = module
        return module

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self.loaded_(), attribute)

    def __setattr__(self, attribute: str, value: Any) -> None:
        setattr(imported(self._name), attribute, value)

    def __delattr__(self, attribute: str) -> None:
        delattr(imported(self._name), attribute)

    def __reduce__(self) -> tuple[Any, ...]:
        return imported, (self._name,)

    def __dir__(self) -> list[str]:
        return dir(imported(self._name))

    def __repr__(self) -> str:
        return f"<module {self._name!r}, imported when it is used>"


_tables: dict[str, Mapping[str, str]] = {}
_hints: dict[str, str] = {}


def package(
    name: str, names: Mapping[str, Iterable[str]], other_names: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Make a package import its attributes and modules on first access.

    Args:
        name: The package's `__name__`.
        names: The exported attributes, by the module that defines them. Module names are relative to the package and
            may be dotted.
        other_names: Names in this package, keyed by the equivalent names in other libraries.
    """
    _hints.update({f"{name}.{other}": f"; here it is {here}" for other, here in other_names.items()})
    _tables[name] = MappingProxyType({each: f"{name}.{module}" for module in names for each in names[module]})
    sys.modules[name].__class__ = _Hinting if name in _hints else _Package


class _Package(ModuleType):
    """A package whose attributes and modules are imported on first access."""

    def __getattr__(self, name: str) -> Any:
        home = _tables[self.__name__].get(name)
        value = self._submodule(name) if home is None else getattr(imported(home), name)
        vars(self)[name] = value
        return value

    def _submodule(self, name: str) -> ModuleType:
        path = f"{self.__name__}.{name}"
        try:
            if name.startswith("_"):
                raise ModuleNotFoundError(path, name=path)
            return imported(path)
        except ModuleNotFoundError as error:
            if error.name != path:
                raise
            hint = _hints.get(path) or self._nearest(name)
            text = f"module {self.__name__!r} has no attribute {name!r}{hint}"
            raise AttributeError(text, name=name, obj=self) from None

    def _nearest(self, name: str) -> str:
        """Return the suggestion of the nearest exported name. Empty if no name is close, and for private names."""
        nearest = [] if name.startswith("_") else get_close_matches(name, _tables[self.__name__], 1)
        return f"; did you mean {nearest[0]!r}?" if nearest else ""

    def __reduce__(self) -> tuple[Any, ...]:
        return imported, (self.__name__,)

    def __setattr__(self, name: str, value: Any) -> None:
        # Python binds each imported module in its package. A module with the name of an exported function would hide
        # the function.
        if not (isinstance(value, ModuleType) and name in _tables[self.__name__]):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *_tables[self.__name__], *vars(self).get("__all__", ())})


class _Hinting(_Package):
    """A package whose name is a function in other libraries."""

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Raise TypeError like any module, with a hint."""
        raise TypeError(f"module {self.__name__!r} is not callable{_hints[self.__name__]}")
