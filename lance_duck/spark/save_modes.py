"""Adds save modes that Spark does not support for Python data sources: `error`, which is the default, and `ignore`.

This module extends `DataFrameWriter.save`. If Spark rejects the mode for a Lance table, `save` uses append mode with
the option `save_mode`. The sink then raises an error for an existing table, or leaves it unchanged.
"""

from __future__ import annotations

import re
from functools import wraps
from typing import Any, Final

from pyspark.errors import AnalysisException

_REFUSAL: Final = re.compile(r'UNSUPPORTED_DATA_SOURCE_SAVE_MODE\].*"(?:lance|lance_duck)".*"(ErrorIfExists|Ignore)"')
_MODES: Final = {"ErrorIfExists": "error", "Ignore": "ignore"}


def allow_all_modes(writer: Any) -> None:
    """Extend the `save` method of a writer class, classic or Connect. Calling it again is harmless."""
    save = writer.save
    if hasattr(save, "of_spark"):
        return

    @wraps(save)
    def save_in_any_mode(self: Any, path: str | None = None, *args: Any, **options: Any) -> None:
        try:
            save(self, path, *args, **options)
        except AnalysisException as error:
            refused = _REFUSAL.search(str(error))
            if refused is None:
                raise
        else:
            return
        mode = _MODES[refused[1]]
        try:
            save(self.option("save_mode", mode).mode("append"), path)
        finally:  # restore the mode for the next `save` of this writer
            self.option("save_mode", "append").mode(mode)

    save_in_any_mode.of_spark = save  # type: ignore[attr-defined]
    writer.save = save_in_any_mode
