"""Changes to the schema, the settings and the metadata of a table in its manifest message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

import pyarrow as pa

from lance_duck.arrow.pandas_metadata import PANDAS, LabelledColumn, fitted, without_row_labels
from lance_duck.errors import IncompatibleError, UnsupportedError
from lance_duck.wire.pb import file_pb2, table_pb2, transaction_pb2
from lance_duck.wire.schema import Field, Schema, schema_from_proto
from lance_duck.wire.schema_write import field_to_proto

_KEYS = "lance-schema:unenforced-"


def set_schema(
    manifest: table_pb2.Manifest, fields: Iterable[file_pb2.Field], metadata: Mapping[str, bytes] | None
) -> None:
    """Replace the table schema. If `metadata` is None, the schema metadata does not change."""
    copies = table_pb2.Manifest(fields=fields)
    manifest.ClearField("fields")
    manifest.fields.MergeFrom(copies.fields)
    if metadata is not None:
        own_metadata = dict(metadata)
        manifest.schema_metadata.clear()
        for key, value in own_metadata.items():
            manifest.schema_metadata[key] = value


def follow_columns(before: table_pb2.Manifest, after: table_pb2.Manifest) -> None:
    """Update the pandas metadata to match the columns of a new version."""
    text = after.schema_metadata.get(PANDAS)
    if text is None:
        return
    old = {field.id: field.name for field in schema_from_proto(before.fields).fields}
    columns = [
        LabelledColumn(old.get(f.id, f.name), f.name, _known_type(f), f.id not in old and f.name in old.values())
        for f in schema_from_proto(after.fields).fields
    ]
    labelled = fitted(text.decode(errors="replace"), columns, moves=True)
    after.schema_metadata.pop(PANDAS)
    if labelled is not None:
        after.schema_metadata[PANDAS] = labelled.encode()


def forget_row_labels(manifest: table_pb2.Manifest) -> None:
    """Remove the row labels from the pandas metadata, because the rows changed."""
    text = manifest.schema_metadata.get(PANDAS)
    if text is not None:
        manifest.schema_metadata[PANDAS] = without_row_labels(text.decode(errors="replace")).encode()


def _known_type(field: Field) -> pa.DataType | None:
    try:
        return field.arrow_type
    except UnsupportedError:
        return None


def apply_config(manifest: table_pb2.Manifest, operation: transaction_pb2.Transaction.UpdateConfig) -> None:
    """Change table settings, and the metadata of the table and its schema."""
    for key in operation.delete_keys:
        manifest.config.pop(key, None)
    for key, value in operation.upsert_values.items():
        manifest.config[key] = value
    if operation.schema_metadata:
        manifest.schema_metadata.clear()
        for key, value in operation.schema_metadata.items():
            manifest.schema_metadata[key] = value.encode()
    _apply(manifest.config, operation, "config_updates", str)
    _apply(manifest.table_metadata, operation, "table_metadata_updates", str)
    _apply(manifest.schema_metadata, operation, "schema_metadata_updates", str.encode)


def apply_field_metadata(manifest: table_pb2.Manifest, operation: transaction_pb2.Transaction.UpdateConfig) -> None:
    """Change field metadata, and the key information that the manifest also stores outside the metadata.

    Raises:
        IncompatibleError: A field does not exist.
        InvalidInputError: A field cannot be part of the declared key.
    """
    fields = {f.id: f for f in manifest.fields}
    field_ids = {*operation.field_metadata_updates, *operation.field_metadata}
    for field_id in field_ids:
        if field_id not in fields:
            raise IncompatibleError(f"no field with id {field_id}", where="UpdateConfig")
    _spell_out_keys([fields[i] for i in field_ids], schema_from_proto(manifest.fields) if field_ids else None)
    for field_id, old in operation.field_metadata.items():
        fields[field_id].metadata.clear()
        for key, value in old.metadata.items():
            fields[field_id].metadata[key] = value.encode()
    for field_id, update in operation.field_metadata_updates.items():
        _change(fields[field_id].metadata, update, str.encode)
    if field_ids:
        schema = schema_from_proto(manifest.fields)
        for field_id in field_ids:
            _set_keys(fields[field_id], field_to_proto(schema.by_id(field_id)))


def _spell_out_keys(fields: Iterable[file_pb2.Field], schema: Schema | None) -> None:
    """Move the key information of fields to their metadata. The separate copy is removed."""
    for field in fields:
        assert schema is not None
        for key, value in schema.by_id(field.id).metadata.items():
            if key.startswith(_KEYS) and key not in field.metadata:
                field.metadata[key] = value.encode()
        _set_keys(field, file_pb2.Field(extension_name=field.extension_name))


def _set_keys(target: file_pb2.Field, source: file_pb2.Field) -> None:
    for name in (
        "extension_name",
        "unenforced_primary_key",
        "unenforced_primary_key_position",
        "unenforced_clustering_key",
        "unenforced_clustering_key_position",
    ):
        setattr(target, name, getattr(source, name))


def _apply(
    values: MutableMapping[str, Any], operation: transaction_pb2.Transaction.UpdateConfig, name: str, encode: Any
) -> None:
    if operation.HasField(name):
        _change(values, getattr(operation, name), encode)


def _change(values: MutableMapping[str, Any], update: transaction_pb2.Transaction.UpdateMap, encode: Any) -> None:
    if update.replace:
        values.clear()
    for entry in update.update_entries:
        if entry.HasField("value"):
            values[entry.key] = encode(entry.value)
        else:
            values.pop(entry.key, None)
