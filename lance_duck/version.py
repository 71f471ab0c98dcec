"""The version of the installed package."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("lance-duck")
except PackageNotFoundError:
    __version__ = "0+unknown"
