"""Metrics of this process, the logger of the package, and spans of OpenTelemetry.

You hold: an event, such as a finished request. You get: metrics as rows, as Prometheus text, or as instruments of
OpenTelemetry. `table` has the kinds of metrics, and `metrics` lists all metrics. `observing` passes single operations
to OpenTelemetry, if `otel` has connected it. Modules that log use `logging.getLogger(__name__)`. This room adds the
NullHandler of the logger `lance_duck`, so that nothing is printed unless a program configures logging.
Never here: the events themselves. Each room counts its own.
"""

import logging

logging.getLogger("lance_duck").addHandler(logging.NullHandler())
