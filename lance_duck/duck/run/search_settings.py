"""Settings of a connection: `SET lance_nearest`, `lance_check_primary_key`, `lance_slow_statement_ms` and others.

Scripts for DuckDB's `lance` extension also run. The extension's settings `lance_knn_…` are aliases. INSTALL and LOAD of
the extension do nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from lance_duck.arguments import did_you_mean, known_names
from lance_duck.duck.history.names import PREFIX
from lance_duck.duck.statement.clauses import Clauses
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.duck.statement.lifted import LiftedText
from lance_duck.errors import InvalidInputError, UnsupportedError

_LONGEST: Final = 1000
"""Maximum length of a recognized INSTALL or LOAD with its comments, in characters."""
SLOW: Final = "LANCE_DUCK_SLOW_STATEMENT_MS"
"""Environment variable with the default of `lance_slow_statement_ms`."""
_MODES: Final = ("auto", "exact", "off")
_SET: Final = re.compile(
    r"\s*(?:set\s+(?:session\s+|local\s+|global\s+)?lance_(?P<set>\w+)\s*(?:=|\bto\b)\s*(?P<value>'[^']*'|[\w.+-]+)"
    r"|reset\s+(?:session\s+|local\s+|global\s+)?lance_(?P<reset>\w+))\s*;?\s*",
    re.IGNORECASE,
)


_EXTENSION: Final = re.compile(
    r"(?:(?:force )?install|load) (?:lance|'lance'|\"lance\")(?: from (?:\w+|'[^']*'|\"[^\"]*\"))?", re.IGNORECASE
)
_EXTENSION_HINT: Final = re.compile(r"\b(?:install|load)\b[^;]*\blance\b", re.IGNORECASE)
_ALIASES: Final[Mapping[str, str]] = {
    "knn_nprobes": "nprobes",
    "knn_refine_factor": "refine_factor",
    "knn_ef_search": "ef",
    "knn_use_index": "nearest",
}
"""Maps settings of DuckDB's `lance` extension to names in this package."""
_PREFILTER: Final = "knn_prefilter"
_WITHOUT_MEANING: Final[Mapping[str, str]] = {
    _PREFILTER: ("WHERE always filters before the search; lance_vector_search(…, prefilter := false) filters after it"),
    "knn_max_k": "leave it out: LIMIT decides how many rows a search returns",
}
"""Settings of the extension that are rejected, each with an alternative."""
_TRUE: Final = frozenset({"true", "t", "1", "on", "yes", "y"})
_FALSE: Final = frozenset({"false", "f", "0", "off", "no", "n"})

_CURRENT: Final = r"current_setting\s*\(\s*'lance_(?P<name>\w+)'\s*\)"
_READ: Final = re.compile(rf"\b{_CURRENT}", re.IGNORECASE)
_READ_ALONE: Final = re.compile(rf"\s*select\s+{_CURRENT}\s*;?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class SearchSettings:
    """Settings for implicit searches, which do not call a search function, for changes, and for the log.

    Attributes:
        nearest: "auto" uses an index if one exists. "exact" compares all vectors that satisfy WHERE. With "off", DuckDB
            reads the table and sorts all rows.
        nprobes: Number of index partitions to search. Chosen automatically by default.
        ef: Number of candidates of a graph search. Chosen automatically by default.
        refine_factor: Number of index results to re-rank by exact distance, as a multiple of k. By default, slightly
            more than k results are re-ranked.
        recall: Target recall if `nprobes`, `ef` and `refine_factor` are not set. Defaults to 0.95.
        check_primary_key: Whether changes reject rows with a primary key that the table already contains.
        slow_statement_ms: Duration in milliseconds from which statements are logged. None logs no statement.
    """

    nearest: str = "auto"
    nprobes: int | None = None
    ef: int | None = None
    refine_factor: int | None = None
    recall: float | None = None
    check_primary_key: bool = True
    slow_statement_ms: float | None = field(default_factory=lambda: _duration(SLOW, os.environ.get(SLOW) or "off"))

    def changed(self, name: str, value: Any) -> SearchSettings:
        """Return a copy with one setting changed. The value None restores the default.

        Raises:
            InvalidInputError: The setting does not exist, or the value is invalid.
            UnsupportedError: The DuckDB extension has this setting, but lance_duck does not support it.
        """
        if name in _WITHOUT_MEANING:
            if value is None or (name == _PREFILTER and _flag(name, value)):
                return self
            raise UnsupportedError(
                f"setting {PREFIX}{name} is not supported", found=value, remedy=_WITHOUT_MEANING[name]
            )
        if name in _ALIASES:
            return self.changed(_ALIASES[name], _of_alias(name, value))
        if name not in SearchSettings.__dataclass_fields__:
            names = [PREFIX + each for each in SearchSettings.__dataclass_fields__]
            remedy = did_you_mean(PREFIX + name, names)
            raise InvalidInputError(f"no setting {PREFIX}{name}", expected=known_names(names), remedy=remedy)
        if value is None:
            return replace(self, **{name: getattr(SearchSettings(), name)})
        if name == "nearest":
            return replace(self, nearest=_mode(value))
        if name == "recall":
            return replace(self, recall=_share(value))
        if name == "check_primary_key":
            return replace(self, check_primary_key=_flag(name, value))
        if name == "slow_statement_ms":
            return replace(self, slow_statement_ms=_duration(PREFIX + name, value))
        return replace(self, **{name: _whole(name, value)})  # type: ignore[arg-type]  # a whole number


@dataclass
class Session:
    """The current settings of one connection."""

    settings: SearchSettings = field(default_factory=SearchSettings)

    def take(self, sql: str) -> None:
        """Run a statement that changes one of these settings (see `is_setting`).

        Raises:
            InvalidInputError: The setting does not exist, or the value is invalid.
        """
        match = _SET.fullmatch(sql)
        if match is None:
            return
        if match["reset"]:
            self.settings = self.settings.changed(match["reset"].lower(), None)
        else:
            text = match["value"].strip("'")
            value = None if text.lower() in ("null", "default") else text
            self.settings = self.settings.changed(match["set"].lower(), value)

    def shown(self, lifted: LiftedText) -> list[Edit]:
        """Return edits that replace `current_setting('lance_…')` with values.

        Raises:
            InvalidInputError: The setting does not exist.
        """
        text = lifted.text
        if PREFIX not in text or _READ.search(text) is None:
            return []
        if (alone := _READ_ALONE.fullmatch(text)) is not None:
            name = alone["name"].lower()
            title = quoted(f"current_setting('{PREFIX}{name}')")
            return [Edit(0, len(text), f"SELECT {self._literal(name)} AS {title}")]
        calls = (_READ.match(text, token.start) for token in lifted.statement.tokens if token.word == "current_setting")
        return [Edit(*call.span(), self._literal(call["name"].lower())) for call in calls if call is not None]

    def _literal(self, name: str) -> str:
        if name in _WITHOUT_MEANING:
            self.settings.changed(name, True)
            return "true"
        self.settings.changed(name, None)
        value = getattr(self.settings, _ALIASES.get(name, name))
        if name == "knn_use_index":
            return str(value == "auto").lower()
        return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value).lower()


