"""The sessions of a person on all devices, and their expiry.

A session ends CHATSITE_SESSION_IDLE_HOURS after the last page or question, but no later than
CHATSITE_SESSION_DAYS after it began. The expiry date in the database takes both limits into account, and
applies to requests, sockets and streams alike; the cookie has only the second limit, because a socket cannot
renew a cookie. The admin asks for the password again if no admin page was opened for
CHATSITE_ADMIN_IDLE_MINUTES.
"""

from contextlib import suppress
from datetime import UTC, datetime

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.base import SessionBase, UpdateError
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.utils import timezone

from .guests import BACKEND as GUEST_BACKEND
from .models import Device, User

STARTED, SEEN, SEEN_IN_ADMIN = "begun_at", "seen_at", "admin_seen_at"  # keys of Unix times in a session
# The first match counts: many User-Agents also contain the names of other browsers or systems.
BROWSERS = (
    ("Edg", "Edge"), ("OPR/", "Opera"), ("Vivaldi", "Vivaldi"), ("SamsungBrowser", "Samsung Internet"),
    ("FxiOS", "Firefox"), ("Firefox", "Firefox"), ("CriOS", "Chrome"), ("Chrome", "Chrome"),
    ("Safari", "Safari"),
)  # fmt: skip
SYSTEMS = (
    ("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"), ("Windows", "Windows"),
    ("Macintosh", "macOS"), ("CrOS", "ChromeOS"), ("Linux", "Linux"),
)  # fmt: skip
PRECISION = 20  # activity is stored at most once per twentieth of the limit


def begin(request: HttpRequest, user: User) -> None:
    """Record that the person has just authenticated."""
    session = request.session
    session[STARTED] = session[SEEN_IN_ADMIN] = timezone.now().timestamp()
    session.pop(SEEN, None)
    keep_alive(session)
    note_device(request, user)


def note_device(request: HttpRequest, user: User) -> None:
    """Record the session's browser for the person's list of devices."""
    if request.session.session_key is None:
        request.session.create()
    browser, system = described(request.headers.get("User-Agent", ""))
    Device.objects.update_or_create(
        session_id=request.session.session_key,
        defaults={"user": user, "browser": browser, "system": system},
    )


def described(user_agent: str) -> tuple[str, str]:
    """The names of browser and system in the User-Agent; empty if unknown."""
    return (
        next((name for word, name in BROWSERS if word in user_agent), ""),
        next((name for word, name in SYSTEMS if word in user_agent), ""),
    )


def last_seen(session: Session) -> datetime | None:
    """When the person last opened a page or asked a question.

    The time is up to a twentieth of the idle limit too early.
    """
    seen = session.get_decoded().get(SEEN)
    return datetime.fromtimestamp(seen, UTC) if seen else None


def keep_alive(session: SessionBase) -> None:
    """Postpone the idle time-out of a session in use. Guests' sessions have their own expiry."""
    if not _is_due(session):
        return
    session[SEEN] = now = timezone.now().timestamp()
    session.set_expiry(max(1, min(settings.SESSION_COOKIE_AGE, seconds_left(session, now))))


def kept_alive(session: SessionBase) -> SessionBase:
    """Postpone the idle time-out for an open socket.

    `session` was loaded when the socket was opened. Returns the session, reloaded if the activity had to be
    stored.
    """
    if not _is_due(session):
        return session
    current = SessionStore(session.session_key)
    keep_alive(current)
    if current.modified:
        with suppress(UpdateError):  # signed out meanwhile
            current.save()
    return current


def seconds_left(session: SessionBase, now: float) -> int:
    """Seconds until CHATSITE_SESSION_DAYS have passed; a session without a start starts now."""
    started = session.setdefault(STARTED, now)
    return int(started + settings.SESSION_DAYS * 86_400 - now)


def _is_due(session: SessionBase) -> bool:
    if SESSION_KEY not in session or session.get(BACKEND_SESSION_KEY) == GUEST_BACKEND:
        return False
    seen: float = session.get(SEEN, 0)
    return timezone.now().timestamp() - seen >= settings.SESSION_COOKIE_AGE / PRECISION


def admin_is_idle(session: SessionBase) -> bool:
    """Whether the admin was idle for so long that it must ask for the password again."""
    seen = session.get(SEEN_IN_ADMIN)
    return seen is not None and timezone.now().timestamp() - seen > settings.ADMIN_IDLE_MINUTES * 60


def admin_was_used(session: SessionBase) -> None:
    now = timezone.now().timestamp()
    if now - session.get(SEEN_IN_ADMIN, 0) > settings.ADMIN_IDLE_MINUTES * 60 / PRECISION:
        session[SEEN_IN_ADMIN] = now


def end_sessions(user_id: int, keep: str = "") -> int:
    """End all sessions of the person except the one with the key `keep`.

    Called rarely: it decodes all current sessions, because sessions have no column for the user.
    Returns the number of deleted rows, which include the devices of the sessions.
    """
    sessions = Session.objects.filter(expire_date__gt=timezone.now()).exclude(pk=keep)
    theirs = [row.pk for row in sessions.iterator() if row.get_decoded().get(SESSION_KEY) == str(user_id)]
    return Session.objects.filter(pk__in=theirs).delete()[0]
