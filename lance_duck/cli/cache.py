"""`cache`: shows and empties the cache of object stores."""

from __future__ import annotations

from datetime import UTC, datetime

from lance_duck.cli.show import report
from lance_duck.store.disk_cache import clear as clear_cache
from lance_duck.store.disk_cache import usage


def cache(folder: str, clear: bool = False, as_json: bool = False) -> None:
    """Show what a cache of object stores contains, or empty it."""
    found = clear_cache(folder) if clear else usage(folder)
    oldest = None if found.oldest is None else datetime.fromtimestamp(found.oldest, UTC).isoformat(timespec="seconds")
    facts = {"blocks": found.blocks, "objects": found.objects, "bytes": found.size}
    report({"deleted": found.blocks, "bytes": found.size} if clear else facts | {"oldest use": oldest}, as_json)
