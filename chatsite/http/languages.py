"""The language and time zone of a caller, and times in them.

The browser's settings take precedence over the site's, and the language in a person's account over both.
"""

from datetime import datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone, translation
from django.utils.formats import date_format
from django.utils.translation import gettext

ZONE_COOKIE = "zone"  # written by portal.js: the time zone of the browser, such as Europe/Berlin
MAX_ZONE_CHARACTERS = 64


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def activate_browser_settings(request: HttpRequest) -> None:
    """Use the language of `Accept-Language` and the time zone of the cookie."""
    translation.activate(translation.get_language_from_request(request))
    name = request.COOKIES.get(ZONE_COOKIE, "")
    zone = _zone(name) if 0 < len(name) <= MAX_ZONE_CHARACTERS else None
    if zone is None:
        timezone.deactivate()
    else:
        timezone.activate(zone)


def activate_person_settings(user: Any) -> None:
    """Use the language that this person has chosen, if any."""
    language = getattr(user, "language", "")
    if language in dict(settings.LANGUAGES):
        translation.activate(language)


def date_and_time(moment: datetime) -> str:
    """A moment in the current language and time zone, such as “5 Nov 2026, 14:30”."""
    return date_format(timezone.localtime(moment), gettext("j M Y, H:i"))
