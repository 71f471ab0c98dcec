"""Procedures that set and unset settings and metadata of a table, each as a version of its own.

    CALL lance_set_config(table, key, value) | lance_unset_config(table, key)
    CALL lance_set_table_metadata(table, key, value) | lance_unset_table_metadata(table, key)
    CALL lance_set_schema_metadata(table, key, value) | lance_unset_schema_metadata(table, key)
    CALL lance_set_column_metadata(table, column, key, value) | lance_unset_column_metadata(table, column, key)

They give one row with `Count`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from lance_duck.dataset import LanceDataset
from lance_duck.duck.changes.procedure import TABLE, Procedure
from lance_duck.duck.changes.upkeep.procedures import TableProcedure
from lance_duck.errors import InvalidInputError

_UNSET: Final = {TABLE: "VARCHAR", "key": "VARCHAR"}
_UNSET_OF_COLUMN: Final = {TABLE: "VARCHAR", "column": "VARCHAR", "key": "VARCHAR"}
_VALUE: Final = {"value": "VARCHAR"}


class MetadataProcedure(TableProcedure):
    """A change of one key; a value that the procedure has no parameter for is removed."""

    def change(self, dataset: LanceDataset, values: Mapping[str, Any]) -> None:
        """Set or unset the key."""
        missing = next((name for name in self.parameters if name != TABLE and name not in values), None)
        if missing is not None:
            raise InvalidInputError(f"{missing} of {self.subject}", expected="a string", found="NULL")
        self.update(dataset, {values["key"]: values.get("value")}, values.get("column", ""))

    @abstractmethod
    def update(self, dataset: LanceDataset, updates: Mapping[str, str | None], column: str) -> None:
        """Change metadata of the kind that the procedure is about.

        Args:
            dataset: The table; it moves to the new version.
            updates: Values by key; None removes a key.
            column: Path of the column, where the metadata are of one.
        """


class SetConfig(MetadataProcedure):
    """Sets a setting of the table."""

    name: ClassVar[str] = "set_config"
    parameters: ClassVar[Mapping[str, str]] = _UNSET | _VALUE
    required: ClassVar[int] = 3

    def update(self, dataset: LanceDataset, updates: Mapping[str, str | None], column: str) -> None:
        """Change settings."""
        dataset.update_config(updates)


class UnsetConfig(SetConfig):
    """Removes a setting of the table."""

    name: ClassVar[str] = "unset_config"
    parameters: ClassVar[Mapping[str, str]] = _UNSET
    required: ClassVar[int] = 2


class SetTableMetadata(MetadataProcedure):
    """Sets metadata of the table."""

    name: ClassVar[str] = "set_table_metadata"
    parameters: ClassVar[Mapping[str, str]] = _UNSET | _VALUE
    required: ClassVar[int] = 3

    def update(self, dataset: LanceDataset, updates: Mapping[str, str | None], column: str) -> None:
        """Change metadata of the table."""
        dataset.update_metadata(updates)


class UnsetTableMetadata(SetTableMetadata):
    """Removes metadata of the table."""

    name: ClassVar[str] = "unset_table_metadata"
    parameters: ClassVar[Mapping[str, str]] = _UNSET
    required: ClassVar[int] = 2


class SetSchemaMetadata(MetadataProcedure):
    """Sets metadata of the schema."""

    name: ClassVar[str] = "set_schema_metadata"
    parameters: ClassVar[Mapping[str, str]] = _UNSET | _VALUE
    required: ClassVar[int] = 3

    def update(self, dataset: LanceDataset, updates: Mapping[str, str | None], column: str) -> None:
        """Change metadata of the schema."""
        dataset.update_schema_metadata(updates)


class UnsetSchemaMetadata(SetSchemaMetadata):
    """Removes metadata of the schema."""

    name: ClassVar[str] = "unset_schema_metadata"
    parameters: ClassVar[Mapping[str, str]] = _UNSET
    required: ClassVar[int] = 2


class SetColumnMetadata(MetadataProcedure):
    """Sets metadata of a column."""

    name: ClassVar[str] = "set_column_metadata"
    parameters: ClassVar[Mapping[str, str]] = _UNSET_OF_COLUMN | _VALUE
    required: ClassVar[int] = 4

    def update(self, dataset: LanceDataset, updates: Mapping[str, str | None], column: str) -> None:
        """Change metadata of the column."""
        dataset.update_field_metadata({column: updates})


class UnsetColumnMetadata(SetColumnMetadata):
    """Removes metadata of a column."""

    name: ClassVar[str] = "unset_column_metadata"
    parameters: ClassVar[Mapping[str, str]] = _UNSET_OF_COLUMN
    required: ClassVar[int] = 3


PROCEDURES: Final[tuple[type[Procedure], ...]] = (
    *(SetConfig, UnsetConfig, SetTableMetadata, UnsetTableMetadata),
    *(SetSchemaMetadata, UnsetSchemaMetadata, SetColumnMetadata, UnsetColumnMetadata),
)
