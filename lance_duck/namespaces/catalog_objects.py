"""Views, macros and types of a folder, which are stored as settings of `__manifest`.

    lance_duck.catalog                       "1", the form of all objects. Objects of a higher form are read-only
    lance_duck.object.{kind}.{object id}     JSON object; an empty value means that the object was removed

    kind           | keys of the JSON object
    view           | column_comments, columns, comment, created_ms, default_namespace_path, dialect, engine, query,
                   | schema, uuid
    macro          | comment, default_namespace_path, definitions, dialect, engine
    table_macro    | the same
    type           | comment, definition, dialect
    sequence       | reserved

The kind contains no ".", the object id may contain some. Keys of an object are sorted, without blanks between them.
Other keys are ignored. pylance and LanceDB keep settings when they change `__manifest`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Final, NamedTuple

from lance_duck.arguments import checked_calls
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.namespaces.names import check_new, name_parts, object_id
from lance_duck.scan.identifiers import folded

FORM_KEY: Final = "lance_duck.catalog"
FORM: Final = 1
LONGEST: Final = 1 << 20
"""Maximum size of a stored object, in bytes. Every version of `__manifest` repeats all objects."""

VIEW: Final = "view"
MACRO: Final = "macro"
TABLE_MACRO: Final = "table_macro"
TYPE: Final = "type"
_PREFIX: Final = "lance_duck.object."
_DUCKDB: Final = "duckdb"
_SHOWN: Final = 80
"""Maximum number of characters of a wrong value that a message repeats."""


class ObjectKey(NamedTuple):
    """The kind and the name of an object.

    Attributes:
        kind: "view", "macro", "table_macro" or "type". Other kinds are only read.
        name: The parts of the name.
    """

    kind: str
    name: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind} {object_id(self.name)}"

    @property
    def setting(self) -> str:
        """The key of the setting that stores the object."""
        return f"{_PREFIX}{self.kind}.{object_id(self.name)}"

    @property
    def folded(self) -> ObjectKey:
        """The key with a name that is compared without case, as in DuckDB."""
        return ObjectKey(self.kind, tuple(folded(part) for part in self.name))


@checked_calls
@dataclass(frozen=True, kw_only=True)
class CatalogObject:
    """A named object that is stored as a definition.

    Attributes:
        name: The parts of the name. A string with "$" separators is split.
        dialect: SQL dialect of the definition.
    """

    name: tuple[str, ...]
    dialect: str = _DUCKDB
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", name_parts(self.name))

    @property
    def key(self) -> ObjectKey:
        """The kind and the name."""
        return ObjectKey(self.kind, self.name)


@checked_calls
@dataclass(frozen=True, kw_only=True)
class ViewDefinition(CatalogObject):
    """A view.

    Attributes:
        query: The SELECT statement, as its user wrote it.
        columns: Names of the columns that the user listed. Empty if the query names them.
        comment: Comment on the view, or None.
        column_comments: Comments on columns, by name.
        schema: Names and SQL types of the columns when the view was created.
        engine: Name and version of the program that created the view.
        uuid: Identity of the view. It does not change when the view is renamed.
        created_ms: Time of creation, in milliseconds since 1970 in UTC.
        default_namespace_path: Namespace in which names of the query are looked up first.
    """

    query: str
    columns: tuple[str, ...] = ()
    comment: str | None = None
    column_comments: Mapping[str, str] = field(default_factory=dict)
    schema: tuple[tuple[str, str], ...] = ()
    engine: str | None = None
    uuid: str | None = None
    created_ms: int | None = None
    default_namespace_path: tuple[str, ...] = ()
    kind: ClassVar[str] = VIEW


@checked_calls
@dataclass(frozen=True, kw_only=True)
class MacroDefinition(CatalogObject):
    """A macro with all its overloads.

    Attributes:
        definitions: The overloads as in CREATE MACRO, `(a, b := 2) AS a + b, (a) AS a`.
        comment: Comment on the macro, or None.
        engine: Name and version of the program that created the macro.
        default_namespace_path: Namespace in which names of the definitions are looked up first.
    """

    definitions: str
    comment: str | None = None
    engine: str | None = None
    default_namespace_path: tuple[str, ...] = ()
    kind: ClassVar[str] = MACRO


@checked_calls
@dataclass(frozen=True, kw_only=True)
class TableMacroDefinition(MacroDefinition):
    """A table macro with all its overloads, `(n) AS TABLE SELECT n`."""

    kind: ClassVar[str] = TABLE_MACRO


@checked_calls
@dataclass(frozen=True, kw_only=True)
class TypeDefinition(CatalogObject):
    """A named type.

    Attributes:
        definition: The type in SQL, such as `ENUM ('a', 'b')`.
        comment: Comment on the type, or None.
    """

    definition: str
    comment: str | None = None
    kind: ClassVar[str] = TYPE


KINDS: Final[Mapping[str, type[CatalogObject]]] = {
    each.kind: each for each in (ViewDefinition, MacroDefinition, TableMacroDefinition, TypeDefinition)
}


def stored_objects(settings: Mapping[str, str]) -> Iterator[tuple[ObjectKey, str]]:
    """Yield the keys and the JSON of all objects in order, except removed objects. Some may be damaged."""
    for setting, text in sorted(settings.items()):
        kind, dot, name = setting.removeprefix(_PREFIX).partition(".")
        if setting.startswith(_PREFIX) and dot and text:
            yield ObjectKey(kind, tuple(name.split("$"))), text


def removed_settings(settings: Mapping[str, str]) -> list[str]:
    """Return the keys of settings of removed objects."""
    return [setting for setting, text in settings.items() if setting.startswith(_PREFIX) and not text]


def is_known_form(settings: Mapping[str, str]) -> bool:
    """Return whether this version can change the objects."""
    return settings.get(FORM_KEY, str(FORM)) == str(FORM)


def check_form(settings: Mapping[str, str], where: str) -> None:
    """Raise UnsupportedError if the objects have a newer form."""
    if not is_known_form(settings):
        raise UnsupportedError(
            f"objects of form {_shortened(settings[FORM_KEY])}",
            where=where,
            expected=str(FORM),
            remedy="a newer lance_duck made them: tables can be read",
        )


def check_name(key: ObjectKey) -> None:
    """Reject the name of a new object.

    Raises:
        InvalidInputError: The name is the root, contains "$", or is in a namespace and has characters that names of
            tables in namespaces cannot have.
    """
    if len(key.name) != 1 or not key.name[0]:
        check_new(key.name, key.kind)
    elif set(key.name[0]) & {"$", "\0"} or not _is_utf8(key.name[0]):
        raise InvalidInputError(f"invalid {key.kind} name", expected='a name without "$"', found=repr(key.name[0]))


def to_json(stored: CatalogObject) -> str:
    """Return the JSON of an object.

    Raises:
        InvalidInputError: A field has the wrong type, or the JSON is too long.
    """
    try:
        checked = _object_of(stored.key, _values(stored))
        text = json.dumps(_values(checked), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    except ValueError as error:
        raise InvalidInputError(f"invalid definition of {stored.key}", found=str(error)) from error
    size = len(text.encode())
    if size > LONGEST:
        raise InvalidInputError(
            f"the definition of {stored.key} is too long", expected=f"at most {LONGEST:,} bytes", found=f"{size:,}"
        )
    return text


def from_json(key: ObjectKey, text: str) -> CatalogObject | str:
    """Return an object, or the reason why it cannot be read."""
    if key.kind not in KINDS:
        return f"unknown kind of object, {key.kind!r}"
    if not all(key.name):
        return "the name has an empty part"
    try:
        values = json.loads(text)
        if not isinstance(values, dict):
            return f"expected a JSON object, found {_shortened(text)}"
        return _object_of(key, values)
    except (ValueError, RecursionError) as error:
        return str(error)


def _values(stored: CatalogObject) -> dict[str, Any]:
    return {each.name: getattr(stored, each.name) for each in fields(stored) if each.name != "name"}


def _object_of(key: ObjectKey, values: Mapping[str, Any]) -> CatalogObject:
    """Build an object from the values of its fields. Raises ValueError if one is missing or wrong."""
    known = {}
    for each in fields(KINDS[key.kind]):
        if each.name != "name" and each.name in values:
            known[each.name] = _checked(each.name, values[each.name], str(each.type))
        elif each.name != "name" and each.default is MISSING and each.default_factory is MISSING:
            raise ValueError(f"{each.name} is missing")
    return KINDS[key.kind](name=key.name, **known)


def _checked(name: str, value: Any, annotation: str) -> Any:
    """Return a value of the annotated type. Raises ValueError for other values."""
    if annotation.endswith(" | None"):
        if value is None:
            return None
        annotation = annotation.removesuffix(" | None")
    checked = _READERS[annotation](value)
    if checked is None:
        raise ValueError(f"{name}: expected {_WORDS[annotation]}, found {_shortened(repr(value))}")
    return checked


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) and _is_utf8(value) else None


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _strings(value: Any) -> tuple[str, ...] | None:
    is_list = isinstance(value, list | tuple)
    return tuple(value) if is_list and all(_string(each) is not None for each in value) else None


def _pairs(value: Any) -> tuple[tuple[str, str], ...] | None:
    pairs = [_strings(each) for each in value] if isinstance(value, list | tuple) else [None]
    found = tuple((pair[0], pair[1]) for pair in pairs if pair is not None and len(pair) == 2)
    return found if len(found) == len(pairs) else None


def _mapping(value: Any) -> Mapping[str, str] | None:
    if not isinstance(value, Mapping):
        return None
    return dict(value) if _strings([*value, *value.values()]) is not None else None


_READERS: Final = {
    "str": _string,
    "int": _integer,
    "tuple[str, ...]": _strings,
    "tuple[tuple[str, str], ...]": _pairs,
    "Mapping[str, str]": _mapping,
}
_WORDS: Final = {
    "str": "a string",
    "int": "a number",
    "tuple[str, ...]": "a list of strings",
    "tuple[tuple[str, str], ...]": "a list of pairs of strings",
    "Mapping[str, str]": "strings by name",
}


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
