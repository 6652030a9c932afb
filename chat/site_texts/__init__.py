"""The site's texts as cached in this process, so that using them needs no query.

Each web process reloads the texts every two seconds, and immediately after changing them. Until it has loaded
them for the first time, for instance while the database is unavailable, it uses built-in texts and those in
the settings.
"""

import asyncio
import hashlib
import logging
import math
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext

from chatsite.accounts.models import User
from chatsite.db.sql_files import instances, rows_of_each
from chatsite.db.threads import Budget, in_database_within_budget, time_budget
from chatsite.http.languages import date_and_time

from .models import SiteTexts

logger = logging.getLogger(__name__)

REFRESH_SECONDS = 2.0
RETRY_SECONDS = 300  # Retry-After during maintenance without a planned end
MAX_RETRY_SECONDS = 3_600
# Every web process runs these statements every two seconds, even if idle. Sent together in one message, they
# take a fifth of the time of queries by Django's ORM.
NEWEST = "SELECT * FROM chat_sitetexts ORDER BY id DESC LIMIT 1"
QUESTIONS = 'SELECT text, group_id FROM chat_startingquestion ORDER BY "order", id'


@dataclass(frozen=True, slots=True)
class Banner:
    """The text that is currently shown above every page."""

    kind: str
    text: str


class ActiveTexts:
    """The newest version of the texts, and the questions that new conversations offer."""

    def __init__(self, texts: SiteTexts, questions: tuple[tuple[str, int | None], ...] = ()) -> None:
        self.texts = texts
        self.questions = questions  # each with the group whose members see it; None for everyone

    @property
    def name(self) -> str:
        return self.texts.name or settings.SITE_NAME

    @property
    def sign_in_line(self) -> str:
        return self.texts.translated("sign_in_line")

    @property
    def welcome(self) -> str:
        return self.texts.translated("welcome")

    @cached_property
    def logo(self) -> bytes:
        """The site's logo as a PNG; empty if it has none."""
        return bytes(self.texts.logo or b"")

    @cached_property
    def logo_digest(self) -> str:
        """Part of the logo's URL, so that the URL changes when the logo does."""
        return hashlib.sha256(self.logo).hexdigest()[:16] if self.logo else ""

    @property
    def banner(self) -> Banner | None:
        now = timezone.now()
        texts = self.texts
        if texts.is_maintained(now):
            return Banner(SiteTexts.Kind.WARNING, maintenance_words(texts))
        parts = [texts.translated("banner")] if texts.is_banner_shown(now) else []
        kind = texts.banner_kind
        if texts.maintenance_from is not None and now < texts.maintenance_from:
            kind = SiteTexts.Kind.WARNING
            words = gettext("Maintenance from %(begin)s: no questions can be asked then.")
            moments = {"begin": date_and_time(texts.maintenance_from)}
            if texts.maintenance_until:
                words = gettext("Maintenance from %(begin)s until %(end)s: no questions can be asked then.")
                moments["end"] = date_and_time(texts.maintenance_until)
            parts.append(words % moments)
        return Banner(kind, " ".join(parts)) if parts else None


def maintenance_words(texts: SiteTexts) -> str:
    """The message shown while only staff can ask."""
    return texts.translated("maintenance_words") or gettext(
        "The site is being maintained: no questions can be asked at the moment. You can read everything."
    )


_in_use: list[ActiveTexts] = []  # has one element after the texts have been loaded


def current() -> ActiveTexts:
    return _in_use[0] if _in_use else ActiveTexts(SiteTexts())


def reload() -> None:
    """Reload the texts."""
    texts, questions = rows_of_each([NEWEST, QUESTIONS], {})
    newest = next(iter(instances(SiteTexts, texts)), None)
    _in_use[:] = [
        ActiveTexts(newest or SiteTexts(), tuple((row["text"], row["group_id"]) for row in questions))
    ]


def forget() -> None:
    """Use the built-in texts and those in the settings until the next reload."""
    _in_use.clear()


async def follow() -> None:
    """Reload the texts regularly until cancelled, to get changes of other processes."""
    while True:
        try:
            with time_budget(Budget()):
                await in_database_within_budget(reload)
        except (OperationalError, InterfaceError):
            pass  # keep the previous texts; the outage is logged elsewhere
        except Exception:  # the next round must take place after any error
            logger.exception("The texts of the site could not be read")
        await asyncio.sleep(REFRESH_SECONDS)


def maintenance_for(user_id: int) -> tuple[str, int] | None:
    """Why this person cannot ask now, and in how many seconds to retry; None if they can ask."""
    texts, now = current().texts, timezone.now()
    if not texts.is_maintained(now) or User.objects.filter(pk=user_id, is_staff=True).exists():
        return None
    left = (texts.maintenance_until or now + timedelta(seconds=RETRY_SECONDS)) - now
    return maintenance_words(texts), min(MAX_RETRY_SECONDS, math.ceil(left.total_seconds()))


def starting_questions(user_id: int) -> list[str]:
    """The distinct starting questions for everyone and for this person's groups."""
    questions = current().questions
    groups: set[int] = set()
    if any(group is not None for _, group in questions):
        groups = set(User.groups.through.objects.filter(user_id=user_id).values_list("group_id", flat=True))
    return list(dict.fromkeys(text for text, group in questions if group is None or group in groups))
