"""A plugin of dbt-duckdb: Lance tables as sources of a dbt project, and as places for its models.

    plugins:                        # of an output in profiles.yml
      - module: lance_duck.dbt
        alias: lance
        config: {root: data}        # a source or model `trips` is the table data/trips.lance, unless it names a uri

You hold: settings of a source, or of a model with the file that dbt wrote of it. You get: a dataset, or a new version.
Never here: SQL of models, which dbt gives to DuckDB.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dbt.adapters.duckdb.plugins import BasePlugin
from dbt.adapters.duckdb.utils import SourceConfig, TargetConfig

from lance_duck.dataset import LanceDataset, dataset
from lance_duck.duck.register import register
from lance_duck.duck.statement.identifiers import literal
from lance_duck.errors import InvalidInputError, NotFoundError, UnsupportedError
from lance_duck.store import join_uri
from lance_duck.wire.paths import TABLE_SUFFIX
from lance_duck.write_dataset import write_dataset

_MODES: Final = ("overwrite", "append", "merge")


class Plugin(BasePlugin):  # type: ignore[misc]  # dbt is read as unknown, see pyproject.toml
    """The plugin that dbt-duckdb creates for `module: lance_duck.dbt`.

    Its `config` may have `root`, a folder or URI of tables, and `storage_options`. All models of the project
    may call `lance_scan` and the other functions of `lance_duck.register`.
    """

    def initialize(self, plugin_config: Mapping[str, Any]) -> None:
        """Keep the settings of the plugin."""
        self._root: str | None = plugin_config.get("root")
        self._options: dict[str, str] | None = plugin_config.get("storage_options")
        self._connection: Any = None

    def configure_connection(self, conn: Any) -> None:
        """Register the functions of `lance_duck.register` on a connection that dbt has opened."""
        self._connection = register(conn)

    def configure_cursor(self, cursor: Any) -> None:
        """Register these functions on a cursor: each cursor of a database file has its own."""
        register(cursor)

    def load(self, source_config: SourceConfig) -> LanceDataset:
        """Return the table of a source; dbt creates a view on it, into which DuckDB pushes columns and filters.

        Args:
            source_config: Its `meta` may have `uri`, and `version` (a number or a tag) or `asof`.

        Raises:
            NotFoundError: There is no such table or version.
            InvalidInputError: Neither the source nor the plugin names the location of the table.
        """
        uri = self._place(source_config.get("uri"), source_config.identifier)
        version, asof = source_config.get("version"), source_config.get("asof")
        return dataset(uri, version, asof=asof, storage_options=self._options)

    def store(self, target_config: TargetConfig) -> None:
        """Write a model of `materialized='external'` to a table, from the Parquet file that dbt wrote.

        Args:
            target_config: The settings of the model, or their `meta`, may have `uri`; `mode`: "overwrite" (the
                default), "append" or "merge"; and for "merge" the `unique_key`, a column or a list of columns that
                decides which rows are updated. A missing table is created in all modes.

        Raises:
            InvalidInputError: The settings make no sense.
            UnsupportedError: The file is not Parquet: other formats lose the types of columns.
        """
        settings = _Settings(target_config.config)
        mode = settings.get("mode") or _MODES[0]
        if mode not in _MODES:
            raise InvalidInputError("invalid mode of a model", expected=", ".join(_MODES), found=mode)
        key = settings.get("unique_key")
        if (mode == "merge") != bool(key):
            raise InvalidInputError(
                "unique_key and mode do not fit together", expected='both, with mode "merge", or no key'
            )
        uri = self._place(settings.get("uri"), target_config.relation.identifier)
        rows = self._rows(target_config)
        table = self._present(uri) if mode == "merge" else None
        if table is not None:
            table.merge_insert(key).when_matched_update_all().when_not_matched_insert_all().execute(rows)
            return
        write_dataset(rows, uri, mode="append" if mode == "append" else "overwrite", storage_options=self._options)

    def default_materialization(self) -> str:
        """Return "view": rows are read when a model asks for them."""
        return "view"

    def _rows(self, target: TargetConfig) -> Any:
        """Return the rows of the file that dbt wrote, as a relation."""
        place = target.location
        if place is None or place.format != "parquet":
            format_ = None if place is None else place.format
            raise UnsupportedError(
                "the file format of a model must be Parquet",
                expected="parquet",
                found=format_,
                remedy="format='parquet'",
            )
        rows = self._connection.cursor().sql(f"FROM read_parquet({literal(place.path)})")
        # For a model without rows dbt writes a single row of nulls.
        if [set(row) for row in rows.limit(2).fetchall()] == [{None}]:
            return rows.filter("false")
        return rows

    def _present(self, uri: str) -> LanceDataset | None:
        try:
            return dataset(uri, storage_options=self._options)
        except NotFoundError:
            return None

    def _place(self, uri: str | None, name: str) -> str:
        if uri is not None:
            return uri
        if self._root is None:
            raise InvalidInputError(
                "the table does not have a location", where=name, remedy="set uri on the table, or root on the plugin"
            )
        return join_uri(self._root, name + TABLE_SUFFIX)


class _Settings:
    """Settings of a model; dbt 1.10 expects settings that it does not know in `meta`.

    Args:
        config: The object that dbt passes; it has the `get` of a dict.
    """

    def __init__(self, config: Any) -> None:
        self._config = config
        self._meta: Mapping[str, Any] = config.get("meta", None) or {}

    def get(self, name: str) -> Any:
        """Return a setting, or None if it is not set."""
        return self._meta[name] if name in self._meta else self._config.get(name, None)
