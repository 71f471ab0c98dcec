from __future__ import annotations

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_blobs_are_read_as_files(kind: pa.DataType) -> None:
    values = pa.array([b"one", None, b""], kind)
    for column in (values, pa.chunked_array([values])):
        assert [file and file.read() for file in ld.BlobColumn(column)] == [b"one", None, b""]


@pytest.mark.parametrize("values", [pa.array([1]), pa.array(["text"]), [b"list"]])
def test_other_column_types_are_rejected(values: object) -> None:
    with pytest.raises(InvalidInputError, match="Expected a binary array"):
        ld.BlobColumn(values)
