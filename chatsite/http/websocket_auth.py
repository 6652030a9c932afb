"""Authentication of sockets by the session cookie, within a time limit."""

import logging
from typing import Any

from django.contrib.auth import get_user
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.db import SessionStore
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, parse_cookie

from chatsite import logs
from chatsite.db.threads import (
    Budget,
    in_database_within_budget,
    time_budget,
)

from .access_log import RECORD
from .address_limit import WAITED_KEY
from .asgi_types import Application, Message, Receive, Scope, Send
from .body_limits import header, session_key
from .languages import activate_browser_settings, activate_person_settings
from .middleware import identifier_from
from .outgoing.retry_after import SECONDS

logger = logging.getLogger(__name__)


class OwnSession:
    """ASGI middleware for sockets: sets the scope's `user` and `session` from the cookie.

    The session is read in a database thread (chatsite.db.threads), within the time budget of a request. If
    the database is unavailable, the socket is refused with 503.
    """

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        opened, budget = False, Budget(scope.get(WAITED_KEY, 0.0))
        logs.request_id.set(identifier_from((header(scope, b"x-request-id") or b"").decode("latin-1")))

        async def noted(message: Message) -> None:
            nonlocal opened
            opened = True
            await send(message)

        try:
            with time_budget(budget):
                known = await in_database_within_budget(_known, session_key(scope))
            # A request object with the headers of the handshake that determine language and time zone.
            handshake = HttpRequest()
            language = header(scope, b"accept-language") or b""
            handshake.META["HTTP_ACCEPT_LANGUAGE"] = language.decode("latin-1")
            handshake.COOKIES = parse_cookie((header(scope, b"cookie") or b"").decode("latin-1"))
            activate_browser_settings(handshake)
            activate_person_settings(known["user"])
            if record := scope.get(RECORD):
                record.user = known["user"].pk
            await self.application({**scope, **known, "budget": budget}, receive, noted)
        except (OperationalError, InterfaceError):
            if opened:
                raise
            logger.warning("The database was unavailable when a page connected", exc_info=True)
            headers = [(b"retry-after", b"%d" % SECONDS[503])]
            await send({"type": "websocket.http.response.start", "status": 503, "headers": headers})
            await send({"type": "websocket.http.response.body", "body": b""})


def _known(key: str) -> dict[str, Any]:
    request = HttpRequest()
    request.session = SessionStore(key)
    user = get_user(request) if key else AnonymousUser()
    return {"user": user, "session": request.session}
