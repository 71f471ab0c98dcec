"""Checks the arguments of public functions: unknown names, with a suggestion, and values of the wrong type.

For a wrong argument, Python raises a bare TypeError, either at the call or deep inside this package. `checked_call`
turns it into a `WrongTypeError` with the name of the argument. `WrongTypeError` is a TypeError and a `LanceDuckError`.

Keyword arguments that many functions share are declared once, in a TypedDict: `**options: Unpack[ScanArguments]`.
`help` and `inspect.signature` list these arguments individually, with their defaults.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import wraps
from inspect import CO_VARARGS, CO_VARKEYWORDS, Parameter, Signature
from numbers import Integral
from types import MappingProxyType, NoneType, SimpleNamespace, UnionType
from typing import Any, Final, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

from lance_duck.errors import InvalidInputError, LanceDuckError, UnknownColumnError, UnsupportedError, WrongTypeError

_P = ParamSpec("_P")
_R = TypeVar("_R")
_C = TypeVar("_C", bound=type)

_MOST_LISTED: Final = 16
_NAMED: Final = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_OWN: Final = ("self", "cls")
_SECRET: Final = ("storage_options", "base_store_params", "options", "config")
_FAILURES: Final = (TypeError, AttributeError, ValueError, LookupError, OverflowError)
_LONGEST: Final = 80
_CHECKED: Final = "__lance_duck_checked__"
_UNPACKED: Final = re.compile(r"Unpack\[(\w+)\]")
_BYTES: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?) *([KMGT]I?B|B)")
_UNITS: Final = {
    "B": 1,
    **{f"{letter}B": 1000**power for power, letter in enumerate("KMGT", 1)},
    **{f"{letter}IB": 1024**power for power, letter in enumerate("KMGT", 1)},
}
_DEFAULTS: Final[dict[type, object]] = {}


_OTHER_WORDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "where": ("filter", "predicate"),
        "filter": ("where", "predicate"),
        "condition": ("filter", "where", "predicate"),
        "limit": ("k",),
        "top_k": ("k",),
        "vector": ("q",),
        "query": ("q",),
        "vector_column_name": ("column",),
        "fts_columns": ("column", "columns"),
        "query_type": ("full_text_query",),
        "set": ("updates",),
        "values": ("updates",),
        "values_sql": ("updates",),
        "on": ("left_on",),
        "overwrite": ("mode",),
        "replace": ("overwrite",),
        "error": ("create",),
    }
)
"""Names that other libraries use for an argument or a mode, mapped to the names used here."""


def nearest_name(name: object, names: Iterable[str]) -> str | None:
    """Return the closest existing name. Prefers names that differ only in case. Returns None if no name is close."""
    by_case = {candidate.lower(): candidate for candidate in names}
    target = str(name).lower()
    near = [target] if target in by_case else get_close_matches(target, by_case, 1)
    return by_case[near[0]] if near else None


def did_you_mean(name: object, names: Iterable[str]) -> str | None:
    """Return the remedy "did you mean …?" for an unknown name, or None if no name is close."""
    nearest = nearest_name(name, names)
    return None if nearest is None else f"did you mean {nearest!r}?"


def _meant(name: object, names: Sequence[str]) -> str | None:
    """Return the "did you mean" remedy for a name. Prefers a synonym from another library to the closest name."""
    same = next((word for word in _OTHER_WORDS.get(str(name).lower(), ()) if word in names), None)
    return did_you_mean(name, names) if same is None else f"did you mean {same!r}?"


def known_names(names: Iterable[str]) -> str:
    """Return "one of …" for an error message. Long lists are shortened."""
    candidates = list(names)
    if not candidates:
        return "no name, because none exists"
    listing = ", ".join(candidates[:_MOST_LISTED])
    return f"one of {listing}, …" if len(candidates) > _MOST_LISTED else f"one of {listing}"


def refuse_unknown(arguments: Iterable[Any], names: Iterable[str], where: str, what: str = "argument") -> None:
    """Reject unknown names.

    Args:
        arguments: Names that the caller passed.
        names: Valid names.
        where: Function or dict that received the names.
        what: Kind of name, for the message.

    Raises:
        WrongTypeError: A name is unknown. The message suggests the closest name.
    """
    candidates = list(names)
    for name in arguments:
        if name not in candidates:
            remedy = _meant(name, candidates)
            expected = known_names(candidates) if remedy is None else None
            raise WrongTypeError(f"unknown {what} {name!r}", where=where, expected=expected, remedy=remedy)


def unknown_column(name: object, names: Iterable[str], where: object = None, what: str = "") -> UnknownColumnError:
    """Return the error for a column that does not exist.

    Args:
        name: The requested column.
        names: Existing columns.
        where: Table or argument that the error is about.
        what: Prefix of the message that describes the column's role, for example "bad filter: ".
    """
    candidates = list(names)
    remedy = did_you_mean(name, candidates)
    return UnknownColumnError(f"{what}no column {name!r}", where=where, expected=known_names(candidates), remedy=remedy)


def unknown_value(what: str, value: object, values: Iterable[str], where: object = None) -> InvalidInputError:
    """Return the error for an argument outside its set of allowed words, such as a mode, a metric or a kind."""
    candidates = list(values)
    remedy = _meant(value, candidates)
    return InvalidInputError(
        what, where=where, expected=" or ".join(map(repr, candidates)), found=repr(value), remedy=remedy
    )


def byte_count(value: object, where: str) -> int:
    """Return a size in bytes. Strings such as "512MB" or "1 GiB" are parsed like DuckDB's `memory_limit`.

    Args:
        value: Number of bytes, or a string with a unit.
        where: Name of the argument.

    Raises:
        InvalidInputError: The value is not a size, or is less than one byte.
    """
    count = 0
    if isinstance(value, str) and (match := _BYTES.fullmatch(value.strip().upper())) is not None:
        count = int(float(match[1]) * _UNITS[match[2]])
    elif isinstance(value, int) and not isinstance(value, bool):
        count = value
    if count < 1:
        raise InvalidInputError(
            "not a number of bytes", where=where, expected='bytes, or a string such as "512MB"', found=shortened(value)
        )
    return count


def number_or_text(limit: str | None) -> int | str | None:
    """Convert a limit that consists only of digits to a number. Returns other limits unchanged."""
    return int(limit) if limit is not None and re.fullmatch("[0-9]{1,18}", limit) else limit


def refuse_unsupported(
    function: Callable[..., Any], arguments: Mapping[str, Any], remedies: Mapping[str, str | None]
) -> None:
    """Reject unknown arguments, and pylance arguments that are not supported.

    None, False and empty mappings are accepted for unsupported arguments.

    Args:
        function: The public function that received the arguments.
        arguments: The arguments, by name.
        remedies: Remedy for each unsupported argument, by its name.

    Raises:
        UnsupportedError: An unsupported argument has a value other than None, False or an empty mapping.
        WrongTypeError: An argument does not exist.
    """
    if not arguments.keys() <= remedies.keys():  # inspecting a signature takes a third as long as opening a table
        parameters = [name for name in signature_of(function).parameters if name not in ("self", "cls", "refused")]
        refuse_unknown(arguments, [*parameters, *remedies], function.__name__)
    for name, value in arguments.items():
        has_effect = not (value is None or value is False or (isinstance(value, Mapping) and not value))
        if has_effect and name in remedies:
            raise UnsupportedError(f"{name} is not supported", where=function.__name__, remedy=remedies[name])


def declared_arguments(
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    declaration: type,
    remedies: Mapping[str, str | None] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return the keyword arguments that a TypedDict declares. Rejects other arguments like `refuse_unsupported`.

    Args:
        function: The public function that received the arguments.
        arguments: The arguments, by name.
        declaration: The TypedDict.
        remedies: See `refuse_unsupported`.

    Raises:
        UnsupportedError, WrongTypeError: See `refuse_unsupported`.
    """
    names = declaration.__annotations__
    refuse_unsupported(function, {name: value for name, value in arguments.items() if name not in names}, remedies)
    return {name: value for name, value in arguments.items() if name in names}


