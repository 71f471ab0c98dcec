"""The login page. A token that it accepts becomes a cookie."""

from __future__ import annotations

from http.cookies import SimpleCookie

from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.gate.tokens import caller_of
from lance_duck.serve.http.answers import HttpAnswer
from lance_duck.serve.http.headers import COOKIE
from lance_duck.serve.http.request import HttpRequest
from lance_duck.serve.web.html import html_page, redirect


def show_login(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Return the login page. A server without tokens goes to its first page."""
    if not call.settings.tokens:
        return redirect("/")
    target = _inside(request.parameters.get("next", ""))
    return html_page(call.settings, "login.html", target=target, is_wrong=False)


def log_in(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Set the cookie if the server has tokens, and go to the page that the browser asked for first."""
    form = request.form()
    token, target = form.get("token", "").strip(), _inside(form.get("next", ""))
    if call.settings.tokens and (not token.isascii() or caller_of(token, call.settings.tokens) is None):
        return html_page(call.settings, "login.html", status=401, target=target, is_wrong=True)
    return redirect(target, {"set-cookie": _cookie(call, request, token)} if call.settings.tokens else None)


def log_out(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Remove the cookie."""
    return redirect("/login", {"set-cookie": f"{_cookie(call, request, '')}; Max-Age=0"})


def _cookie(call: ServerCall, request: HttpRequest, token: str) -> str:
    cookie: SimpleCookie = SimpleCookie({COOKIE: token})
    flags = "; Path=/; HttpOnly; SameSite=Strict"
    is_secure = call.settings.tls_cert is not None or _came_by_tls(request)
    return cookie.output(header="").strip() + flags + ("; Secure" if is_secure else "")


def _came_by_tls(request: HttpRequest) -> bool:
    """Return whether the browser used TLS to a proxy, as the browser or the proxy says.

    A client that lies only changes its own cookie.
    """
    protocol = request.headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
    return protocol == "https" or request.headers.get("origin", "").startswith("https://")


def _inside(target: str) -> str:
    """Return a path of this server. Targets on other servers become "/"."""
    is_path = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isascii()
    return target if is_path and target.isprintable() and "\\" not in target else "/"
