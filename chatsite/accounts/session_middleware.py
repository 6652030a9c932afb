"""Django's session middleware on the event loop, which also keeps track of idle sessions."""

from django.conf import settings
from django.contrib.sessions import middleware
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.http import http_date

from chatsite.http.middleware import OnLoop

from .sessions import BEGUN, keep_alive, seconds_left


class SessionMiddleware(OnLoop, middleware.SessionMiddleware):
    def asks_database(self, request: HttpRequest) -> bool:
        if getattr(request, "session_in_use", False):  # so that it is loaded
            keep_alive(request.session)
        return request.session.modified or settings.SESSION_SAVE_EVERY_REQUEST

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        response = super().process_response(request, response)
        cookie = response.cookies.get(settings.SESSION_COOKIE_NAME)
        if cookie and cookie.value and BEGUN in request.session:
            # The row says when a session was idle for too long: sockets renew it, and cannot send a cookie.
            now = timezone.now().timestamp()
            cookie["max-age"] = max(1, seconds_left(request.session, now))
            cookie["expires"] = http_date(now + cookie["max-age"])
        return response
