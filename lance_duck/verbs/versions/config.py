"""Changes to table settings and to metadata."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lance_duck import lazy
from lance_duck.arguments import checked_calls, unknown_column
from lance_duck.errors import InvalidInputError
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.handle import TableMethods
from lance_duck.wire.column_path import quoted_name
from lance_duck.wire.schema import EMBEDDING_FUNCTIONS, PRIMARY_KEY, Field
from lance_duck.wire.schema_write import is_primary_key

if TYPE_CHECKING:
    from lance_duck import embedders
    from lance_duck.commit import operations
    from lance_duck.verbs import change
else:
    embedders = lazy.modules(globals(), "lance_duck", "embedders")
    operations = lazy.modules(globals(), "lance_duck.commit", "operations")
    change = lazy.modules(globals(), "lance_duck.verbs", "change")

Updates = Mapping[str, str | None]


@checked_calls
class ConfigChanges(TableMethods):
    """Changes to settings and metadata.

    All methods take new values by key. None removes a key, and `replace` removes all other keys. Each call
    commits a version.
    """

    def update_config(
        self,
        values: Updates,
        *,
        replace: bool = False,
        commit_message: str | None = None,
        transaction_properties: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Update the table settings and return all of them.

        Raises:
            InvalidInputError: A key or a value is not a string.
            CommitConflictError: Another change of the same keys was committed first.
        """
        operation = operations.UpdateConfig(config_updates=_update_map(values, replace=replace))
        self._commit(operation, commit_message, transaction_properties)
        return dict(self.handle.snapshot.config)

    def delete_config_keys(self, keys: Iterable[str]) -> None:
        """Remove table settings. Missing keys are ignored."""
        self.update_config(dict.fromkeys(keys))

    def update_metadata(
        self,
        values: Updates,
        *,
        replace: bool = False,
        commit_message: str | None = None,
        transaction_properties: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Update the table metadata and return all of it. Raises the errors of `update_config`."""
        operation = operations.UpdateConfig(table_metadata_updates=_update_map(values, replace=replace))
        self._commit(operation, commit_message, transaction_properties)
        return dict(self.handle.snapshot.metadata)

    def update_schema_metadata(
        self,
        values: Updates,
        *,
        replace: bool = False,
        commit_message: str | None = None,
        transaction_properties: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Update the schema metadata and return all of it. Raises the errors of `update_config`."""
        operation = operations.UpdateConfig(schema_metadata_updates=_update_map(values, replace=replace))
        self._commit(operation, commit_message, transaction_properties)
        return dict(self.handle.snapshot.schema.metadata)

    def update_field_metadata(
        self,
        field_updates: Mapping[str, Updates],
        *,
        replace: bool = False,
        commit_message: str | None = None,
        transaction_properties: Mapping[str, str] | None = None,
    ) -> None:
        """Update the metadata of fields, by path ("a.b.c").

        The key lance-schema:unenforced-primary-key = "true" declares the unenforced primary key.
        lance-schema:unenforced-primary-key:position = "1", "2", … orders its fields. The key cannot be changed later.

        Raises:
            InvalidInputError: The field does not exist or cannot be a primary key, or the table already has a key.
        """
        updates = {path: _update_map(values, replace=replace) for path, values in field_updates.items()}

        def make(snapshot: Snapshot) -> operations.UpdateConfig:
            fields = {path: snapshot.schema.by_path(path) for path in updates}
            _check_primary_key(snapshot, [(fields[path], update) for path, update in updates.items()])
            return operations.UpdateConfig(
                field_metadata_updates={fields[path].id: update for path, update in updates.items()}
            )

        change.commit_change(self.handle, make, commit_message, transaction_properties)

    def set_embedding_function(
        self, vector_column: str, source_column: str, name: str | None, model: Mapping[str, Any] | None = None
    ) -> None:
        """Declare which function makes the vectors of a column, in LanceDB's schema metadata.

        `ds.search("text", k, vector_column)` then calls the function that is registered by this name, and writes
        without the vector column call it for their source column. Existing rows do not change.

        LanceDB reads the declaration too. If LanceDB does not know the name, its `add` raises a KeyError, unless the
        name is registered with LanceDB in that process.

        Args:
            vector_column: Column of vectors.
            source_column: Column that the vectors are made of.
            name: Name that `lance_duck.register_embedder` registers the function by, for LanceDB's functions its own
                name. None removes the declaration.
            model: Arguments of the model, for functions that are registered as a class.

        Raises:
            UnknownColumnError: A column does not exist.
            InvalidInputError: The vector column does not hold vectors.
        """
        schema = self.handle.snapshot.schema
        for column in (vector_column, source_column):
            if column not in schema.names:
                raise unknown_column(column, schema.names, "set_embedding_function")
        function = (
            None if name is None else embedders.EmbeddingFunction(name, dict(model or {}), source_column, vector_column)
        )
        if function is not None:
            function.vector_type(schema.by_path(quoted_name(vector_column)).arrow_type)
        text = embedders.metadata_with(embedders.embedding_functions(schema.metadata), vector_column, function)
        self.update_schema_metadata({EMBEDDING_FUNCTIONS: text})

    def replace_schema_metadata(self, new_metadata: Mapping[str, str]) -> None:
        """Replace the schema metadata. Deprecated: use `update_schema_metadata` with `replace`."""
        _deprecated("replace_schema_metadata", "update_schema_metadata(metadata, replace=True)")
        self.update_schema_metadata(new_metadata, replace=True)

    def replace_field_metadata(self, field_name: str, new_metadata: Mapping[str, str]) -> None:
        """Replace the metadata of a field. Deprecated: use `update_field_metadata` with `replace`."""
        _deprecated("replace_field_metadata", "update_field_metadata({field: metadata}, replace=True)")
        self.update_field_metadata({field_name: new_metadata}, replace=True)

    def _commit(
        self, operation: operations.UpdateConfig, message: str | None, properties: Mapping[str, str] | None
    ) -> None:
        change.commit_change(self.handle, lambda _: operation, message, properties)


def _update_map(values: Updates, *, replace: bool) -> operations.UpdateMap:
    if not isinstance(values, Mapping):
        raise InvalidInputError(
            "not a mapping of strings to strings", expected="a mapping", found=type(values).__name__
        )
    for key, value in values.items():
        if not isinstance(key, str) or not (value is None or isinstance(value, str)):
            raise InvalidInputError("not a string", where=repr(key), expected="a string, or None", found=repr(value))
    return operations.UpdateMap(
        {k: v for k, v in values.items() if v is not None} if replace else dict(values), replace
    )


def _check_primary_key(snapshot: Snapshot, updates: Iterable[tuple[Field, operations.UpdateMap]]) -> None:
    """Reject changes to a declared primary key, and primary keys on unsuitable fields."""
    is_set = any(is_primary_key(field) for field in snapshot.schema.walk())
    for field, update in updates:
        keys = [key for key in update.updates if key.startswith(PRIMARY_KEY)]
        if is_set and (keys or (update.replace and is_primary_key(field))):
            raise InvalidInputError(
                "the primary key of a table cannot be changed once it is set", where=f"field {field.name!r}"
            )
        if any(update.updates[key] is not None for key in keys):
            _check_can_be_key(snapshot, field)


def _check_can_be_key(snapshot: Snapshot, field: Field) -> None:
    above: Field | None = field
    while above is not None:
        if above.nullable or field.children:
            raise InvalidInputError(
                "the field cannot be a primary key",
                where=f"field {field.name!r}",
                expected="neither nullable, nor in something nullable, nor nested",
                remedy="make the column non-nullable with alter_columns",
            )
        above = snapshot.schema.by_id(above.parent_id) if above.parent_id >= 0 else None


def _deprecated(name: str, instead: str) -> None:
    warnings.warn(f"{name} is deprecated; use {instead}", DeprecationWarning, stacklevel=4)
