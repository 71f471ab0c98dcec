"""The data-file container: footer, column metadata, pages, columns; and single files without a table.

You hold: bytes of a file and a field. You get: a ColumnReader. It takes rows, requests byte ranges and returns an
Arrow array, for every file version. Rows are a slice with step 1, or strictly ascending offsets.
Never here: tables, deletions, filters.
"""

from typing import TYPE_CHECKING

from lance_duck import lazy

if TYPE_CHECKING:
    from lance_duck.file.session import LanceFileSession
    from lance_duck.file.single import LanceFileReader, ReaderResults
    from lance_duck.file.single_writer import LanceFileWriter, stable_version

lazy.package(
    __name__,
    {
        "session": ("LanceFileSession",),
        "single": ("LanceFileReader", "ReaderResults"),
        "single_writer": ("LanceFileWriter", "stable_version"),
    },
)

__all__ = ["LanceFileReader", "LanceFileSession", "LanceFileWriter", "ReaderResults", "stable_version"]
