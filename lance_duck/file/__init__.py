"""The data-file container: footer, column metadata, pages, columns; and single files by themselves."""

from lance_duck.file.session import LanceFileSession
from lance_duck.file.single import LanceFileReader, ReaderResults
from lance_duck.file.single_writer import LanceFileWriter, stable_version

__all__ = ["LanceFileReader", "LanceFileSession", "LanceFileWriter", "ReaderResults", "stable_version"]
