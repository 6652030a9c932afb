"""The sessions of one person, on all their devices, and how long one lasts.

A session ends when no page was requested for CHATSITE_SESSION_IDLE_HOURS, and CHATSITE_SESSION_DAYS after it
began. Both are in the row's expiry date, which ends requests, sockets and streams alike. The admin asks for
the password again when none of its pages was requested for CHATSITE_ADMIN_IDLE_MINUTES.
"""

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.models import Session
from django.utils import timezone

from .guests import BACKEND as GUEST_BACKEND

BEGUN, SEEN, SEEN_IN_ADMIN = "begun_at", "seen_at", "admin_seen_at"  # seconds of the epoch
PRECISION = 20  # a twentieth of a limit passes before activity is stored again


def begin(session: SessionBase) -> None:
    """Somebody has just proved who they are."""
    session[BEGUN] = session[SEEN_IN_ADMIN] = timezone.now().timestamp()
    session.pop(SEEN, None)
    keep_alive(session)


def keep_alive(session: SessionBase) -> None:
    """Put off the end of a session that was just used. Guests' sessions have an end of their own."""
    if SESSION_KEY not in session or session.get(BACKEND_SESSION_KEY) == GUEST_BACKEND:
        return
    now = timezone.now().timestamp()
    if now - session.get(SEEN, 0) < settings.SESSION_COOKIE_AGE / PRECISION:
        return
    begun = session.setdefault(BEGUN, now)
    session[SEEN] = now
    left = begun + settings.SESSION_DAYS * 86_400 - now
    session.set_expiry(max(1, int(min(settings.SESSION_COOKIE_AGE, left))))


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
