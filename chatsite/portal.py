"""What every page of the portal shows: the site's name, the theme, and the caller's conversations."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest

THEMES = frozenset({"light", "dark"})


def site(request: HttpRequest) -> dict[str, Any]:
    theme = request.COOKIES.get("theme", "")
    return {"site_name": settings.SITE_NAME, "theme": theme if theme in THEMES else ""}
