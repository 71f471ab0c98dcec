"""Spans and instruments of OpenTelemetry."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.telemetry import metrics, observing

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class Collected:
    """Providers, and what they collected."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.tracer_provider = TracerProvider()
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.meter_provider = MeterProvider([self._reader])

    def instrument(self, **options: Any) -> None:
        ld.instrument(self.tracer_provider, self.meter_provider, **options)

    @property
    def spans(self) -> list[ReadableSpan]:
        """Finished spans in the order of their begin."""
        return sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.spans]

    @property
    def metrics(self) -> dict[str, list[Any]]:
        data: Any = self._reader.get_metrics_data()
        found: dict[str, list[Any]] = {}
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    found.setdefault(metric.name, []).extend(metric.data.data_points)
        return found


@pytest.fixture
def collected() -> Iterator[Collected]:
    yield Collected()
    observing.connect(None)


@pytest.fixture
def con(tmp_path: Path) -> Iterator[Any]:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(40, dtype=np.float32)), 4)
    ld.write_dataset(pa.table({"id": range(10), "v": vectors}), tmp_path / "t.lance")
    ld.write_dataset({"id": [1]}, tmp_path / "u.lance")
    with ld.connect(tmp_path) as con:
        yield con


def test_a_statement_is_one_span(con: Any, collected: Collected, tmp_path: Path) -> None:
    collected.instrument()
    con.execute("SELECT * FROM t WHERE id < 3").fetchall()
    (span,) = collected.spans
    assert (span.name, span.kind.name, span.status.status_code.name) == ("SELECT t", "CLIENT", "UNSET")
    assert dict(span.attributes or {}) == {
        "db.system.name": "lance_duck",
        "db.operation.name": "SELECT",
        "db.collection.name": "t",
        "db.namespace": str(tmp_path),
    }


def test_a_commit_is_a_child_of_its_statement(con: Any, collected: Collected) -> None:
    collected.instrument()
    con.execute("INSERT INTO u VALUES (2)")
    outer, inner = collected.spans
    assert (outer.name, inner.name) == ("INSERT u", "COMMIT u")
    assert inner.parent is not None
    assert inner.parent.span_id == outer.context.span_id


def test_a_search_is_one_span(con: Any, collected: Collected, tmp_path: Path) -> None:
    ds = ld.dataset(tmp_path / "t.lance")
    collected.instrument()
    ds.search([1.0, 2, 3, 4], k=2)
    ds.scanner(nearest={"column": "v", "q": [1.0, 2, 3, 4], "k": 2}).to_table()
    ds.to_table(filter="id = 3")
    assert collected.names == ["SEARCH t", "SEARCH t"]


def test_statements_of_a_script_are_separate_spans(con: Any, collected: Collected) -> None:
    collected.instrument()
    con.execute("BEGIN; INSERT INTO u VALUES (2); COMMIT")
    con.execute("SELECT 1")
    con.execute("SELECT * FROM t JOIN u USING (id)").fetchall()
    where = [span.name.split(" ")[0] for span in collected.spans]
    assert where == ["BEGIN", "INSERT", "COMMIT", "COMMIT", "SELECT", "SELECT"]
    assert [(span.attributes or {}).get("db.collection.name") for span in collected.spans][-1] is None


def test_spans_of_errors_have_a_type_and_no_message(con: Any, collected: Collected) -> None:
    collected.instrument()
    with pytest.raises(duckdb.Error):
        con.execute("SELECT error('planted_value') FROM t").fetchall()
    with pytest.raises(ld.LanceDuckError):
        con.execute("SET lance_recall = 7")
    assert [(span.attributes or {})["error.type"] for span in collected.spans] == [
        "duckdb.InvalidInputException",
        "lance_duck.InvalidInputError",
    ]
    assert all(span.status.status_code.name == "ERROR" for span in collected.spans)
    assert not any("planted" in span.to_json() for span in collected.spans)


def test_texts_of_statements_are_added_on_demand_without_values(con: Any, collected: Collected) -> None:
    collected.instrument(query_text=True)
    con.execute("SELECT * FROM t WHERE id = 3 AND 'planted_value' <> ''").fetchall()
    (span,) = collected.spans
    assert (span.attributes or {})["db.query.text"] == "SELECT * FROM t WHERE id = ? AND ? <> ?"


