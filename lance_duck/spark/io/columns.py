"""Columns of a new table for a DataFrame, including arrays that become vectors and binary columns that become blobs.

The table determines the types of existing columns. A new column gets the type that corresponds to the Spark type (see
`spark.io.types`). As an exception, arrays of floats become vectors. `vector_columns` or the field metadata must specify
the vector length. If a table is replaced, columns with an unchanged Spark type keep their Lance type.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import types as st

from lance_duck.arguments import unknown_column
from lance_duck.errors import InvalidInputError, UnsupportedError, WrongTypeError
from lance_duck.spark.io.types import VECTOR_ITEM, VECTOR_SIZE, arrow_type, spark_schema
from lance_duck.wire.logical import BLOB_V2
from lance_duck.wire.schema import BLOB_KEY
from lance_duck.write.vectors import VectorForm


def table_schema(
    schema: st.StructType,
    vectors: Mapping[str, str] | None = None,
    blobs: frozenset[str] = frozenset(),
    like: pa.Schema | None = None,
) -> pa.Schema:
    """Return the columns of a new table for a frame.

    Args:
        schema: Schema of the frame.
        vectors: Vector types by column: "128", "float16[128]", or "0" for lists of any length.
        blobs: Names of binary columns to store as blobs.
        like: Schema of the replaced table. A column with the same name and the same Spark type keeps its type.

    Raises:
        InvalidInputError: A named column does not exist, or the length of an array of floats is unknown.
        UnsupportedError: A column has a type that Lance does not support.
    """
    vectors = dict(vectors or {})
    for name in (*vectors, *blobs):
        if name not in schema.names:
            raise unknown_column(name, schema.names, "frame")
    return pa.schema([_table_field(field, vectors.get(field.name), field.name in blobs, like) for field in schema])


def _table_field(field: st.StructField, vector: str | None, is_blob: bool, like: pa.Schema | None) -> pa.Field:
    before = None if like is None or field.name not in like.names else like.field(field.name)
    if is_blob:
        if not isinstance(field.dataType, st.BinaryType):
            raise WrongTypeError(
                "blobs must be bytes", where=f"column {field.name!r}", found=field.dataType.simpleString()
            )
        return pa.field(field.name, pa.large_binary(), field.nullable, {BLOB_KEY: "true"})
    if vector is None and before is not None and _same_to_spark(before, field.dataType):
        return before.with_nullable(field.nullable)
    kind = arrow_type(field.dataType, field.name)
    if vector is None and VECTOR_SIZE in field.metadata:
        item, size = field.metadata.get(VECTOR_ITEM), field.metadata[VECTOR_SIZE]
        vector = str(size) if item is None else f"{item}[{size}]"
    if vector is not None:
        kind = _vector_type(kind, vector, field.name)
    elif pa.types.is_list(kind) and pa.types.is_floating(kind.value_type):
        raise InvalidInputError(
            "the vector length cannot be determined",
            where=f"column {field.name!r}",
            remedy=f'pass vector_columns={{"{field.name}": length}} to `write`, or .option("vector_columns", '
            f'"{field.name}:length") to the frame\'s writer; a length of 0 keeps lists of any length',
        )
    return pa.field(field.name, kind, field.nullable)


def _same_to_spark(field: pa.Field, kind: st.DataType) -> bool:
    """Return whether Spark reads a column as this type. Version 2 blob columns also accept bytes."""
    if isinstance(field.type, pa.BaseExtensionType) and field.type.extension_name == BLOB_V2:
        return isinstance(kind, st.BinaryType)
    try:
        spark_type = spark_schema(pa.schema([field]))[0].dataType
    except UnsupportedError:
        return False
    return bool(_nullable(arrow_type(spark_type, field.name)) == _nullable(arrow_type(kind, field.name)))


def _nullable(kind: pa.DataType) -> pa.DataType:
    """Return the type with all its fields nullable."""
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _nullable(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_nullable(kind.key_type), _nullable(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _nullable(f.type)) for f in kind])
    return kind


def _vector_type(kind: pa.DataType, text: str, name: str) -> pa.DataType:
    if not pa.types.is_list(kind):
        raise WrongTypeError("vectors must be arrays", where=f"column {name!r}", found=kind)
    return VectorForm.of(text, name).type_of(kind, name)
