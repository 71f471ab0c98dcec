"""The version of the installed package, imported when it is asked for, as looking it up takes time."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("lance-duck")
except PackageNotFoundError:
    __version__ = "0+unknown"
