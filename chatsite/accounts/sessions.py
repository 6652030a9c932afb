"""The sessions of one person, on all their devices, and how long one lasts.

A session ends when no page was requested and no question asked on a socket for CHATSITE_SESSION_IDLE_HOURS,
and CHATSITE_SESSION_DAYS after it began. Both are in the row's expiry date, which ends requests, sockets and
streams alike; the cookie lasts for all the days, because a socket cannot renew it. The admin asks for the
password again when none of its pages was requested for CHATSITE_ADMIN_IDLE_MINUTES.
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

STARTED, SEEN, SEEN_IN_ADMIN = "begun_at", "seen_at", "admin_seen_at"  # seconds of the epoch
# The first that a browser names: many name the others, too.
BROWSERS = (
    ("Edg", "Edge"), ("OPR/", "Opera"), ("Vivaldi", "Vivaldi"), ("SamsungBrowser", "Samsung Internet"),
    ("FxiOS", "Firefox"), ("Firefox", "Firefox"), ("CriOS", "Chrome"), ("Chrome", "Chrome"),
    ("Safari", "Safari"),
)  # fmt: skip
SYSTEMS = (
    ("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"), ("Windows", "Windows"),
    ("Macintosh", "macOS"), ("CrOS", "ChromeOS"), ("Linux", "Linux"),
)  # fmt: skip
PRECISION = 20  # a twentieth of a limit passes before activity is stored again


def begin(request: HttpRequest, user: User) -> None:
    """Somebody has just proved who they are."""
    session = request.session
    session[STARTED] = session[SEEN_IN_ADMIN] = timezone.now().timestamp()
    session.pop(SEEN, None)
    keep_alive(session)
    note_device(request, user)


def note_device(request: HttpRequest, user: User) -> None:
    """Remember which browser the session is of, for the person's list of devices."""
    if request.session.session_key is None:
        request.session.create()
    browser, system = described(request.headers.get("User-Agent", ""))
    Device.objects.update_or_create(
        session_id=request.session.session_key,
        defaults={"user": user, "browser": browser, "system": system},
    )


def described(user_agent: str) -> tuple[str, str]:
    """The names of the browser and the system that a request says it comes from; empty where unknown."""
    return (
        next((name for word, name in BROWSERS if word in user_agent), ""),
        next((name for word, name in SYSTEMS if word in user_agent), ""),
    )


def last_seen(session: Session) -> datetime | None:
    """When a page was last requested, or a question asked; exact to a twentieth of the idle limit."""
    seen = session.get_decoded().get(SEEN)
    return datetime.fromtimestamp(seen, UTC) if seen else None


def keep_alive(session: SessionBase) -> None:
    """Put off the end of a session that was just used. Guests' sessions have an end of their own."""
    if not _is_due(session):
        return
    session[SEEN] = now = timezone.now().timestamp()
    session.set_expiry(max(1, min(settings.SESSION_COOKIE_AGE, seconds_left(session, now))))


def kept_alive(session: SessionBase) -> SessionBase:
    """Store that a socket was used whose `session` was read at its opening; return the newer session."""
    if not _is_due(session):
        return session
    current = SessionStore(session.session_key)
    keep_alive(current)
    if current.modified:
        with suppress(UpdateError):  # signed out meanwhile
            current.save()
    return current


def seconds_left(session: SessionBase, now: float) -> int:
    """Until the session ends, however active; one without a beginning begins now."""
    started = session.setdefault(STARTED, now)
    return int(started + settings.SESSION_DAYS * 86_400 - now)


def _is_due(session: SessionBase) -> bool:
    if SESSION_KEY not in session or session.get(BACKEND_SESSION_KEY) == GUEST_BACKEND:
        return False
    seen: float = session.get(SEEN, 0)
    return timezone.now().timestamp() - seen >= settings.SESSION_COOKIE_AGE / PRECISION


def admin_is_idle(session: SessionBase) -> bool:
    """Whether the admin was not used for so long that its next page needs the password."""
    seen = session.get(SEEN_IN_ADMIN)
    return seen is not None and timezone.now().timestamp() - seen > settings.ADMIN_IDLE_MINUTES * 60


def admin_was_used(session: SessionBase) -> None:
    now = timezone.now().timestamp()
    if now - session.get(SEEN_IN_ADMIN, 0) > settings.ADMIN_IDLE_MINUTES * 60 / PRECISION:
        session[SEEN_IN_ADMIN] = now


def end_sessions(user_id: int, keep: str = "") -> int:
    """Sign the person out everywhere but in the session `keep`; says how many sessions ended.

    A session does not know its user by a column, so each is opened; this happens a few times a year.
    """
    sessions = Session.objects.filter(expire_date__gt=timezone.now()).exclude(pk=keep)
    theirs = [row.pk for row in sessions.iterator() if row.get_decoded().get(SESSION_KEY) == str(user_id)]
    return Session.objects.filter(pk__in=theirs).delete()[0]
