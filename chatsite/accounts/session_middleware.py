"""Django's session middleware on the event loop, which also keeps track of idle sessions."""

from django.conf import settings
from django.contrib.sessions import middleware
from django.http import HttpRequest

from chatsite.http.middleware import OnLoop

from .sessions import keep_alive


class SessionMiddleware(OnLoop, middleware.SessionMiddleware):
    def asks_database(self, request: HttpRequest) -> bool:
        if getattr(request, "session_in_use", False):  # so that it is loaded
            keep_alive(request.session)
        return request.session.modified or settings.SESSION_SAVE_EVERY_REQUEST