def has_defaults(defaults: object) -> Callable[[_C], _C]:
    """Return a decorator that registers a dataclass instance as the source of a TypedDict's defaults.

    Arguments without a matching attribute default to None.
    """

    def register(declaration: _C) -> _C:
        _DEFAULTS[declaration] = defaults
        return declaration

    return register


def signature_of(function: Callable[..., Any]) -> Signature:
    """Return the signature of a function, with the arguments of a TypedDict listed individually."""
    signature = inspect.signature(function)
    declaration = _declaration(function)
    if declaration is None:
        return signature
    *parameters, _ = signature.parameters.values()
    defaults = _DEFAULTS.get(declaration)
    for name, hint in declaration.__annotations__.items():
        default = getattr(defaults, name, None)
        annotation = getattr(hint, "__forward_arg__", hint)
        parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
    return signature.replace(parameters=parameters)


def checked_call(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function to raise WrongTypeError for wrong arguments. A successful call costs one extra frame.

    The decorator does not check anything before the function runs. If the function fails with a built-in exception, and
    an argument does not match its annotation, the WrongTypeError names that argument.
    """
    if hasattr(function, _CHECKED):
        return function

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except LanceDuckError:
            raise
        except _FAILURES as error:
            entered = error.__traceback__ is not None and error.__traceback__.tb_next is not None
            refused = wrong_argument(function, args, kwargs) if entered else _misfit(function, kwargs, error)
            if refused is None:
                raise
            raise refused from error

    setattr(call, _CHECKED, True)
    if _declaration(function) is not None:
        setattr(call, "__signature__", signature_of(function))  # noqa: B010  functions have no such attribute to mypy
    return call


def checked_calls(class_: _C) -> _C:
    """Apply `checked_call` to the constructor and the public methods that a class defines, and `suggest_names`."""
    for name, member in list(vars(class_).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(member, staticmethod | classmethod):
            setattr(class_, name, type(member)(checked_call(member.__func__)))
        elif inspect.isfunction(member):
            setattr(class_, name, checked_call(member))
    return suggest_names(class_)


def suggest_names(class_: _C) -> _C:
    """Let the errors for missing attributes of a class suggest the right name.

    The class attribute `OTHER_NAMES` has the equivalents of other libraries' names.
    """
    if not hasattr(class_, "__getattr__"):
        class_.__getattr__ = _suggested  # type: ignore[attr-defined]
    return class_


def _suggested(self: object, name: str) -> object:
    if any(name in vars(base) for base in type(self).__mro__):
        return object.__getattribute__(self, name)  # a property raised AttributeError: raise it again
    names = (*dir(type(self)), *getattr(self, "__dict__", ()))
    raise missing_attribute(self, name, names, getattr(type(self), "OTHER_NAMES", {}))


def missing_attribute(
    owner: object, name: str, names: Iterable[str], other_names: Mapping[str, str] = MappingProxyType({})
) -> AttributeError:
    """Return the error for an attribute that does not exist.

    Args:
        owner: The object.
        name: The requested attribute. Libraries probe for private names, and get no suggestion.
        names: Existing attributes.
        other_names: The equivalents of other libraries' names.
    """
    hint = None
    if name in other_names:
        hint = f"here it is {other_names[name]}"
    elif not name.startswith("_"):
        hint = did_you_mean(name, (each for each in names if not each.startswith("_")))
    text = f"{type(owner).__name__!r} object has no attribute {name!r}"
    return AttributeError(text if hint is None else f"{text}; {hint}", name=name, obj=owner)


def _misfit(function: Callable[..., Any], kwargs: Mapping[str, Any], error: BaseException) -> WrongTypeError:
    """Return the error for a call that Python could not bind."""
    parameters = signature_of(function).parameters.values()
    try:
        if not any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters):
            refuse_unknown(
                kwargs, [p.name for p in parameters if p.kind in _NAMED and p.name not in _OWN], _name(function)
            )
    except WrongTypeError as unknown:
        return unknown
    _, _, reason = str(error).partition("() ")
    missing = re.findall(r"'(\w+)'", reason) if reason.startswith("missing ") else ()
    meanings = "; ".join(f"{name}: {text}" for name in missing if (text := _documented(function, name)))
    return WrongTypeError(reason or str(error), where=_name(function), expected=meanings or None)


def _documented(function: Callable[..., Any], name: str) -> str:
    """Return the description of an argument from a function's docstring."""
    found = re.search(rf"^( +){name}: (.+(?:\n\1 +.+)*)", function.__doc__ or "", re.MULTILINE)
    return "" if found is None else " ".join(found[2].split()).rstrip(".")


def wrong_argument(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> WrongTypeError | None:
    """Return the error for the first argument that does not match its annotation, or None if all match."""
    parameters = signature_of(function).parameters
    declaration = _declaration(function)
    bound = inspect.signature(function).bind(*args, **kwargs)
    for name, value in {**bound.arguments, **bound.kwargs}.items():
        parameter = parameters.get(name)
        if parameter is None or parameter.kind not in _NAMED or name in _OWN or parameter.annotation is Parameter.empty:
            continue
        declared = declaration is not None and name in declaration.__annotations__
        names = vars(sys.modules[declaration.__module__]) if declared else getattr(function, "__globals__", {})
        if not _fits(value, _type_of(name, parameter.annotation, names)):
            actual = (
                f"{shortened(value)} of type {type(value).__name__}" if name not in _SECRET else type(value).__name__
            )
            return WrongTypeError(name, where=_name(function), expected=str(parameter.annotation), found=actual)
    return None


def shortened(value: object) -> str:
    """Return the `repr` of a value, truncated if it is long."""
    try:
        text = repr(value)
    except Exception:  # raised by the class of the value
        return "a value"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def is_unicode(text: str) -> bool:
    """Return whether a string can be encoded as UTF-8. Strings with a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _name(function: Callable[..., Any]) -> str:
    return function.__qualname__.removesuffix(".__init__").rpartition(".")[2]


def _declaration(function: Callable[..., Any]) -> type | None:
    """Return the TypedDict that declares the function's keyword arguments, or None."""
    code = getattr(function, "__code__", None)
    if code is None or not code.co_flags & CO_VARKEYWORDS:
        return None
    name = code.co_varnames[code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & CO_VARARGS)]
    unpacked = _UNPACKED.fullmatch(str(function.__annotations__.get(name)))
    declaration: type | None = None if unpacked is None else function.__globals__.get(unpacked[1])
    return declaration


def _type_of(name: str, annotation: Any, names: dict[str, Any]) -> Any:
    """Resolve an annotation to a type. Returns Any if only type checkers can resolve it."""
    holder = SimpleNamespace(__annotations__={name: annotation})
    try:
        return get_type_hints(holder, globalns=names)[name]
    except (NameError, TypeError, AttributeError):
        return Any


def _fits(value: Any, kind: Any) -> bool:
    """Return whether a value matches a type. Returns True for types that cannot be checked."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Union or origin is UnionType:
        return any(_fits(value, choice) for choice in inner)
    if origin is Literal:
        return value in inner
    if kind is None or kind is NoneType:
        return value is None
    if kind is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if kind is float:
        return hasattr(value, "__float__")
    if kind is bool:
        return isinstance(value, bool) or type(value).__name__ == "bool"
    base = origin or kind
    if base is Any or not isinstance(base, type) or getattr(base, "_is_protocol", False):
        return True
    if is_typeddict(base):
        return isinstance(value, Mapping)
    return isinstance(value, base) and _holds(value, base, inner)


def _holds(value: Any, base: type, inner: Sequence[Any]) -> bool:
    """Return whether the items of a collection match the type parameters of its annotation."""
    if isinstance(value, Mapping) and len(inner) == 2:
        return all(_fits(key, inner[0]) and _fits(item, inner[1]) for key, item in value.items())
    if not issubclass(base, Iterable) or len(inner) != 1:
        return True
    if isinstance(value, str | bytes):
        return False
    return not isinstance(value, Collection) or all(_fits(item, inner[0]) for item in value)
