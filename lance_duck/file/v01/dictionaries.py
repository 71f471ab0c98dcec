"""The dictionaries of a table in file format 0.1. Each data file stores a copy, and all copies for a field are equal.

The module is imported by the first commit to a 0.1 table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set

import numpy as np
import pyarrow as pa

from lance_duck.arrow.types import is_bytes, is_text, storage_type
from lance_duck.encoding.arrow.blocks import block_to_arrow
from lance_duck.encoding.block import Block
from lance_duck.encoding.v20.runs import span
from lance_duck.errors import IncompatibleError
from lance_duck.file.reader import LanceFile
from lance_duck.file.v01.container import LegacyFile
from lance_duck.file.v01.nodes import block_reader
from lance_duck.file.v01.pages import Batches, read_texts
from lance_duck.store.request import Request, run
from lance_duck.wire.files.data_file import LEGACY, DataFile
from lance_duck.wire.schema import Field


def shared_dictionaries(
    fields: Iterable[Field],
    files: Iterable[DataFile],
    known: Set[str],
    open_file: Callable[[DataFile], LanceFile],
) -> Mapping[int, pa.Array]:
    """Return the dictionary values of each field, by field id. Checks that files not in `known` agree.

    Args:
        fields: All fields of the table.
        files: Data files of the table.
        known: Paths of files whose dictionaries are known to be equal.
        open_file: Opens a data file.

    Raises:
        IncompatibleError: Two files have different dictionaries of a field.
    """
    pending = [f for f in fields if f.is_dictionary]
    result: dict[int, pa.Array] = {}
    if not pending:
        return result
    for file in sorted((f for f in files if f.version == LEGACY), key=lambda f: f.path not in known):
        for f in pending:
            is_new = file.path not in known
            if f.id not in file.fields or (f.id in result and not is_new):
                continue
            opened = open_file(file)
            assert isinstance(opened, LegacyFile)
            values = run(read_dictionary(opened, f))
            if not result.setdefault(f.id, values).equals(values):
                raise IncompatibleError(
                    f"data files of version 0.1 cannot have two dictionaries of column {f.name!r}",
                    where=opened.source.path,
                    expected=str(result[f.id].to_pylist()[:8]),
                    found=str(values.to_pylist()[:8]),
                    remedy="write the rows again, on top of the newest version of the table",
                )
    return result


def read_dictionary(file: LegacyFile, f: Field) -> Request[pa.Array]:
    """Return the dictionary values that a file stores for a field.

    Raises:
        CorruptError: The field lacks a dictionary, or the dictionary is outside the file.
    """
    position, length = file.dictionary_extent(f.id)
    where = f"{file.source.path}: dictionary of field {f.id}"
    page = Batches(file.source, np.array([0, length]), np.array([position]), where)
    value_type = storage_type(f.storage_type.value_type)
    if is_text(value_type) or is_bytes(value_type):
        block: Block = yield from read_texts(page, span(0, length))
    else:
        block = yield from block_reader(value_type)(page, span(0, length))
    return block_to_arrow(block, value_type, None, where)