def is_setting(sql: str) -> bool:
    """Return whether a statement sets or resets a search setting, or installs or loads the extension."""
    if PREFIX in sql[:200].lower() and _SET.fullmatch(sql) is not None:
        return True
    if len(sql) > _LONGEST or not _EXTENSION_HINT.search(sql):
        return False
    return _EXTENSION.fullmatch(" ".join(token.text for token in Clauses.of(sql).tokens).removesuffix(" ;")) is not None


def split_config(config: Mapping[str, Any]) -> tuple[SearchSettings, dict[str, Any]]:
    """Split a configuration into search settings and DuckDB settings.

    Raises:
        InvalidInputError: See `SearchSettings.changed`.
    """
    settings, others = SearchSettings(), {}
    for name, value in config.items():
        if name.lower().startswith(PREFIX):
            settings = settings.changed(name.lower().removeprefix(PREFIX), value)
        else:
            others[name] = value
    return settings, others


def _of_alias(name: str, value: Any) -> Any:
    """Convert a value of an extension setting. Numbers below 1 select the default."""
    if value is None:
        return None
    if name == "knn_use_index":
        return "auto" if _flag(name, value) else "exact"
    try:
        return value if isinstance(value, bool) or int(str(value)) > 0 else None
    except ValueError:
        return value


def _flag(name: str, value: Any) -> bool:
    text = str(value).lower()
    if text not in _TRUE | _FALSE:
        raise InvalidInputError(f"{PREFIX}{name}", expected="true or false", found=repr(value))
    return text in _TRUE


def _mode(value: Any) -> str:
    mode = str(value).lower()
    if mode not in _MODES:
        raise InvalidInputError(f"{PREFIX}nearest", expected=" or ".join(map(repr, _MODES)), found=repr(value))
    return mode


def _share(value: Any) -> float:
    try:
        share = float(str(value))
    except ValueError:
        share = 0.0
    if not 0 < share <= 1 or isinstance(value, bool):
        raise InvalidInputError(f"{PREFIX}recall", expected="a number above 0, up to 1", found=repr(value))
    return share


def _duration(where: str, value: Any) -> float | None:
    if str(value).lower() == "off":
        return None
    try:
        number = float(str(value))
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf") or isinstance(value, bool):
        raise InvalidInputError(where, expected="milliseconds from 0, or 'off'", found=repr(value))
    return number


def _whole(name: str, value: Any) -> int:
    try:
        number = int(str(value))
    except ValueError:
        number = 0
    if number < 1 or isinstance(value, bool):
        raise InvalidInputError(f"{PREFIX}{name}", expected="a whole number from 1", found=repr(value))
    return number
