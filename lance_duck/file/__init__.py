"""The data-file container: footer, column metadata, pages, columns; and single files by themselves."""

from lance_duck.file.single import LanceFileReader, ReaderResults
from lance_duck.file.single_writer import LanceFileWriter

__all__ = ["LanceFileReader", "LanceFileWriter", "ReaderResults"]
