"""Counters, gauges and histograms, and their text for Prometheus."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.telemetry import metrics, prometheus
from lance_duck.telemetry.table import Counter, Gauge, Histogram, Instrument, Metric, PresenceGauge


def shown(monkeypatch: pytest.MonkeyPatch, *instruments: Instrument) -> list[str]:
    """Return the lines for Prometheus if these metrics are the only ones."""
    monkeypatch.setattr(prometheus, "INSTRUMENTS", instruments)
    return prometheus.render().splitlines()


def test_counters_add_for_each_combination_of_labels() -> None:
    counter = Counter("c_total", "Things.", ("kind",), {"library": "x"})
    counter.add("b")
    counter.add("a", by=2.5)
    counter.add("b", by=3)
    assert counter.samples() == [
        Metric("c_total", "counter", {"library": "x", "kind": "a"}, 2.5),
        Metric("c_total", "counter", {"library": "x", "kind": "b"}, 4),
    ]


def test_a_metric_without_labels_begins_at_zero_and_one_with_labels_is_empty() -> None:
    assert Gauge("g", "Things.").samples() == [Metric("g", "gauge", {}, 0)]
    assert Gauge("g", "Things.", ("kind",)).samples() == []
    assert [each.value for each in Histogram("h", "Things.", bounds=[1]).samples()] == [0, 0, 0, 0]


def test_gauges_shrink_and_can_be_set() -> None:
    gauge = Gauge("g", "Things.")
    gauge.add(by=3)
    gauge.add(by=-1)
    assert gauge.samples()[0].value == 2
    gauge.set(to=7)
    assert gauge.samples()[0].value == 7


@given(st.lists(st.floats(0, 4)))
def test_buckets_of_histograms_are_cumulative(numbers: list[float]) -> None:
    histogram = Histogram("h", "Things.", bounds=(0.5, 1.0, 2.0))
    for number in numbers:
        histogram.observe(number)
    *buckets, total, count = histogram.samples()
    assert [each.labels["le"] for each in buckets] == ["0.5", "1.0", "2.0", "+Inf"]
    expected = [
        sum(number <= float(each.labels["le"].replace("+Inf", "inf")) for number in numbers) for each in buckets
    ]
    assert [each.value for each in buckets] == expected
    assert (total.name, count.name, count.value) == ("h_sum", "h_count", len(numbers))
    assert total.value == pytest.approx(sum(numbers))


def test_no_count_is_lost_between_threads() -> None:
    counter, histogram = Counter("c", "Things.", ("kind",)), Histogram("h", "Things.")

    def count() -> None:
        for i in range(2000):
            counter.add("ab"[i % 2])
            histogram.observe(i)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.value for each in counter.samples()] == [4000, 4000]
    assert histogram.samples()[-1].value == 8000


IN_A_CHILD = """
import os, threading
from lance_duck.telemetry import metrics, table

metrics.STATEMENTS.add("select", "ok")
held, end = threading.Event(), threading.Event()

def hold():
    with table._lock:
        held.set()
        end.wait()

thread = threading.Thread(target=hold)
thread.start()
held.wait()
if (child := os.fork()) == 0:
    metrics.STATEMENTS.add("insert", "ok")
    os._exit(0 if [each.labels["kind"] for each in metrics.STATEMENTS.samples()] == ["insert"] else 3)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
end.set()
thread.join()
raise SystemExit(status)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_counts_from_zero_even_if_a_thread_counted_during_the_fork() -> None:
    assert subprocess.run([sys.executable, "-c", IN_A_CHILD], timeout=60, check=False).returncode == 0


def test_texts_for_prometheus_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    counter = Counter("c_total", "A \\ and\na line.", ("kind",))
    counter.add('a"b\\c\nd')
    assert shown(monkeypatch, counter) == [
        "# HELP c_total A \\\\ and\\na line.",
        "# TYPE c_total counter",
        'c_total{kind="a\\"b\\\\c\\nd"} 1',
    ]


def test_histograms_for_prometheus_have_buckets_sum_and_count(monkeypatch: pytest.MonkeyPatch) -> None:
    histogram = Histogram("h_seconds", "Durations.", ("kind",), bounds=(0.1, 1.0))
    for number in (0.05, 0.5, 5):
        histogram.observe(number, "x")
    assert shown(monkeypatch, histogram) == [
        "# HELP h_seconds Durations.",
        "# TYPE h_seconds histogram",
        'h_seconds_bucket{kind="x",le="0.1"} 1',
        'h_seconds_bucket{kind="x",le="1.0"} 2',
        'h_seconds_bucket{kind="x",le="+Inf"} 3',
        'h_seconds_sum{kind="x"} 5.55',
        'h_seconds_count{kind="x"} 3',
    ]


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (2.0, "2"), (0.25, "0.25"), (float("inf"), "+Inf"), (float("-inf"), "-Inf"), (float("nan"), "NaN")],
)
def test_numbers_for_prometheus(number: float, text: str) -> None:
    assert prometheus.number_text(number) == text


NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
LINE = re.compile(
    rf"# (?:HELP {NAME} .+|TYPE {NAME} (?:counter|gauge|histogram))|{NAME}(?:\{{{LABEL}(?:,{LABEL})*\}})? \S+"
)


def test_every_metric_of_the_package_is_valid_text_for_prometheus() -> None:
    metrics.STATEMENTS.add("select", "ok", by=0)
    metrics.REQUEST_SECONDS.observe(0.01, "get", "s3")
    lines = prometheus.render().split("\n")
    assert lines.pop() == ""
    assert all(LINE.fullmatch(line) for line in lines)
    names = {each.name for each in metrics.INSTRUMENTS}
    assert len(names) == len(metrics.INSTRUMENTS)
    assert all(each.about.endswith(".") for each in metrics.INSTRUMENTS)
    assert all(each.name.endswith("_total") == (each.kind == "counter") for each in metrics.INSTRUMENTS)
    assert {each.labels["library"] for each in ld.metrics() if each.name.startswith("lance_object_store_")} == {
        "lance_duck"
    }


@pytest.fixture
def unconfigured() -> Iterator[None]:
    """The root logger as in a program that does not configure logging."""
    root = logging.getLogger()
    handlers, root.handlers = root.handlers, []
    yield
    root.handlers = handlers


@pytest.mark.usefixtures("unconfigured")
def test_nothing_is_printed_unless_logging_is_configured(capsys: pytest.CaptureFixture[str]) -> None:
    logging.getLogger("lance_duck.slow").warning("slow")
    assert capsys.readouterr() == ("", "")


def test_things_are_counted_while_they_are_present() -> None:
    present = PresenceGauge("p", "Things.")
    things = [object() for _ in range(3)]
    for thing in things:
        present.add(thing)
    present.add(things[0])
    present.remove(things[1])
    present.remove(things[1])
    assert present.samples() == [Metric("p", "gauge", {}, 2)]
    present.forget()
    assert present.samples() == [Metric("p", "gauge", {}, 0)]
