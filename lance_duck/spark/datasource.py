"""The source and sink of Spark: `spark.read.format("lance")`, `df.write.format("lance")`, and streams of both."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from lance_duck.spark.options import ReadOptions, WriteOptions
from lance_duck.spark.place import pin
from lance_duck.spark.sink import LanceWriter, begin
from lance_duck.spark.source import LanceReader, declared, opened
from lance_duck.spark.stream_options import SINK_NAMES, SOURCE_NAMES, StreamOptions, stream_name
from lance_duck.spark.stream_sink import LanceStreamWriter
from lance_duck.spark.stream_source import LanceStreamReader


class LanceDataSource(DataSource):
    """Lance tables; for the options see `ReadOptions`, `WriteOptions` and `StreamOptions`.

    A frame stays on the version whose columns it was promised, however often Spark plans queries over it.
    """

    _version: int | tuple[str, int] | None = None

    @classmethod
    def name(cls) -> str:
        """What `.format` takes."""
        return "lance"

    def schema(self) -> StructType:
        """Columns of the version that is asked for; also says what is wrong with the options."""
        options = ReadOptions.of(self.options, SOURCE_NAMES)
        table = opened(options)
        self._version = pin(table)
        return declared(options, table)

    def reader(self, schema: StructType) -> LanceReader:
        """Reads one version."""
        return LanceReader(ReadOptions.of(self.options), schema, self._version)

    def writer(self, schema: StructType, overwrite: bool) -> LanceWriter:
        """Writes a frame as one version."""
        return LanceWriter(WriteOptions.of(self.options), schema, overwrite)

    def streamReader(self, schema: StructType) -> LanceStreamReader:  # noqa: N802 - Spark's
        """Reads new rows, again and again."""
        return LanceStreamReader(ReadOptions.of(self.options, SOURCE_NAMES), StreamOptions.of(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> LanceStreamWriter:  # noqa: N802
        """Writes one batch of a stream as one version."""
        options = WriteOptions.of(self.options, SINK_NAMES)
        landing = begin(options, schema, "overwrite" if overwrite else "append")
        return LanceStreamWriter(landing, stream_name(self.options))


class LanceDuckDataSource(LanceDataSource):
    """The same by a name that no other library has."""

    @classmethod
    def name(cls) -> str:
        """What `.format` takes."""
        return "lance_duck"
