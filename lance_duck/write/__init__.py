"""Writes batches to data files, which become fragments, and writes deletion files.

You hold: any data that a user passes (`inputs`). You get: batches that fit the schema of a table (`coerce`), and
fragments without ids. A write that fails deletes its files. Casts never change a value. If a value does not fit, an
error names it. Never here: the choice of rows to delete, and commits.
"""

from typing import TYPE_CHECKING

from lance_duck import lazy

if TYPE_CHECKING:
    from lance_duck.write.coerce import check_fits, coerce
    from lance_duck.write.files import discard_fragments, write_columns, write_new_fragments
    from lance_duck.write.inputs import to_reader
    from lance_duck.write.options import Base, WriteOptions, WriteProgress, storage_version

lazy.package(
    __name__,
    {
        "coerce": ("check_fits", "coerce"),
        "files": ("discard_fragments", "write_columns", "write_new_fragments"),
        "inputs": ("to_reader",),
        "options": ("Base", "WriteOptions", "WriteProgress", "storage_version"),
    },
)

__all__ = [
    "Base",
    "WriteOptions",
    "WriteProgress",
    "check_fits",
    "coerce",
    "discard_fragments",
    "storage_version",
    "to_reader",
    "write_columns",
    "write_new_fragments",
]
