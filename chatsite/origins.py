"""Sockets are for the site's own pages: browsers send its cookies along from other ports of the host, too."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.http import is_same_domain

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

CLOSED = 4403


class OwnOrigin:
    """ASGI middleware for sockets, by Django's rule for forms: the origin is this host, or a trusted one."""

    def __init__(self, application: Callable[[Message, Receive, Send], Awaitable[None]]) -> None:
        self.application = application

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
        texts = {name.lower(): value.decode("latin-1").lower() for name, value in headers}
        if _is_own(texts.get(b"origin", ""), texts.get(b"host", "")):
            await self.application(scope, receive, send)
            return
        await receive()
        await send({"type": "websocket.close", "code": CLOSED})


def _is_own(origin: str, host: str) -> bool:
    try:
        sent = urlsplit(origin)
    except ValueError:
        return False
    schemes = ("https",) if settings.HTTPS else ("http", "https")
    if sent.scheme in schemes and sent.netloc and sent.netloc == host:
        return True
    trusted = [urlsplit(each) for each in settings.CSRF_TRUSTED_ORIGINS]
    return any(
        sent.scheme == each.scheme and is_same_domain(sent.netloc, each.netloc.lstrip("*"))
        for each in trusted
    )
