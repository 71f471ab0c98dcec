"""Settings of searches on a connection: `SET lance_nearest`, `lance_nprobes`, `lance_ef` and others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from lance_duck.arguments import did_you_mean, known_names
from lance_duck.errors import InvalidInputError

PREFIX: Final = "lance_"
_MODES: Final = ("auto", "exact", "off")
_SET: Final = re.compile(
    r"\s*(?:set\s+(?:session\s+|local\s+|global\s+)?lance_(?P<set>\w+)\s*(?:=|\bto\b)\s*(?P<value>'[^']*'|[\w.+-]+)"
    r"|reset\s+(?:session\s+|local\s+|global\s+)?lance_(?P<reset>\w+))\s*;?\s*",
    re.IGNORECASE,
)


_CURRENT: Final = r"current_setting\s*\(\s*'lance_(?P<name>\w+)'\s*\)"
_READ: Final = re.compile(rf"\b{_CURRENT}", re.IGNORECASE)
_READ_ALONE: Final = re.compile(rf"\s*select\s+{_CURRENT}\s*;?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class SearchSettings:
    """Settings for searches that statements do not call by name.

    Attributes:
        nearest: "auto": use an index if there is one; "exact": compare all vectors that satisfy WHERE;
            "off": DuckDB reads the table and searches by itself.
        nprobes: Number of index partitions to search; None: chosen automatically.
        ef: Number of candidates of a graph search; None: chosen automatically.
        refine_factor: Rank this many times k rows of an index by their own vectors; None: somewhat more than k.
        recall: Share of the true neighbours to find if none of these three is set; None for 0.95.
    """

    nearest: str = "auto"
    nprobes: int | None = None
    ef: int | None = None
    refine_factor: int | None = None
    recall: float | None = None

    def changed(self, name: str, value: Any) -> SearchSettings:
        """Return the settings with one of them changed; None stands for its default.

        Raises:
            InvalidInputError: The setting does not exist, or the value is invalid.
        """
        if name not in _DEFAULTS:
            names = [PREFIX + each for each in _DEFAULTS]
            remedy = did_you_mean(PREFIX + name, names)
            raise InvalidInputError(f"no setting {PREFIX}{name}", expected=known_names(names), remedy=remedy)
        if value is None:
            return replace(self, **{name: _DEFAULTS[name]})
        if name == "nearest":
            return replace(self, nearest=_mode(value))
        if name == "recall":
            return replace(self, recall=_share(value))
        return replace(self, **{name: _whole(name, value)})  # type: ignore[arg-type]  # a whole number


_DEFAULTS: Final[Mapping[str, Any]] = {
    name: getattr(SearchSettings(), name) for name in SearchSettings.__dataclass_fields__
}


@dataclass
class Session:
    """The settings of one connection, which it may change."""

    settings: SearchSettings = field(default_factory=SearchSettings)

    def take(self, sql: str) -> None:
        """Run a statement that sets one of these settings: see `is_setting`.

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

    def shown(self, sql: str) -> str:
        """Return a statement with values in place of `current_setting('lance_…')`.

        Raises:
            InvalidInputError: There is no such setting.
        """
        if PREFIX not in sql or _READ.search(sql) is None:
            return sql
        if (alone := _READ_ALONE.fullmatch(sql)) is not None:
            name = alone["name"].lower()
            return f"SELECT {self._literal(name)} AS \"current_setting('{PREFIX}{name}')\""
        return _READ.sub(lambda match: self._literal(match["name"].lower()), sql)

    def _literal(self, name: str) -> str:
        self.settings.changed(name, None)
        value = getattr(self.settings, name)
        return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def is_setting(sql: str) -> bool:
    """Return whether a statement is SET or RESET of one of these settings."""
    return PREFIX in sql[:200].lower() and _SET.fullmatch(sql) is not None


def split_config(config: Mapping[str, Any]) -> tuple[SearchSettings, dict[str, Any]]:
    """Split a configuration into search settings and those of DuckDB.

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


def _whole(name: str, value: Any) -> int:
    try:
        number = int(str(value))
    except ValueError:
        number = 0
    if number < 1 or isinstance(value, bool):
        raise InvalidInputError(f"{PREFIX}{name}", expected="a whole number from 1", found=repr(value))
    return number
