"""The version of the installed package. The module is imported lazily, because the lookup takes time."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("lance-duck")
except PackageNotFoundError:
    __version__ = "0+unknown"
