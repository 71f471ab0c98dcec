"""Modules that are imported when a function first uses them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from lance_duck.lazy.importing import imported


def modules(importer: dict[str, Any], package: str, *names: str) -> Any:
    """Return modules that are imported when their attributes are first asked for.

    Args:
        importer: `globals()` of the caller, in which each module replaces its stand-in once it is imported.
        package: The package that has the modules; "" for top-level modules.
        names: Names of the modules; for one name one module is returned, else a tuple.
    """
    later = tuple(_Later(f"{package}.{name}" if package else name, importer) for name in names)
    return later if len(later) > 1 else later[0]


class _Later(ModuleType):
    """A stand-in for a module that is not imported yet."""

    def __init__(self, name: str, importer: dict[str, Any]) -> None:
        super().__init__(name)
        vars(self).update(_name=name, _importer=importer)

    def __getattr__(self, attribute: str) -> Any:
        module = imported(self._name)
        for name, value in list(self._importer.items()):
            if value is self:
                self._importer[name] = module
        return getattr(module, attribute)

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
