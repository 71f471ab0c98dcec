"""Shows requests, statements, searches, commits and metrics through OpenTelemetry, by its semantic conventions."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from lance_duck import lazy
from lance_duck.arguments import checked_call
from lance_duck.errors import UnsupportedError
from lance_duck.forks import Lock
from lance_duck.telemetry import observing
from lance_duck.telemetry.metrics import INSTRUMENTS
from lance_duck.telemetry.observing import ServedRequest, Work
from lance_duck.telemetry.table import Instrument, Metric

if TYPE_CHECKING:
    from opentelemetry import context, metrics, propagate, trace
else:
    context, metrics, propagate, trace = lazy.modules(
        globals(), "opentelemetry", "context", "metrics", "propagate", "trace"
    )

_LOG: Final = logging.getLogger(__name__)
_EXPORTERS: Final = ("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT")
_NAME: Final = "lance_duck"
_DURATION: Final = "db.client.operation.duration"
_BOUNDS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
"""Upper bounds of buckets for `_DURATION`, in seconds, as the semantic conventions advise."""


class _Providers:
    """The meter providers that already have the instruments, each with its histogram of durations."""

    def __init__(self) -> None:
        self.lock = Lock()
        self._known: list[tuple[metrics.MeterProvider | None, metrics.Histogram]] = []

    def histogram(self, provider: metrics.MeterProvider | None) -> metrics.Histogram:
        """Return the histogram of a provider. Creates all instruments the first time."""
        chosen = metrics.get_meter_provider() if provider is None else provider
        is_global = chosen is metrics.get_meter_provider()
        for known, histogram in self._known:
            if known is chosen or (known is None and is_global):
                return histogram
        meter = chosen.get_meter(_NAME)
        for each in INSTRUMENTS:
            _register(meter, each)
        histogram = _duration(meter)
        self._known.append((chosen, histogram))
        if is_global:  # a placeholder passes the instruments on to the provider that a program sets later
            self._known.append((None, histogram))
        return histogram


_PROVIDERS: Final = _Providers()


@checked_call
def instrument(
    tracer_provider: trace.TracerProvider | None = None,
    meter_provider: metrics.MeterProvider | None = None,
    *,
    query_text: bool = False,
) -> None:
    """Send spans and metrics of this process to OpenTelemetry.

    Each SQL statement, search and commit becomes a span and a value of the histogram `db.client.operation.duration`.
    Each request to a server of this process becomes a span.
    All metrics of `lance_duck.metrics` become observable instruments. Calls after the first one do not double anything:
    they only choose the providers of later spans and durations.

    Args:
        tracer_provider: Receives the spans. Defaults to the global provider.
        meter_provider: Receives the metrics. Defaults to the global provider.
        query_text: Add the text of statements to spans, as `db.query.text`. Its values are replaced by `?`.

    Raises:
        UnsupportedError: OpenTelemetry is not installed.
    """
    try:
        import opentelemetry.metrics
        import opentelemetry.trace  # noqa: F401
    except ImportError as error:
        raise UnsupportedError(
            "OpenTelemetry is not installed", where="instrument", remedy="pip install opentelemetry-api"
        ) from error
    provider = trace.get_tracer_provider() if tracer_provider is None else tracer_provider
    with _PROVIDERS.lock:
        histogram = _PROVIDERS.histogram(meter_provider)
        observing.connect(_Spans(provider.get_tracer(_NAME), histogram), with_text=query_text)


def instrument_if_configured() -> None:
    """Call `instrument` if this process has a provider of OpenTelemetry, for example by `opentelemetry-instrument`.

    Without one, a log record says what to do if the environment variables of exporters are set.
    """
    if "opentelemetry.trace" in sys.modules:
        providers = (trace.get_tracer_provider(), metrics.get_meter_provider())
        if any("Proxy" not in type(each).__name__ for each in providers):
            instrument()
            return
    asked = [name for name in _EXPORTERS if os.environ.get(name, "none").strip().lower() not in ("", "none")]
    if asked:
        _LOG.warning("%s is set, but OpenTelemetry is not configured; start with opentelemetry-instrument", asked[0])


class _Spans:
    """An `Observer` that makes spans and durations."""

    def __init__(self, tracer: trace.Tracer, durations: metrics.Histogram) -> None:
        self._tracer = tracer
        self._durations = durations

    def begin(self, work: Work) -> Any:
        """Begin a span. It is the parent of the spans that begin before `leave` on this thread."""
        with suppress(Exception):
            attributes = _attributes(work)
            if work.text:
                attributes["db.query.text"] = work.text
            name = f"{work.operation} {work.collection}".rstrip()
            span = self._tracer.start_span(name, kind=trace.SpanKind.CLIENT, attributes=attributes)
            return span, context.attach(trace.set_span_in_context(span))
        return None

    def leave(self, mark: Any) -> None:
        """Detach the span from this thread."""
        with suppress(Exception):
            if mark is not None:
                context.detach(mark[1])

    def end(self, work: Work, mark: Any, error: BaseException | None, seconds: float) -> None:
        """End a span, and record its duration."""
        with suppress(Exception):
            attributes = _attributes(work)
            if error is not None:
                attributes["error.type"] = _type_of(error)
            if mark is not None:
                span, _ = mark
                if error is not None:  # the message is omitted, because it may contain values
                    span.set_attribute("error.type", attributes["error.type"])
                    span.set_status(trace.Status(trace.StatusCode.ERROR))
                span.end()
            self._durations.record(seconds, attributes)

    def begin_request(self, request: ServedRequest) -> Any:
        """Begin the span of a request. Its parent is the span that the client names, for example in `traceparent`."""
        with suppress(Exception):
            attributes = {"http.request.method": request.method, "url.path": request.path, "url.scheme": request.scheme}
            name = "HTTP" if request.method == "_OTHER" else request.method
            given = propagate.extract(request.headers)
            span = self._tracer.start_span(name, given, kind=trace.SpanKind.SERVER, attributes=attributes)
            return name, span, context.attach(trace.set_span_in_context(span, given))
        return None

    def end_request(self, mark: Any, route: str, status: int, error: BaseException | None) -> None:
        """End the span of a request. Only errors of the server count as errors."""
        with suppress(Exception):
            name, span, token = mark
            context.detach(token)
            if route:
                span.set_attribute("http.route", route)
                span.update_name(f"{name} {route}")
            if status:
                span.set_attribute("http.response.status_code", status)
            if status >= 500 or (error is not None and status < 400):
                span.set_attribute("error.type", str(status) if error is None else _type_of(error))
                span.set_status(trace.Status(trace.StatusCode.ERROR))
            span.end()


def _attributes(work: Work) -> dict[str, str]:
    attributes = {"db.system.name": _NAME, "db.operation.name": work.operation}
    if work.collection:
        attributes["db.collection.name"] = work.collection
    if work.namespace:
        attributes["db.namespace"] = work.namespace
    return attributes


def _type_of(error: BaseException) -> str:
    """Return the name of an error, such as "lance_duck.NotFoundError"."""
    kind = type(error)
    package = kind.__module__.partition(".")[0].lstrip("_")
    return kind.__qualname__ if package == "builtins" else f"{package}.{kind.__qualname__}"


def _duration(meter: metrics.Meter) -> metrics.Histogram:
    about = "Duration of statements, searches and commits."
    try:
        return meter.create_histogram(_DURATION, "s", about, explicit_bucket_boundaries_advisory=_BOUNDS)
    except TypeError:  # the argument is missing in old versions
        return meter.create_histogram(_DURATION, "s", about)


def _register(meter: metrics.Meter, instrument: Instrument) -> None:
    """Create observable instruments that show a metric. A histogram has three, named as in Prometheus."""
    if instrument.kind == "gauge":
        meter.create_observable_gauge(instrument.name, [_values(instrument.samples)], description=instrument.about)
        return
    names = [instrument.name]
    if instrument.kind == "histogram":
        names = [f"{instrument.name}_{suffix}" for suffix in ("bucket", "sum", "count")]
    for name in names:
        unit = "s" if name.endswith("_sum") else "By" if "bytes" in name else ""
        meter.create_observable_counter(
            name, [_values(instrument.samples, name)], unit=unit, description=instrument.about
        )


def _values(
    samples: Callable[[], Sequence[Metric]], name: str | None = None
) -> Callable[[metrics.CallbackOptions], Iterable[metrics.Observation]]:
    """Return a callback with the values of a metric, or only of one name."""

    def observe(_: metrics.CallbackOptions) -> Iterable[metrics.Observation]:
        return [metrics.Observation(each.value, each.labels) for each in samples() if name in (None, each.name)]

    return observe
