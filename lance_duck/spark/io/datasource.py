"""The Spark data source: `spark.read.format("lance")`, `df.write.format("lance")`, and streams of both.

Spark finds this class through the module `pyspark_lance_duck`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from lance_duck import lazy
from lance_duck.spark.brief_errors import brief_errors
from lance_duck.spark.io.options import ReadOptions, SparkWriteOptions
from lance_duck.spark.io.source import LanceReader, declared, opened_version
from lance_duck.spark.io.stream_options import SINK_NAMES, SOURCE_NAMES, StreamOptions, stream_name
from lance_duck.spark.table_ref import pin

if TYPE_CHECKING:
    from lance_duck.spark.io import sink, stream_sink, stream_source
else:
    sink, stream_sink, stream_source = lazy.modules(
        globals(), "lance_duck.spark.io", "sink", "stream_sink", "stream_source"
    )


@brief_errors
class LanceDataSource(DataSource):
    """The data source for Lance tables. For the options, see `ReadOptions`, `SparkWriteOptions` and `StreamOptions`.

    A DataFrame stays on the version whose schema was declared to Spark, even if several queries read it.
    """

    _version: int | tuple[str, int] | None = None

    @classmethod
    def name(cls) -> str:
        """Return the name for `.format`."""
        return "lance"

    def schema(self) -> StructType:
        """Return the schema of the requested version. Also checks the options."""
        options = ReadOptions.of(self.options, SOURCE_NAMES)
        table = opened_version(options)
        self._version = pin(table)
        return declared(options, table)

    def reader(self, schema: StructType) -> LanceReader:
        """Return the reader of one version."""
        return LanceReader(ReadOptions.of(self.options), schema, self._version)

    def writer(self, schema: StructType, overwrite: bool) -> sink.LanceWriter:
        """Return the writer that commits a DataFrame as one version."""
        return sink.LanceWriter(SparkWriteOptions.of(self.options), schema, overwrite)

    def streamReader(self, schema: StructType) -> stream_source.LanceStreamReader:  # noqa: N802 - Spark defines the name
        """Return the reader of new rows for a stream."""
        options = ReadOptions.of(self.options, SOURCE_NAMES)
        return stream_source.LanceStreamReader(options, StreamOptions.of(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> stream_sink.LanceStreamWriter:  # noqa: N802
        """Return the writer that commits each batch of a stream as one version."""
        options = SparkWriteOptions.of(self.options, SINK_NAMES)
        landing = sink.begin(options, schema, "overwrite" if overwrite else "append")
        return stream_sink.LanceStreamWriter(landing, stream_name(self.options))


class LanceDuckDataSource(LanceDataSource):
    """The same data source under a name that no other library uses."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `.format`."""
        return "lance_duck"
