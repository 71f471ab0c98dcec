"""A dbt-duckdb plugin: Lance tables as sources and as targets of models.

    plugins:                        # in an output of profiles.yml
      - module: lance_duck.dbt
        alias: lance
        config: {root: data}        # a source or model `trips` is the table data/trips.lance, unless it sets `uri`

With `folder: data` in the config, all SQL of the project runs on a connection whose database `lance` is the folder. Models
with `database: lance` are then tables and views of the folder, with dbt's own materializations.

You hold: settings of a source, or settings of a model and the Parquet file that dbt wrote for it. You get: a dataset,
or a new version.
Never here: the SQL of models, which dbt sends to DuckDB.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dbt.adapters.duckdb.environments import Environment
from dbt.adapters.duckdb.plugins import BasePlugin
from dbt.adapters.duckdb.utils import SourceConfig, TargetConfig

from lance_duck.dataset import LanceDataset, dataset
from lance_duck.duck.connection import Connection, connection_on
from lance_duck.duck.register import register
from lance_duck.duck.statement.identifiers import literal
from lance_duck.errors import InvalidInputError, NotFoundError, UnsupportedError
from lance_duck.store import join_uri
from lance_duck.wire.paths import TABLE_SUFFIX
from lance_duck.write_dataset import write_dataset

_initialize_db: Final = Environment.initialize_db.__func__


def _initialize_lance_db(cls: Any, creds: Any, plugins: Mapping[str, BasePlugin] | None = None) -> Any:
    """Return dbt's connection, which runs SQL on the folder of a plugin if one has a folder."""
    conn = _initialize_db(cls, creds, plugins)
    for plugin in (plugins or {}).values():
        if isinstance(plugin, Plugin):
            conn = plugin.connection(conn)
    return conn


Environment.initialize_db = classmethod(_initialize_lance_db)  # dbt-duckdb lets no plugin return a connection

_MODES: Final = ("overwrite", "append", "merge")


class Plugin(BasePlugin):  # type: ignore[misc]  # mypy ignores dbt's types, see pyproject.toml
    """The plugin that dbt-duckdb creates for `module: lance_duck.dbt`.

    Its `config` accepts `root`, a folder or URI of tables, `folder`, a folder that becomes the database `lance`, and
    `storage_options`. All models of the project can call `lance_scan` and the other functions of
    `lance_duck.register`.
    """

    def initialize(self, plugin_config: Mapping[str, Any]) -> None:
        """Store the settings of the plugin."""
        self.folder: str | None = plugin_config.get("folder")
        self._root: str | None = plugin_config.get("root", self.folder)
        self._options: dict[str, str] | None = plugin_config.get("storage_options")
        self._connection: Any = None

    def configure_connection(self, conn: Any) -> None:
        """Register the functions of `lance_duck.register` on dbt's connection."""
        self._connection = conn if self.folder is not None else register(conn)

    def configure_cursor(self, cursor: Any) -> None:
        """Register the functions on a cursor. Cursors of a database file do not share functions."""
        if not isinstance(cursor, Connection):
            register(cursor)

    def connection(self, conn: Any) -> Any:
        """Return the connection for dbt's SQL."""
        return conn if self.folder is None else connection_on(conn, self.folder, self._options)

    def load(self, source_config: SourceConfig) -> LanceDataset:
        """Return the table of a source. dbt creates a view over it that supports column and filter pushdown.

        Args:
            source_config: Its `meta` accepts `uri`, and `version` (a number or a tag) or `asof`.

        Raises:
            NotFoundError: The table or version does not exist.
            InvalidInputError: The location is set in neither the source nor the plugin.
        """
        uri = self._place(source_config.get("uri"), source_config.identifier)
        version, asof = source_config.get("version"), source_config.get("asof")
        return dataset(uri, version, asof=asof, storage_options=self._options)

    def store(self, target_config: TargetConfig) -> None:
        """Write a model with `materialized='external'` to a table, from the Parquet file that dbt wrote.

        Args:
            target_config: Accepts these settings, directly or in `meta`: `uri`; `mode`, which is "overwrite" (default),
                "append" or "merge"; `unique_key`, the columns that identify the rows to update in mode "merge". All
                modes create a missing table.

        Raises:
            InvalidInputError: The settings are invalid or contradict each other.
            UnsupportedError: The file is not Parquet. Other formats lose column types.
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
        """Return "view": models read the rows on demand."""
        return "view"

    def _rows(self, target: TargetConfig) -> Any:
        """Return the rows of dbt's file as a relation."""
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
        # dbt writes a single row of nulls for a model without rows.
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
    """Settings of a model. dbt 1.10 expects unknown settings in `meta`.

    Args:
        config: The configuration object from dbt, with a `get` method like a dict.
    """

    def __init__(self, config: Any) -> None:
        self._config = config
        self._meta: Mapping[str, Any] = config.get("meta", None) or {}

    def get(self, name: str) -> Any:
        """Return a setting, or None if it is not set."""
        return self._meta[name] if name in self._meta else self._config.get(name, None)
