"""A plugin of dbt-duckdb: Lance tables as sources of a dbt project, and as places for its models.

    plugins:                        # of an output in profiles.yml
      - module: lance_duck.dbt
        alias: lance
        config: {root: data}        # a source or model `trips` is the table data/trips.lance, unless it names a uri

You hold: settings of a source, or of a model with the file that dbt wrote of it. You get: a dataset, or a new version.
Never here: SQL of models, which dbt gives to DuckDB.
"""

from lance_duck.dbt.plugin import Plugin

__all__ = ["Plugin"]
