"""The ASGI application: HTTP to Django, WebSockets to Channels."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
django.setup(set_prefix=False)  # must be first: the imports below need the app registry

from channels.layers import get_channel_layer  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402
from django.conf import settings  # noqa: E402
from django.core.signals import request_started  # noqa: E402
from django.db import close_old_connections, reset_queries  # noqa: E402
from django.urls import get_resolver, re_path  # noqa: E402

from chat.llm import configured_model  # noqa: E402
from chat.portal.consumers import CLOSED_UNKNOWN  # noqa: E402
from chat.routing import websocket_urlpatterns  # noqa: E402
from chatsite.accounts.known_callers import credential, known_caller  # noqa: E402
from chatsite.demo_guard import DemoGuard  # noqa: E402
from chatsite.http.access_log import AccessLog  # noqa: E402
from chatsite.http.address_limit import AddressLimit  # noqa: E402
from chatsite.http.asgi_types import Receive, Scope, Send  # noqa: E402
from chatsite.http.body_limits import (  # noqa: E402
    BodyLimit,
    LengthHandler,
    UploadLimit,
)
from chatsite.http.cors import Cors  # noqa: E402
from chatsite.http.origins import OwnOrigin  # noqa: E402
from chatsite.http.overload import OverloadLimit  # noqa: E402
from chatsite.http.websocket_auth import OwnSession  # noqa: E402
from chatsite.server.lifespan import lifespan  # noqa: E402


async def no_such_socket(scope: Scope, receive: Receive, send: Send) -> None:
    """Close a socket at an unknown path with the code for an unknown conversation.

    Without this route, the router would raise an error, which would be logged.
    """
    await receive()
    await send({"type": "websocket.close", "code": CLOSED_UNKNOWN})


sockets = URLRouter([*websocket_urlpatterns, re_path("", no_such_socket)])  # type: ignore[arg-type]

application = ProtocolTypeRouter(
    {
        "http": AccessLog(
            Cors(
                UploadLimit(
                    AddressLimit(
                        DemoGuard(OverloadLimit(BodyLimit(LengthHandler(), known_caller))), credential
                    ),
                    credential,
                )
            )
        ),
        "lifespan": lifespan,
        "websocket": AccessLog(
            AddressLimit(DemoGuard(OwnOrigin(AllowedHostsOriginValidator(OwnSession(sockets)))), credential),
            websocket_urlpatterns,
        ),
    }
)

get_channel_layer()  # loads the Redis client, if Redis is configured, before the event loop runs
configured_model()  # loaded now, so that the first question does not block the event loop
assert get_resolver().url_patterns  # loaded now, so that an error in a URL module stops the start

# Requests return their own connections (chatsite.db.threads), so these receivers have nothing to do. Without
# them, Django does not switch to a thread to send the signal.
request_started.disconnect(close_old_connections)
if not settings.DEBUG:
    request_started.disconnect(reset_queries)
