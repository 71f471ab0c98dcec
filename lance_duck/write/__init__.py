"""Batches → data files → fragments; deletion files."""

from lance_duck.write.coerce import check_fits, coerce
from lance_duck.write.files import discard_fragments, write_columns, write_fragments
from lance_duck.write.inputs import to_reader
from lance_duck.write.options import Base, WriteOptions, WriteProgress, storage_version

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
    "write_fragments",
]
