"""Determines the origin of a browser's request from headers that no page can set.

These are `Sec-Fetch-Site` and `Origin`; some functions also use `Sec-Fetch-Mode`, `Sec-Fetch-Dest` and
`Referer`. Browsers attach the site's cookies to requests from other ports of the host and from subdomains, so
a cookie alone does not prove that one of the site's own pages sent a request.
"""

from collections.abc import Iterable
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.utils.http import is_same_domain

from .asgi_types import Application, Receive, Scope, Send

CLOSED = 4403


class OwnOrigin:
    """ASGI middleware that applies Django's origin check for forms to sockets.

    The origin must be this host or a trusted one.
    """

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
        texts = {name.lower(): value.decode("latin-1").lower() for name, value in headers}
        if _is_own(texts.get(b"origin", ""), texts.get(b"host", "")) or _is_trusted(texts.get(b"origin", "")):
            await self.application(scope, receive, send)
            return
        await receive()
        await send({"type": "websocket.close", "code": CLOSED})


def proves_same_origin(request: HttpRequest) -> bool:
    """Whether the browser asserts that a page of this site sent the request.

    If `Sec-Fetch-Site` is sent, it alone decides: browsers send it over HTTPS and to loopback addresses.
    Otherwise `Origin` decides; origins in CHATSITE_CORS_ORIGINS then count, too. A program that sends neither
    header proves nothing.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("Origin", "")
    return origin in settings.CORS_ORIGINS or _is_own(origin.lower(), request.get_host().lower())


def opened_from_here(request: HttpRequest) -> bool:
    """Whether the browser says that a link or form of this site opened the page."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("Origin") or _origin_of(request.headers.get("Referer", ""))
    return _is_own(origin.lower(), request.get_host().lower())


def comes_from_elsewhere(request: HttpRequest) -> bool:
    """Whether a page of a foreign, untrusted origin caused the request.

    A link on a foreign page does not count: it opens the site in a tab, with all of the site's cookies.
    """
    origin = request.headers.get("Origin") or _origin_of(request.headers.get("Referer", ""))
    if origin in settings.CORS_ORIGINS or _is_trusted(origin.lower()):
        return False
    safe = request.method in {"GET", "HEAD"}
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        mode = (request.headers.get("Sec-Fetch-Mode"), request.headers.get("Sec-Fetch-Dest"))
        return site not in {"same-origin", "none"} and not (safe and mode == ("navigate", "document"))
    if safe and "Origin" not in request.headers:
        return False
    return bool(origin) and not _is_own(origin.lower(), request.get_host().lower())


def _origin_of(address: str) -> str:
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}" if rest else ""


def _is_own(origin: str, host: str) -> bool:
    """Whether a lower-case origin has this host and port, and a scheme of the site."""
    schemes = ("https",) if settings.HTTPS else ("http", "https")
    return bool(host) and origin in {f"{scheme}://{host}" for scheme in schemes}


def _is_trusted(origin: str) -> bool:
    """Whether a lower-case origin matches CHATSITE_TRUSTED_ORIGINS.

    Behind a proxy that terminates TLS, this setting contains the site's own origin.
    """
    try:
        sent = urlsplit(origin)
    except ValueError:
        return False
    trusted = [urlsplit(each) for each in settings.CSRF_TRUSTED_ORIGINS]
    return any(
        sent.scheme == each.scheme and is_same_domain(sent.netloc, each.netloc.lstrip("*"))
        for each in trusted
    )