def test_secrets_of_uris_are_not_in_spans(collected: Collected) -> None:
    collected.instrument(query_text=True)
    with observing.observed("COMMIT", "s3://ana:planted_password@bucket/t.lance?sig=planted_signature"):
        pass
    with ld.connect() as con, pytest.raises((duckdb.Error, ld.LanceDuckError)):
        con.execute("FROM 's3://ana:planted_password@bucket/t.lance'")
    assert len(collected.spans) == 2
    assert not any("planted" in span.to_json() for span in collected.spans)


def test_durations_are_a_histogram_in_seconds(con: Any, collected: Collected) -> None:
    collected.instrument()
    con.execute("SELECT * FROM t").fetchall()
    con.execute("SELECT * FROM t").fetchall()
    (point,) = collected.metrics["db.client.operation.duration"]
    assert (point.count, point.attributes["db.operation.name"]) == (2, "SELECT")
    assert 0 < point.sum < 600


def test_instruments_show_the_table_of_metrics(con: Any, collected: Collected) -> None:
    collected.instrument()
    con.execute("SELECT * FROM t").fetchall()
    metrics.REQUESTS.add("get", "s3")
    shown = {  # the SDK merges series of an instrument after the first 2,000
        name: points
        for name, points in collected.metrics.items()
        if not any("otel.metric.overflow" in point.attributes for point in points)
    }
    expected: dict[tuple[Any, ...], float] = {}
    for each in ld.metrics():
        if each.name not in shown:
            continue
        expected[each.name, *sorted(each.labels.items())] = each.value
    for name, points in shown.items():
        for point in points if name.startswith("lance_") else ():
            assert expected.pop((name, *sorted(point.attributes.items()))) == point.value
    assert not expected
    assert {"lance_duck_statement_seconds_bucket", "lance_object_store_requests_total"} <= shown.keys()


def test_instrumenting_twice_does_not_double_anything(con: Any, collected: Collected, caplog: Any) -> None:
    for _ in range(3):
        collected.instrument()
    con.execute("SELECT * FROM t").fetchall()
    assert len(collected.spans) == 1
    shown = collected.metrics
    assert shown["db.client.operation.duration"][0].count == 1
    assert len(shown["lance_duck_running_statements"]) == 1
    assert not caplog.records


def test_a_failing_provider_never_fails_a_statement(con: Any, collected: Collected, monkeypatch: Any) -> None:
    collected.instrument()
    observer: Any = observing._observer
    monkeypatch.setattr(observer, "_tracer", None)
    monkeypatch.setattr(observer, "_durations", None)
    assert con.execute("SELECT count(*) FROM t").fetchall() == [(10,)]


def run(script: str) -> str:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


def test_opentelemetry_is_imported_by_instrument_only() -> None:
    script = """
import sys
import lance_duck as ld
with ld.connect() as con:
    con.execute("SELECT 1").fetchall()
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
ld.instrument()
assert "opentelemetry.trace" in sys.modules
assert not [name for name in sys.modules if name.startswith("opentelemetry.sdk")]
"""
    run(script)


def test_the_error_without_opentelemetry_names_the_command() -> None:
    script = """
import sys
sys.modules["opentelemetry"] = None
import lance_duck as ld
try:
    ld.instrument()
except ld.UnsupportedError as error:
    print(error)
"""
    assert run(script) == "instrument: OpenTelemetry is not installed; pip install opentelemetry-api\n"


def test_the_global_providers_may_be_set_after_instrument() -> None:
    script = """
import lance_duck as ld
ld.instrument()
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
reader, exporter = InMemoryMetricReader(), InMemorySpanExporter()
metrics.set_meter_provider(MeterProvider([reader]))
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
ld.instrument()
ld.instrument(meter_provider=metrics.get_meter_provider())
with ld.connect() as con:
    con.execute("SELECT 1")
print(len(exporter.get_finished_spans()))
shown = [m for r in reader.get_metrics_data().resource_metrics for s in r.scope_metrics for m in s.metrics]
print(sum(m.name == "lance_duck_running_statements" for m in shown))
print([p.count for m in shown if m.name == "db.client.operation.duration" for p in m.data.data_points])
"""
    assert run(script).split("\n") == ["1", "1", "[1]", ""]
