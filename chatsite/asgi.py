"""The ASGI application: HTTP to Django, WebSockets to Channels."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
django.setup(set_prefix=False)  # first: the imports below need the app registry

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402
from django.urls import get_resolver  # noqa: E402

from chat.routing import websocket_urlpatterns  # noqa: E402
from chatsite.lifespan import lifespan  # noqa: E402
from chatsite.limits import BodyLimit, LengthHandler  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": BodyLimit(LengthHandler()),
        "lifespan": lifespan,
        "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),
    }
)

assert get_resolver().url_patterns  # loaded now, so that a fault in them shows at the start
