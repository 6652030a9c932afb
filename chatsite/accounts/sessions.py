"""The sessions of one person, on all their devices."""

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.utils import timezone


def end_sessions(user_id: int, keep: str = "") -> int:
    """Sign the person out everywhere but in the session `keep`; says how many sessions ended.

    A session does not know its user by a column, so each is opened; this happens a few times a year.
    """
    sessions = Session.objects.filter(expire_date__gt=timezone.now()).exclude(pk=keep)
    theirs = [row.pk for row in sessions.iterator() if row.get_decoded().get(SESSION_KEY) == str(user_id)]
    return Session.objects.filter(pk__in=theirs).delete()[0]
