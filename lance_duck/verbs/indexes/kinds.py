"""The requested index: its kind, its parameters, and its progress callback."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, TypedDict, Unpack, overload
from uuid import UUID

from lance_duck.arguments import did_you_mean, refuse_unknown, suggest_names
from lance_duck.errors import InvalidInputError, NotIndexableError, UnsupportedError
from lance_duck.index.catalog import unsupported
from lance_duck.index.kind import IndexKind
from lance_duck.index.registry import kind_asked_for
from lance_duck.snapshot import Snapshot

Progress = Callable[[int, int], Any]

_STAGE: Final = "load_data"
_KNOWN: Final = MappingProxyType(
    {
        "BTree": ("zone_size",),
        "ZoneMap": None,
        "BloomFilter": None,
        "Inverted": None,
        "Json": None,
        "RTree": ("page_size",),
    }
)
"""Parameter names by kind. None if the kind checks its parameters itself. Other kinds do not have parameters."""


@dataclass
class IndexConfig:
    """An index kind with parameters.

    Attributes:
        index_type: Name of the kind. See `create_scalar_index`.
        parameters: Parameters by name, such as {"rows_per_zone": 4096}.
    """

    index_type: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@suggest_names
@dataclass(frozen=True)
class IndexProgress:
    """Progress of an index build.

    Attributes:
        event: "start", "progress" or "complete".
        stage: Name of the current stage.
        completed: Completed amount of the stage, in `unit`.
        total: Total amount of the stage, in `unit`. None if unknown.
        unit: Unit of the amounts, such as "rows".
    """

    event: Literal["start", "progress", "complete"]
    stage: str
    completed: int | None = None
    total: int | None = None
    unit: str = ""

    @property
    def fraction(self) -> float | None:
        """Completed share of the stage, from 0 to 1. None if unknown."""
        if self.completed is None or not self.total:
            return None
        return min(self.completed / self.total, 1.0)


class IndexOptions(TypedDict, total=False):
    """Options for indexes of any kind, described in `IndexSpec`."""

    name: str | None
    replace: bool
    train: bool
    uuid: UUID | None
    progress: Progress | None


@dataclass(frozen=True)
class IndexSpec:
    """A requested index.

    Attributes:
        column: Dotted path of the column.
        kind: Kind of the index.
        parameters: Parameters of the kind.
        name: Name of the index. None derives it from the path.
        replace: Whether an existing index of this name may be replaced.
        train: Whether all rows are indexed. Otherwise the index covers no rows yet.
        uuid: UUID of the segment, if there is only one. None generates one.
        progress: Called with the number of rows read so far and the total.
        untrained: Details of an empty segment, for kinds that store empty segments without files.
    """

    column: str
    kind: IndexKind
    parameters: Mapping[str, Any]
    name: str | None = None
    replace: bool = False
    train: bool = True
    uuid: UUID | None = None
    progress: Progress | None = None
    untrained: bytes | None = None


def scalar_spec(
    column: Any, index_type: Any, parameters: Mapping[str, Any], **options: Unpack[IndexOptions]
) -> IndexSpec:
    """Build the `IndexSpec` of a scalar index. Takes the same arguments as `vector.spec_of`.

    Raises:
        NotIndexableError, InvalidInputError: See `kind_asked` and `one_column`.
    """
    kind, settings = kind_asked(index_type, parameters)
    return IndexSpec(one_column(column), kind, settings, **options)


def kind_asked(index_type: Any, parameters: Mapping[str, Any]) -> tuple[IndexKind, dict[str, Any]]:
    """Resolve the kind and parameters of an index from user arguments.

    Args:
        index_type: Case-insensitive name of a kind, or an object with `index_type` and `parameters`. Instead of
            `parameters`, the object may have a JSON string `config`.
        parameters: Additional parameters, which override the object's parameters.

    Raises:
        NotIndexableError: The kind does not exist.
        InvalidInputError: `index_type` is neither a name nor a suitable object.
        WrongTypeError: The kind does not have one of the parameters.
    """
    inner: Any = {}
    if not isinstance(index_type, str):
        inner = getattr(index_type, "parameters", None)
        if inner is None:
            inner = _parsed(getattr(index_type, "config", None))
        index_type = getattr(index_type, "index_type", index_type)
    if not isinstance(index_type, str) or not isinstance(inner, Mapping):
        raise InvalidInputError("index_type", expected="a name or an IndexConfig", found=repr(index_type))
    try:
        kind, settings = kind_asked_for(index_type, {**inner, **parameters})
    except NotIndexableError:
        raise
    except UnsupportedError as error:
        if error.expected is None:  # a kind that is only read
            raise NotIndexableError(error.what, where=index_type.upper(), remedy=error.remedy) from error
        raise NotIndexableError(
            f"{index_type.upper()} is not a supported kind of scalar index",
            expected=error.expected,
            remedy=did_you_mean(index_type, str(error.expected).split(", ")),
        ) from error
    names = _KNOWN.get(kind.name, ())
    if names is not None:
        refuse_unknown(settings, names, f"index of kind {kind.name}", "parameter")
    return kind, settings


def check_indexable(
    snapshot: Snapshot, path: str, kind: IndexKind, remedy: Callable[[], str | None] | None = None
) -> None:
    """Raise NotIndexableError, with an optional remedy, if a column cannot have an index of this kind."""
    reason = unsupported(snapshot, snapshot.schema.by_path(path).id, kind)
    if reason is not None:
        raise NotIndexableError(reason, where=snapshot.uri, remedy=None if remedy is None else remedy())


def progress_of(
    progress: Progress | bool | None, callback: Callable[[IndexProgress], Any] | None = None
) -> Progress | None:
    """Combine both progress callbacks into one that takes row counts. True prints them to stderr."""
    if progress is True:
        progress = _print_progress
    elif progress is False:
        progress = None
    if progress is not None and not callable(progress):
        raise InvalidInputError("progress", expected="True, or a function of two numbers", found=repr(progress))
    if callback is not None and not callable(callback):
        raise InvalidInputError("progress_callback", expected="a function", found=repr(callback))
    if callback is None:
        return progress

    def tell(count: int, total: int) -> None:
        event: Literal["start", "progress", "complete"] = "progress"
        if count == 0 or count >= total:
            event = "start" if count == 0 else "complete"
        callback(IndexProgress(event, _STAGE, count, total, "rows"))
        if progress is not None:
            progress(count, total)

    return tell


def _print_progress(count: int, total: int) -> None:
    print(f"\r{count:,} of {total:,} rows ", end="\n" if count == total else "", file=sys.stderr, flush=True)


def one_column(column: str | Sequence[str]) -> str:
    """Return the single column of an index. Raises NotIndexableError for none or several."""
    columns = list(column) if isinstance(column, list | tuple) else [column]
    if len(columns) != 1 or not isinstance(columns[0], str):
        what = "an index over several columns" if len(columns) > 1 else "column of an index"
        raise NotIndexableError(what, expected="one column, by its name", found=repr(column))
    return columns[0]


@overload
def uuid_of(value: str | UUID) -> UUID: ...


@overload
def uuid_of(value: None) -> None: ...


def uuid_of(value: str | UUID | None) -> UUID | None:
    """Parse a segment UUID. Raises InvalidInputError if it is invalid. None is passed through."""
    if value is None:
        return None
    try:
        return UUID(str(value))
    except ValueError:
        raise InvalidInputError("invalid uuid of an index segment", found=repr(value)) from None


def _parsed(config: Any) -> Any:
    if not isinstance(config, str):
        return {}
    try:
        return json.loads(config or "{}")
    except ValueError as error:
        raise InvalidInputError("invalid index parameters", expected="JSON", found=str(error)) from error
