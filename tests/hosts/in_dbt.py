"""The plugin in dbt-duckdb: a project whose sources and models are Lance tables."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest
from dbt.adapters.duckdb.plugins import BasePlugin
from dbt.adapters.duckdb.utils import SourceConfig, TargetLocation

import lance_duck as ld
from lance_duck.errors import InvalidInputError, NotFoundError, UnsupportedError

PROJECT = {
    "dbt_project.yml": "{name: trips, version: '1.0', profile: trips, model-paths: [models]}",
    "profiles.yml": """
trips:
  target: dev
  outputs:
    dev:
      type: duckdb
      path: project.duckdb
      external_root: out
      plugins: [{module: lance_duck.dbt, alias: lance, config: {root: tables}}]
""",
    "models/sources.yml": """
sources:
  - name: lake
    schema: main
    config: {plugin: lance}
    tables:
      - name: zones
      - name: first_zones
        config: {meta: {uri: tables/zones.lance, version: 1}}
""",
    "models/busy.sql": """
{{ config(materialized='external', plugin='lance', meta={'mode': 'merge', 'unique_key': 'zone'}) }}
SELECT zone, count(*) AS n FROM {{ source('lake', 'zones') }} GROUP BY zone
""",
    "models/every_run.sql": """
{{ config(materialized='external', plugin='lance', meta={'mode': 'append', 'uri': 'tables/runs.lance'}) }}
SELECT count(*) AS n FROM {{ source('lake', 'first_zones') }}
""",
    "models/nothing.sql": """
{{ config(materialized='external', plugin='lance') }}
SELECT zone, 'x' AS s FROM {{ source('lake', 'zones') }} WHERE zone > 99
""",
    "models/counted.sql": "SELECT count(*) AS n FROM lance_scan('tables/zones.lance')",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in PROJECT.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (tmp_path / "out").mkdir()
    return tmp_path


def run(project: Path) -> None:
    command = [sys.executable, "-c", "from dbt.cli.main import cli; cli()", "run", "--profiles-dir", "."]
    quiet = {**os.environ, "DO_NOT_TRACK": "1", "DBT_SEND_ANONYMOUS_USAGE_STATS": "0"}
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, env=quiet, timeout=300, check=False)
    assert done.returncode == 0, done.stdout
    assert "PASS=4" in done.stdout
    assert "config.get" not in done.stdout  # what dbt warns of


FOLDER = {
    "dbt_project.yml": """
name: trips
version: '1.0'
profile: trips
model-paths: [models]
snapshot-paths: [snapshots]
models: {+database: lance}
snapshots: {+database: lance}
""",
    "profiles.yml": """
trips:
  target: dev
  outputs:
    dev:
      type: duckdb
      path: ":memory:"
      plugins: [{module: lance_duck.dbt, alias: lance, config: {folder: data}}]
