"""Packages whose attributes are imported when they are asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any

from lance_duck.lazy.importing import imported

_tables: dict[str, Mapping[str, str]] = {}


def package(name: str, names: Mapping[str, Iterable[str]]) -> None:
    """Let a package import its attributes, and its modules, when they are asked for.

    Args:
        name: The package's `__name__`.
        names: The attributes that the package exports, by the module that has them: its name below the package, dotted
            where it lies deeper.
    """
    _tables[name] = MappingProxyType({each: f"{name}.{module}" for module in names for each in names[module]})
    sys.modules[name].__class__ = _Package


class _Package(ModuleType):
    """A package whose attributes and modules are imported when they are asked for."""

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
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        # Python puts each module into its package; one with the name of a function of the package would hide that.
        if not (isinstance(value, ModuleType) and name in _tables[self.__name__]):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *_tables[self.__name__], *vars(self).get("__all__", ())})
