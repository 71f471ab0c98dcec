"""Packages whose attributes are imported when they are asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any, Final, NoReturn

from lance_duck.lazy.importing import imported

_tables: dict[str, Mapping[str, str]] = {}
_hints: dict[str, str] = {}
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


def package(
    name: str, names: Mapping[str, Iterable[str]], other_names: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Let a package import its attributes, and its modules, when they are asked for.

    Args:
        name: The package's `__name__`.
        names: The attributes that the package exports, by the module that has them: its name below the package, dotted
            where it lies deeper.
        other_names: What the package calls otherwise, by names that other libraries have for it.
    """
    _hints.update({f"{name}.{other}": f"; here it is {here}" for other, here in other_names.items()})
    _tables[name] = MappingProxyType({each: f"{name}.{module}" for module in names for each in names[module]})
    sys.modules[name].__class__ = _Hinting if name in _hints else _Package


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
            text = f"module {self.__name__!r} has no attribute {name!r}{_hints.get(path, '')}"
            raise AttributeError(text, name=name, obj=self) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return imported, (self.__name__,)

    def __setattr__(self, name: str, value: Any) -> None:
        # Python puts each module into its package; one with the name of a function of the package would hide that.
        if not (isinstance(value, ModuleType) and name in _tables[self.__name__]):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *_tables[self.__name__], *vars(self).get("__all__", ())})


class _Hinting(_Package):
    """A package with the name of a function of other libraries."""

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Raise TypeError, as any module does, with the hint."""
        raise TypeError(f"module {self.__name__!r} is not callable{_hints[self.__name__]}")
