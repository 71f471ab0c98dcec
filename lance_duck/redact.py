"""Redaction: removes secrets from URIs, options and other texts before users see them. No other module does this.

    s3://user:password@bucket/t.lance?sig=abc      ***@ and ?sig=***, anywhere in a text
    {"aws_secret_access_key": "abcdefgh"}          ***, anywhere in a text, once the option was used

`LanceDuckError` passes its message through `shown`. Other user-visible texts must call `shown` themselves.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import quote, quote_plus, unquote

MASK: Final = "***"

_SHORTEST: Final = 8  # minimum length of values to mask: shorter values also occur in harmless words
_MOST: Final = 1024  # maximum number of values to remember; temporary credentials expire anyway

_URI: Final = re.compile(r"(?<![A-Za-z0-9+.-])((?>[A-Za-z0-9+.-]*?\b(?=[A-Za-z])))([A-Za-z0-9+.-]++)://([^\s'\"<>`]*)")
"""Characters before a scheme, the scheme, and the rest. The lookbehind and the atomic groups keep the time linear."""
_CUT: Final = re.compile(r"(?<![^\s'\"])((?>[^\s'\"]*?://))[^\s'\"]*\.\.\.|(?<=: )\.\.\.[^\s'\"]*[@=]")
"""A URI that DuckDB truncated, from the begin of its word. Its remainder cannot be searched for secrets."""

_VALUES: Final = re.compile(r"([?&;][^=&;?#]*)=[^&;#]*")
_HARMLESS: Final = re.compile(
    r"(base_\d+\.)?(aws_|azure_|azure_storage_|google_)?("
    r"region|default_region|endpoint|endpoint_url|endpoint_url_s3|bucket|bucket_name|account_name|container_name|use_emulator|"
    r"virtual_hosted_style_request|conditional_put|copy_if_not_exists|checksum_algorithm|unsigned_payload|"
    r"skip_signature|imdsv1_fallback|metadata_endpoint|s3_express|request_payer|disable_tagging|use_fabric_endpoint|"
    r"authority_host|msi_endpoint|allow_http|allow_invalid_certificates|connect_timeout|default_content_type|"
    r"pool_idle_timeout|pool_max_idle_per_host|proxy_excludes|read_timeout|randomize_addresses|timeout|user_agent|"
    r"client_max_retries|client_retry_timeout|cache|cache_size|fsync|manifest_store|proxy_url|.*url|.*uri)"
)
"""Options whose values are not secret, except for secrets inside a URI. All other values are secret, even of unknown
options.
"""

_E = TypeVar("_E", bound=BaseException)
_secrets: OrderedDict[str, None] = OrderedDict()


def shown(text: object, hide: Iterable[str] = ()) -> str:
    """Return a text without its secrets.

    Args:
        text: A string, or an object that `str` converts: a URI, a message, a plan.
        hide: Additional values to mask.
    """
    clear = str(text)
    for value in sorted((*_secrets.copy(), *(value for value in hide if value)), key=len, reverse=True):
        clear = clear.replace(value, MASK)
    clear = _CUT.sub(lambda cut: f"{cut[1] or ''}{MASK}...", clear)
    return _URI.sub(_without_secrets, clear)


def shown_value(value: object) -> str:
    """Return the type of an option's value. The value itself may be a misplaced secret."""
    return f"a text of {len(value)} characters" if isinstance(value, str) else type(value).__name__


def shown_option(name: str, value: object) -> str:
    """Return a Spark source option's value for a message. Storage options are hidden."""
    return shown_value(value) if name.lower().startswith("storage") else repr(shown(value))


def remember(options: Mapping[str, Any] | None) -> None:
    """Remember the secrets in storage options, to mask them in later messages."""
    for name, value in (options or {}).items():
        text = str(value)
        if not _HARMLESS.fullmatch(str(name).lower()):
            _add(text)
        for uri in _URI.finditer(text):
            remember_uri(uri[0])


def remember_uri(uri: str) -> None:
    """Remember the secrets of a URI: its user information and its query values."""
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return
    place, _, query = rest.partition("?")
    user, at, _ = place.partition("/")[0].rpartition("@")
    if at and not _is_container(scheme, user):
        _add(user)
        _add(user.partition(":")[2])
    for part in re.split("[&;#]", query):
        _add(part.partition("=")[2] or part)


def without_secrets(error: _E, hide: Iterable[str] = ()) -> BaseException:
    """Return an exception that is safe to show as a cause: `error`, or a copy of the same type without secrets."""
    hidden = tuple(hide)
    if not any(_has_secrets(each, hidden) for each in _chain(error)):
        return error
    clear = shown(error, hidden)
    try:
        other: BaseException = type(error)(clear)
    except Exception:  # exception types of other libraries may require different arguments
        other = RuntimeError(f"{type(error).__name__}: {clear}")
    return other.with_traceback(error.__traceback__)


def take_secrets_out(error: BaseException) -> None:
    """Mask secrets in an error, its causes and its contexts, in place."""
    for each in _chain(error):
        if _has_secrets(each, ()):
            each.args = tuple(shown(part) if isinstance(part, str) else part for part in each.args)


def has_secrets(uri: str) -> bool:
    """Return whether a URI contains a secret: a user's password, or a query."""
    return _URI.sub(_without_secrets, uri) != uri


def _chain(error: BaseException) -> list[BaseException]:
    """Return an error with all its causes and contexts."""
    chain: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and not any(each is other for other in chain):
            chain.append(each)
            waiting += (each.__cause__, each.__context__)
    return chain


def _has_secrets(error: BaseException, hide: Iterable[str]) -> bool:
    return any(shown(part, hide) != str(part) for part in (error, *error.args))


def _without_secrets(uri: re.Match[str]) -> str:
    before, scheme, rest = uri.groups()
    place, mark, query = rest.partition("?")
    if not mark:
        place, mark, query = rest.partition("#")
    user, at, host = place.partition("/")[0].rpartition("@")
    if at and user != MASK and not _is_container(scheme, user):
        place = f"{MASK}@{host}{place[len(user) + 1 + len(host) :]}"
    if not mark:
        return f"{before}{scheme}://{place}"
    values, count = _VALUES.subn(rf"\1={MASK}", mark + query)
    return f"{before}{scheme}://{place}{values if count else mark + MASK}"


def _is_container(scheme: str, user: str) -> bool:
    """Return whether the user part is a container name, as in Azure's abfss://container@account.host."""
    return scheme.lower() in ("abfs", "abfss", "wasb", "wasbs") and ":" not in user


def _add(value: str) -> None:
    for form in {value, unquote(value), quote(value, safe=""), quote_plus(value)}:
        if len(form) >= _SHORTEST:
            _secrets[form] = None
            _secrets.move_to_end(form)
    while len(_secrets) > _MOST:
        _secrets.popitem(last=False)
