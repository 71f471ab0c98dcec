"""The data-file container: footer, column metadata, pages, columns; and `LanceFileReader` for one file by itself."""

from lance_duck.file.single import LanceFileReader, ReaderResults

__all__ = ["LanceFileReader", "ReaderResults"]
