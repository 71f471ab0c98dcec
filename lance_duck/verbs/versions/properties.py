"""Properties of a table version: columns, settings and sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_duck import lazy
from lance_duck.arguments import checked_calls
from lance_duck.snapshot import derived
from lance_duck.verbs.handle import TableMethods

if TYPE_CHECKING:
    from lance_duck.verbs import statistics
    from lance_duck.verbs.public import lance_schema
else:
    statistics = lazy.modules(globals(), "lance_duck.verbs", "statistics")
    lance_schema = lazy.modules(globals(), "lance_duck.verbs.public", "lance_schema")


@checked_calls
class VersionProperties(TableMethods):
    """Properties of the version that a dataset reads, all from the manifest."""

    @property
    def uri(self) -> str:
        """Path or URI of the table, as the user passed it."""
        return self.handle.uri

    @property
    def version(self) -> int:
        """Number of the version."""
        return self.handle.snapshot.version

    @property
    def lance_schema(self) -> lance_schema.LanceSchema:
        """Columns with their field ids."""
        return lance_schema.LanceSchema(self.handle.snapshot.schema)

    @property
    def max_field_id(self) -> int:
        """Highest field id in use."""
        return max((field.id for field in self.handle.snapshot.schema.walk()), default=-1)

    @property
    def data_storage_version(self) -> str:
        """File format version of new data files."""
        return self.handle.snapshot.data_storage_version

    @property
    def has_stable_row_ids(self) -> bool:
        """Whether rows keep their `_rowid` when they move."""
        return self.handle.snapshot.has_stable_row_ids

    @property
    def metadata(self) -> dict[str, str]:
        """Metadata of the table."""
        return dict(self.handle.snapshot.metadata)

    @property
    def schema_metadata(self) -> dict[str, str]:
        """Metadata of the schema."""
        return dict(self.handle.snapshot.schema.metadata)

    @property
    def computed_columns(self) -> dict[str, str]:
        """Expressions of LanceDB's computed columns, by column name."""
        return derived.computed_columns(self.handle.snapshot.schema)

    @property
    def view_query(self) -> str | None:
        """The query of a LanceDB materialized view, or None for a plain table."""
        return derived.view_query(self.handle.snapshot.schema.metadata)

    def config(self) -> dict[str, str]:
        """Return the settings of the table."""
        return dict(self.handle.snapshot.config)

    @property
    def stats(self) -> statistics.LanceStats:
        """Sizes of the version, and statistics of its indexes."""
        return statistics.LanceStats(self.handle.snapshot)
