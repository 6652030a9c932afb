"""Refuses requests from other machines while any demo account has its initial password."""

import logging
import time

from django.db import DatabaseError
from django.template import loader

from chatsite.db.threads import in_database_within_budget
from chatsite.demo import known_passwords
from chatsite.http.asgi_types import Application, Receive, Scope, Send
from chatsite.http.loopback import is_local
from chatsite.http.middleware import PORTAL_POLICY

from .http import error_pages

logger = logging.getLogger(__name__)


LOOK_SECONDS = 2.0  # pause between two checks of the accounts
WORDS = (
    "This site still has demo accounts, so it answers only on the machine it runs on. To open it to others, "
    "change their passwords or set CHATSITE_DEMO=0."
)


class DemoGuard:
    """ASGI middleware for requests and sockets. Those from this machine pass without a query."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self._looked_at = float("-inf")
        self._open = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        client, _ = scope.get("client") or ("", 0)
        is_here = is_local(client, headers.get("host", ""), headers)
        if is_here or not await self._passwords_are_known():
            await self.application(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 4403})
        else:
            if error_pages.is_for_programs(scope["path"]):
                body, kind = error_pages.body(scope["path"], 403, WORDS)
            else:
                page = loader.render_to_string("demo_refused.html", {"words": WORDS})
                body, kind = page.encode(), "text/html; charset=utf-8"
            fields = [
                (b"content-type", kind.encode()),
                (b"content-length", str(len(body)).encode()),
                (b"content-security-policy", PORTAL_POLICY.encode()),
                (b"x-content-type-options", b"nosniff"),
                (b"cache-control", b"no-store"),
            ]
            await send({"type": "http.response.start", "status": 403, "headers": fields})
            await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    async def _passwords_are_known(self) -> bool:
        if time.monotonic() - self._looked_at > LOOK_SECONDS:
            try:
                self._open = bool(await in_database_within_budget(known_passwords))
            except DatabaseError:
                logger.warning("The demo accounts could not be checked", exc_info=True)
                return self._open  # without the database, nobody can sign in anyway
            self._looked_at = time.monotonic()
        return self._open