""",
    "models/base.sql": """
{{ config(materialized='table') }}
SELECT range AS id, range * {{ var('factor', 1) }} AS v FROM range({{ var('n', 3) }})
""",
    "models/seen.sql": "{{ config(materialized='view') }} SELECT id, v + 1 AS w FROM {{ ref('base') }}",
    "models/incremental.sql": """
{{ config(materialized='incremental', unique_key='id') }}
SELECT * FROM {{ ref('base') }}
{% if is_incremental() %} WHERE id >= (SELECT max(id) FROM {{ this }}) {% endif %}
""",
    "models/merged.sql": """
{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', schema='marts') }}
SELECT * FROM {{ ref('base') }}
""",
    "snapshots/kept.sql": """
{% snapshot kept %}
{{ config(target_schema='main', unique_key='id', strategy='check', check_cols=['v']) }}
SELECT * FROM {{ ref('base') }}
{% endsnapshot %}
""",
}


def test_dbt_materializations_run_on_a_folder(tmp_path: Path) -> None:
    for name, text in FOLDER.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    dbt(tmp_path, "build")
    with ld.connect(tmp_path / "data") as con:
        assert con.sql("FROM seen ORDER BY id").fetchall() == [(0, 1), (1, 2), (2, 3)]
    dbt(tmp_path, "build", "--vars", "{n: 4, factor: 10}")
    with ld.connect(tmp_path / "data") as con:
        assert con.sql("FROM base ORDER BY id").fetchall() == [(0, 0), (1, 10), (2, 20), (3, 30)]
        assert con.sql("FROM seen ORDER BY id").fetchall() == [(0, 1), (1, 11), (2, 21), (3, 31)]
        assert con.sql("FROM incremental ORDER BY id").fetchall() == [(0, 0), (1, 1), (2, 20), (3, 30)]
        assert con.sql("FROM main_marts.merged ORDER BY id").fetchall() == [(0, 0), (1, 10), (2, 20), (3, 30)]
        snapshot = "SELECT id, v, dbt_valid_to IS NULL FROM kept ORDER BY ALL"
        assert con.sql(snapshot).fetchall() == [
            *((0, 0, True), (1, 1, False), (1, 10, True), (2, 2, False), (2, 20, True), (3, 30, True))
        ]


def dbt(project: Path, *arguments: str) -> None:
    command = [sys.executable, "-c", "from dbt.cli.main import cli; cli()", *arguments, "--profiles-dir", "."]
    quiet = {**os.environ, "DO_NOT_TRACK": "1", "DBT_SEND_ANONYMOUS_USAGE_STATS": "0"}
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, env=quiet, timeout=300, check=False)
    assert done.returncode == 0, done.stdout


def rows(project: Path, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ld.dataset(project / "tables" / f"{name}.lance").to_table().to_pylist()
    return sorted(found, key=str)


def test_sources_are_read_and_models_written(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    zones = ld.write_dataset({"zone": [1, 1, 2]}, project / "tables/zones.lance")
    zones.insert({"zone": [3]})
    run(project)
    assert rows(project, "busy") == [{"zone": 1, "n": 2}, {"zone": 2, "n": 1}, {"zone": 3, "n": 1}]
    assert rows(project, "runs") == [{"n": 3}]
    assert ld.dataset(project / "tables/nothing.lance").to_table().to_pydict() == {"zone": [], "s": []}
    with duckdb.connect(project / "project.duckdb") as connection:
        assert ld.register(connection).sql("FROM counted").fetchall() == [(4,)]
    zones.delete("zone = 1")
    zones.insert({"zone": [2, 4]})
    run(project)
    assert rows(project, "busy") == [{"zone": n, "n": count} for n, count in ((1, 2), (2, 2), (3, 1), (4, 1))]
    assert rows(project, "runs") == [{"n": 3}, {"n": 3}]


def plugin(**config: Any) -> Any:
    made = BasePlugin.create("lance_duck.dbt", config=config)
    made.configure_connection(duckdb.connect())
    return made


def source(name: str, **meta: Any) -> SourceConfig:
    return SourceConfig(name=name, identifier=name, schema="main", database=None, meta=meta, tags=[])


def target(path: Path, file_format: str = "parquet", **config: Any) -> Any:
    relation = SimpleNamespace(identifier="made")
    return SimpleNamespace(relation=relation, config=config, location=TargetLocation(str(path), file_format))


def test_a_source_is_a_version_of_a_table(tmp_path: Path) -> None:
    table = ld.write_dataset({"x": [1]}, tmp_path / "t.lance")
    table.insert({"x": [2]})
    table.tags.create("first", 1)
    lance = plugin(root=str(tmp_path))
    assert lance.default_materialization() == "view"
    assert lance.load(source("t")).count_rows() == 2
    for version in (1, "first"):
        assert lance.load(source("t", version=version)).count_rows() == 1
    assert lance.load(source("other", uri=str(tmp_path / "t.lance"))).count_rows() == 2
    with pytest.raises(NotFoundError):
        lance.load(source("missing"))
    with pytest.raises(InvalidInputError, match="root"):
        plugin().load(source("t"))


def test_invalid_models_are_rejected_before_anything_is_written(tmp_path: Path) -> None:
    file = tmp_path / "made.parquet"
    duckdb.sql("SELECT 1 AS x").write_parquet(str(file))
    lance = plugin(root=str(tmp_path))
    refused = [
        (target(file, mode="upsert"), InvalidInputError),
        (target(file, mode="merge"), InvalidInputError),
        (target(file, unique_key="x"), InvalidInputError),
        (target(tmp_path / "made.csv", "csv"), UnsupportedError),
    ]
    for config, error in refused:
        with pytest.raises(error):
            lance.store(config)
    assert not (tmp_path / "made.lance").exists()
    lance.store(target(file))
    assert ld.dataset(tmp_path / "made.lance").to_table().to_pydict() == {"x": [1]}


def test_a_row_with_a_value_is_not_dropped(tmp_path: Path) -> None:
    file = tmp_path / "made.parquet"
    lance = plugin(root=str(tmp_path))
    for query, count in (("SELECT NULL::INT AS x, 1 AS y", 1), ("SELECT NULL::INT AS x FROM range(2)", 2)):
        duckdb.sql(query).write_parquet(str(file))
        lance.store(target(file))
        assert ld.dataset(tmp_path / "made.lance").count_rows() == count
