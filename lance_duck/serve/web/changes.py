"""What changed between two versions, from their manifests alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from lance_duck.errors import LanceDuckError, NotFoundError
from lance_duck.snapshot import Snapshot
from lance_duck.snapshot.refs import MAIN
from lance_duck.wire.index import SYSTEM
from lance_duck.wire.transaction import COMMIT_AUTHOR

_MOST_NAMES: Final = 8
_MINUS: Final = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class VersionEntry:
    """A version, as pages list it.

    Attributes:
        number: Version number.
        time: Commit time in UTC.
        operation: Name of the operation, or "" if it was not kept.
        rows: Number of rows, or None if the manifest does not store it.
        size: Size of the data files in bytes.
        tags: Tags of the version.
        author: Author of the commit, or "".
        message: Message of the commit, or "".
        changes: What changed since the version before.
    """

    number: int
    time: datetime
    operation: str
    rows: int | None
    size: int
    tags: Sequence[str]
    author: str
    message: str
    changes: Sequence[str]


def version_entries(snapshot: Snapshot, numbers: Sequence[int], before: int | None) -> list[VersionEntry]:
    """Describe versions, newest first.

    Args:
        snapshot: A version of the table.
        numbers: The version numbers, newest first.
        before: The version before the last of them, or None if it does not exist.
    """
    tags = tags_by_version(snapshot)
    opened = [_opened(snapshot, number) for number in [*numbers, *([] if before is None else [before])]]
    entries = []
    for at, number in enumerate(numbers):
        this = opened[at]
        if this is not None:
            older = opened[at + 1] if at + 1 < len(opened) else None
            entries.append(_entry(this, older, tags.get(number, ())))
    return entries


def tags_by_version(snapshot: Snapshot) -> Mapping[int, Sequence[str]]:
    """Return the tags of a version's branch, by version number."""
    tags: dict[int, list[str]] = {}
    for name, tag in sorted(snapshot.tags().items()):
        if (tag.branch or MAIN) == (snapshot.branch or MAIN):
            tags.setdefault(tag.version, []).append(name)
    return tags


def changes_between(older: Snapshot, newer: Snapshot) -> list[str]:
    """Return short texts about the differences of two versions."""
    return [*_row_changes(older, newer), *_column_changes(older, newer), *_other_changes(older, newer)]


def _opened(snapshot: Snapshot, number: int) -> Snapshot | None:
    try:
        return snapshot.checkout(number)
    except NotFoundError:  # a cleanup removed it meanwhile
        return None


def _entry(this: Snapshot, older: Snapshot | None, tags: Sequence[str]) -> VersionEntry:
    try:
        transaction = this.transaction()
    except LanceDuckError:  # a damaged transaction file does not affect the rows
        transaction = None
    counts = this.fragments.row_counts()
    return VersionEntry(
        this.version,
        this.timestamp,
        "" if transaction is None else transaction.operation,
        None if counts is None else sum(counts),
        int(this.manifest.summary()["total_files_size"]),
        tags,
        "" if transaction is None else transaction.transaction_properties.get(COMMIT_AUTHOR, ""),
        "" if transaction is None else transaction.commit_message or "",
        [] if older is None else changes_between(older, this),
    )


def _row_changes(older: Snapshot, newer: Snapshot) -> Iterator[str]:
    counts = [each.fragments.row_counts() for each in (older, newer)]
    if counts[0] is not None and counts[1] is not None and (more := sum(counts[1]) - sum(counts[0])):
        yield f"{_signed(more)} {_plural('row', more)}"
    old, new = ({fragment.id: fragment for fragment in each.fragments} for each in (older, newer))
    if added := len(new.keys() - old.keys()):
        yield f"+{added:,} {_plural('fragment', added)}"
    if gone := len(old.keys() - new.keys()):
        yield f"{_MINUS}{gone:,} {_plural('fragment', gone)}"
    both = [(old[id_], new[id_]) for id_ in old.keys() & new.keys()]
    if deleted := sum(after.num_deletions - before.num_deletions for before, after in both):
        yield f"{deleted:,} {_plural('row', deleted)} marked as deleted"
    if rewritten := sum(before.all_files != after.all_files for before, after in both):
        yield f"other data files in {rewritten:,} {_plural('fragment', rewritten)}"


def _column_changes(older: Snapshot, newer: Snapshot) -> Iterator[str]:
    old, new = ({field.name: str(field.type) for field in each.schema.arrow} for each in (older, newer))
    yield from _named("new column", [f"{name}: {type_}" for name, type_ in new.items() if name not in old])
    yield from _named("dropped column", [name for name in old if name not in new])
    changed = [f"{name}: {old[name]} → {type_}" for name, type_ in new.items() if old.get(name, type_) != type_]
    yield from _named("changed column", changed)


def _other_changes(older: Snapshot, newer: Snapshot) -> Iterator[str]:
    old, new = (
        {index.name: {segment.uuid for segment in each.indices if segment.name == index.name} for index in each.indices}
        for each in (older, newer)
    )
    shown = [name for name in {**old, **new} if name not in SYSTEM]
    yield from _named("new index", [name for name in shown if name not in old])
    yield from _named("dropped index", [name for name in shown if name not in new])
    yield from _named(
        "updated index", [name for name in shown if name in old and new.get(name, old[name]) != old[name]]
    )
    settings = [key for key in {**older.config, **newer.config} if older.config.get(key) != newer.config.get(key)]
    yield from _named("changed setting", settings)


def _named(what: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
        yield f"{_plural(what, len(names))} {', '.join(names[:_MOST_NAMES])}{more}"


def _signed(count: int) -> str:
    return f"+{count:,}" if count > 0 else f"{_MINUS}{-count:,}"


def _plural(word: str, count: int) -> str:
    return word if abs(count) == 1 else f"{word}es" if word.endswith("x") else f"{word}s"
